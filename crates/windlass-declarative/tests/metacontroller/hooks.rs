//! What the tests share: hooks in this process, a kind, and controllers of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::future::BoxFuture;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::Operator;
use windlass_cluster::TestCluster;
use windlass_declarative::metacontroller::{
    Answer, Call, CompositeController, Options, Target, Transport, operator,
};

/// A parent.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Thing",
    namespaced,
    status = "ThingStatus"
)]
pub(crate) struct ThingSpec {
    #[serde(default)]
    pub(crate) maps: Vec<String>,
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThingStatus {
    pub(crate) maps: Option<usize>,
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Option<Vec<BTreeMap<String, String>>>,
}

pub(crate) fn thing(name: &str, maps: &[&str]) -> Thing {
    let maps = maps.iter().map(|name| (*name).to_owned()).collect();
    let text = "one".to_owned();
    let selector = None;
    Thing::new(
        name,
        ThingSpec {
            maps,
            text,
            selector,
        },
    )
}

type Function = Box<dyn Fn(&Value) -> Answer + Send + Sync>;

/// Hooks by their URL, and what they were sent.
#[derive(Default)]
pub(crate) struct Hooks {
    functions: Mutex<BTreeMap<String, Function>>,
    sent: Mutex<Vec<(String, Value)>>,
}

impl Hooks {
    /// Answers calls of a URL with what a function says.
    pub(crate) fn on(&self, url: &str, function: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        self.on_raw(url, move |request| ok(&function(request)));
    }

    pub(crate) fn on_raw(
        &self,
        url: &str,
        function: impl Fn(&Value) -> Answer + Send + Sync + 'static,
    ) {
        let mut functions = self.functions.lock().unwrap();
        functions.insert(url.to_owned(), Box::new(function));
    }

    /// What a URL was sent since the last call.
    pub(crate) fn sent(&self, url: &str) -> Vec<Value> {
        let mut sent = self.sent.lock().unwrap();
        let (these, others) = std::mem::take(&mut *sent)
            .into_iter()
            .partition(|(to, _)| to == url);
        *sent = others;
        let these: Vec<(String, Value)> = these;
        these.into_iter().map(|(_, request)| request).collect()
    }
}

pub(crate) fn ok(answer: &Value) -> Answer {
    Answer {
        status: 200,
        body: serde_json::to_vec(answer).unwrap(),
        ..Answer::default()
    }
}

impl Transport for Hooks {
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Answer, String>> {
        Box::pin(async move {
            let Target::Webhook { url, .. } = &call.target else {
                return Err("no programs here".to_owned());
            };
            let request: Value = serde_json::from_slice(&call.body).unwrap();
            let answer = match self.functions.lock().unwrap().get(url) {
                Some(function) => function(&request),
                None => return Err(format!("cannot connect to {url}")),
            };
            self.sent.lock().unwrap().push((url.clone(), request));
            Ok(answer)
        })
    }
}

pub(crate) fn metacontroller(hooks: &Arc<Hooks>) -> Operator {
    operator(Options {
        transport: Arc::clone(hooks) as Arc<dyn Transport>,
        exec: false,
    })
    .definition(Thing::crd())
}

/// A composite controller of things with maps, and more of a spec.
pub(crate) fn composite(name: &str, more: Value) -> CompositeController {
    let mut spec = json!({
        "generateSelector": true,
        "parentResource": {"apiVersion": "example.com/v1", "resource": "things"},
        "childResources": [{
            "apiVersion": "v1", "resource": "configmaps",
            "updateStrategy": {"method": "InPlace"},
        }],
        "hooks": {"sync": {"webhook": {"url": "http://hook/sync"}}},
    });
    let Value::Object(more) = more else {
        panic!("{more} is no map");
    };
    for (field, value) in more {
        spec[field] = value;
    }
    CompositeController::new(name, serde_json::from_value(spec).unwrap())
}

/// A map for each name in the spec; the status counts those that are there.
pub(crate) fn maps(request: &Value) -> Value {
    let parent = &request["parent"];
    let names = parent["spec"]["maps"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let map = |name: &Value| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": parent["spec"]["text"]},
        })
    };
    let there = request["children"]["ConfigMap.v1"]
        .as_object()
        .map_or(0, serde_json::Map::len);
    json!({"status": {"maps": there}, "children": names.iter().map(map).collect::<Vec<Value>>()})
}

/// The texts of the maps in a namespace, by name.
pub(crate) async fn texts(cluster: &TestCluster) -> BTreeMap<String, String> {
    let maps = cluster.list::<ConfigMap>().await.into_iter();
    let maps = maps.filter_map(|map| {
        let text = map.data?.get("text")?.clone();
        Some((map.metadata.name?, text))
    });
    maps.collect()
}

pub(crate) fn expected(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(name, text)| ((*name).into(), (*text).into()))
        .collect()
}

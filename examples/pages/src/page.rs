//! A Page: a text, and the web server that shows it.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use windlass::{Observed, hash_of, name_within};

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "web.example.com",
    version = "v1",
    kind = "Page",
    namespaced,
    status = "PageStatus",
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#
)]
pub struct PageSpec {
    /// The text of the page.
    pub text: String,
    /// How many servers show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 50))]
    pub replicas: Option<i32>,
    /// Whether a Service makes it reachable.
    #[serde(default)]
    pub public: bool,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageStatus {
    /// How many servers are ready.
    #[serde(default)]
    pub ready: i32,
    /// The generation that all of this is about; kept by the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Available, Progressing and Degraded; kept by the framework.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// The name of what belongs to a page: never too long, however long the page's own name is.
fn name_of(page: &Page, what: &str) -> String {
    name_within(63, [page.name_any().as_str(), what])
}

fn labels_of(page: &Page) -> BTreeMap<String, String> {
    [(
        "page".to_owned(),
        name_within(63, [page.name_any().as_str()]),
    )]
    .into()
}

/// The text, where the server finds it.
pub(crate) fn content(page: &Page) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name_of(page, "content"));
    map.data = Some([("index.html".to_owned(), page.spec.text.clone())].into());
    map
}

/// The server. Its pods are replaced when the text changes: the hash of it is an annotation.
pub(crate) fn server(page: &Page) -> Deployment {
    let labels = labels_of(page);
    object(json!({
        "metadata": { "name": name_of(page, "server") },
        "spec": {
            "replicas": page.spec.replicas.unwrap_or(1),
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": { "web.example.com/content": hash_of(&page.spec.text) },
                },
                "spec": {
                    "containers": [{
                        "name": "web",
                        "image": "nginx:1.29",
                        "ports": [{ "containerPort": 80 }],
                        "volumeMounts": [{ "name": "content", "mountPath": "/usr/share/nginx/html" }],
                    }],
                    "volumes": [{ "name": "content", "configMap": { "name": name_of(page, "content") } }],
                },
            },
        },
    }))
}

/// A name to reach it by.
pub(crate) fn service(page: &Page) -> Service {
    object(json!({
        "metadata": { "name": name_of(page, "page") },
        "spec": { "selector": labels_of(page), "ports": [{ "port": 80 }] },
    }))
}

/// An object written as JSON: shorter than its type where most fields are left out. A wrong field
/// is found by the first test that reads it.
fn object<T: DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

/// What runs.
pub(crate) fn status(_: &Page, observed: &Observed) -> PageStatus {
    let server = observed.first::<Deployment>();
    let ready = server.and_then(|server| server.status.as_ref()?.ready_replicas);
    PageStatus {
        ready: ready.unwrap_or(0),
        ..PageStatus::default()
    }
}

//! What the operators of the corpus are written with: a cache that watches fill, and short forms of
//! requests. It is small and plain on purpose; what is wrong in an operator is in the operator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::select_all;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{self, ListSemantic, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The finalizer of the operators.
const FINALIZER: &str = "example.com/web";

/// A kind, short: `web`, `configmap`.
pub(crate) type Kind = &'static str;

/// What the operator remembers, and what the world looks like to it.
#[derive(Clone)]
pub(crate) struct Ctx {
    client: Client,
    /// By kind and name, as the watches showed it.
    pub(crate) cache: BTreeMap<(Kind, String), Value>,
    /// What has just happened.
    pub(crate) event: Seen,
    /// What the process remembers; gone when it is killed.
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    numbers: BTreeMap<String, i64>,
    times: BTreeMap<String, Instant>,
    /// When to reconcile again though nothing has happened.
    again: Option<Instant>,
}

/// An event of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// An object is there, as this.
    There(Kind, Value),
    /// An object is gone.
    Gone(Kind, Value),
    /// What there is was listed, or a failed reconcile is due again.
    Listed,
}

/// A reconcile of everything there is.
pub(crate) type Reconcile = fn(Ctx) -> BoxFuture<'static, kube::Result<()>>;

/// How an operator keeps its cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// As client-go before 0.35: any version of a list will do. It replaces what was there.
    Any,
    /// The same, but it adds to what was there.
    Adding,
    /// The most recent, which replaces what was there.
    Recent,
}

pub(crate) fn api(client: &Client, kind: Kind) -> Api<DynamicObject> {
    let (group, version, name) = match kind {
        "web" => ("example.com", "v1", "Web"),
        "configmap" => ("", "v1", "ConfigMap"),
        "secret" => ("", "v1", "Secret"),
        "pod" => ("", "v1", "Pod"),
        "claim" => ("", "v1", "PersistentVolumeClaim"),
        "lease" => ("coordination.k8s.io", "v1", "Lease"),
        other => panic!("no kind {other}"),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, name));
    Api::default_namespaced_with(client.clone(), &resource)
}

pub(crate) fn typed(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Runs an operator: watches these kinds and reconciles after each event, again after a failure.
pub(crate) async fn run(client: Client, kinds: &[Kind], lists: Lists, reconcile: Reconcile) {
    let watches = kinds.iter().map(|kind| {
        let config = watcher::Config {
            list_semantic: match lists {
                Lists::Any | Lists::Adding => ListSemantic::Any,
                Lists::Recent => ListSemantic::MostRecent,
            },
            // With a limit kube asks for the most recent in any case.
            page_size: None,
            ..watcher::Config::default()
        };
        let kind = *kind;
        watcher(api(&client, kind), config)
            .map(move |event| (kind, event))
            .boxed()
    });
    let mut events = select_all(watches);
    let mut ctx = Ctx {
        client: client.clone(),
        cache: BTreeMap::new(),
        event: Seen::Listed,
        memory: Arc::default(),
    };
    let mut listing: BTreeMap<Kind, Vec<Value>> = BTreeMap::new();
    let mut listed = 0;
    let mut failed = false;
    loop {
        let retry = tokio::time::sleep(Duration::from_secs(1));
        let again = ctx.memory.lock().ok().and_then(|memory| memory.again);
        let due = tokio::time::sleep_until(again.unwrap_or_else(Instant::now));
        let next = tokio::select! {
            biased;
            next = events.next() => next,
            () = retry, if failed => {
                ctx.event = Seen::Listed;
                failed = reconcile(ctx.clone()).await.is_err();
                continue;
            }
            () = due, if again.is_some() && listed >= kinds.len() => {
                if let Ok(mut memory) = ctx.memory.lock() {
                    memory.again = None;
                }
                ctx.event = Seen::Listed;
                failed |= reconcile(ctx.clone()).await.is_err();
                continue;
            }
        };
        let Some((kind, event)) = next else {
            return;
        };
        let name = |object: &Value| {
            object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        match event {
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
            Ok(watcher::Event::Init) => {
                listing.insert(kind, Vec::new());
                continue;
            }
            Ok(watcher::Event::InitApply(object)) => {
                listing.entry(kind).or_default().push(typed(object));
                continue;
            }
            Ok(watcher::Event::InitDone) => {
                listed += 1;
                if lists != Lists::Adding {
                    ctx.cache.retain(|(of, _), _| *of != kind);
                }
                for object in listing.remove(kind).unwrap_or_default() {
                    ctx.cache.insert((kind, name(&object)), object);
                }
                ctx.event = Seen::Listed;
            }
            Ok(watcher::Event::Apply(object)) => {
                let object = typed(object);
                ctx.cache.insert((kind, name(&object)), object.clone());
                ctx.event = Seen::There(kind, object);
            }
            Ok(watcher::Event::Delete(object)) => {
                let object = typed(object);
                ctx.cache.remove(&(kind, name(&object)));
                ctx.event = Seen::Gone(kind, object);
            }
        }
        if listed >= kinds.len() {
            failed |= reconcile(ctx.clone()).await.is_err();
        }
    }
}

impl Ctx {
    /// Every web that the cache has.
    pub(crate) fn webs(&self) -> Vec<Value> {
        let webs = self.cache.iter().filter(|((kind, _), _)| *kind == "web");
        webs.map(|(_, web)| web.clone()).collect()
    }

    /// What the cache has.
    pub(crate) fn cached(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.cache.get(&(kind, name.to_owned()))
    }

    /// What the API server has.
    pub(crate) async fn get(&self, kind: Kind, name: &str) -> kube::Result<Option<Value>> {
        Ok(api(&self.client, kind).get_opt(name).await?.map(typed))
    }

    pub(crate) async fn list(&self, kind: Kind, selector: &str) -> kube::Result<Vec<Value>> {
        let list = api(&self.client, kind)
            .list(&ListParams::default().labels(selector))
            .await?;
        Ok(list.items.into_iter().map(typed).collect())
    }

    pub(crate) async fn create(&self, kind: Kind, object: Value) -> kube::Result<()> {
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        api(&self.client, kind)
            .create(&PostParams::default(), &object)
            .await
            .map(drop)
    }

    /// Creates what may be there already.
    pub(crate) async fn ensure(&self, kind: Kind, object: Value) -> kube::Result<()> {
        match self.create(kind, object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            other => other,
        }
    }

    pub(crate) async fn patch(&self, kind: Kind, name: &str, patch: Value) -> kube::Result<()> {
        let patch = Patch::Merge(patch);
        api(&self.client, kind)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
    }

    pub(crate) async fn status(&self, name: &str, status: Value) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        api(&self.client, "web")
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
    }

    /// Deletes what may be gone already.
    pub(crate) async fn delete(&self, kind: Kind, name: &str) -> kube::Result<()> {
        self.delete_with(kind, name, DeleteParams::background())
            .await
    }

    /// Deletes this very object.
    pub(crate) async fn delete_this(&self, kind: Kind, object: &Value) -> kube::Result<()> {
        let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
        let params = DeleteParams::background();
        let params = DeleteParams {
            preconditions: Some(kube::api::Preconditions {
                uid,
                ..kube::api::Preconditions::default()
            }),
            ..params
        };
        self.delete_with(kind, name_of(object), params).await
    }

    async fn delete_with(&self, kind: Kind, name: &str, params: DeleteParams) -> kube::Result<()> {
        match api(&self.client, kind).delete(name, &params).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            other => other.map(drop),
        }
    }

    /// The status of this very version of a web.
    pub(crate) async fn status_of(&self, web: &Value, status: Value) -> kube::Result<()> {
        let version = &web["metadata"]["resourceVersion"];
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
        api(&self.client, "web")
            .patch_status(name_of(web), &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
    }

    /// Adds the finalizer, unless it is there.
    pub(crate) async fn hold(&self, web: &Value) -> kube::Result<()> {
        if is_held(web) {
            return Ok(());
        }
        let patch = json!({ "metadata": { "finalizers": [FINALIZER] } });
        self.patch("web", name_of(web), patch).await
    }

    /// Removes the finalizer of this very web, which may be gone already.
    pub(crate) async fn release(&self, web: &Value) -> kube::Result<()> {
        let name = name_of(web);
        let found = self.get("web", name).await?.unwrap_or_default();
        if found["metadata"]["uid"] != web["metadata"]["uid"] || !is_held(&found) {
            return Ok(());
        }
        let finalizers = found["metadata"]["finalizers"].as_array().cloned();
        let mut finalizers = finalizers.unwrap_or_default();
        finalizers.retain(|one| one != FINALIZER);
        let version = &found["metadata"]["resourceVersion"];
        let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } });
        self.patch("web", name, patch).await
    }

    /// What the process remembers under this name; remembers this from now on.
    pub(crate) fn remember(&self, what: &str, value: i64) -> Option<i64> {
        let memory = self.memory.lock();
        memory.ok()?.numbers.insert(what.to_owned(), value)
    }

    pub(crate) fn remembered(&self, what: &str) -> Option<i64> {
        self.memory.lock().ok()?.numbers.get(what).copied()
    }

    /// Remembers when something is over.
    pub(crate) fn expire(&self, what: &str, after: Duration) {
        if let Ok(mut memory) = self.memory.lock() {
            memory.times.insert(what.to_owned(), Instant::now() + after);
        }
    }

    /// How long it still is until then.
    pub(crate) fn until(&self, what: &str) -> Option<Duration> {
        let at = *self.memory.lock().ok()?.times.get(what)?;
        at.checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
    }

    /// Reconciles again after so long, though nothing has happened.
    pub(crate) fn again_in(&self, after: Duration) {
        if let Ok(mut memory) = self.memory.lock() {
            memory.again = Some(Instant::now() + after);
        }
    }
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether the finalizer of the operators is on a web.
pub(crate) fn is_held(web: &Value) -> bool {
    let finalizers = web["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.contains(&json!(FINALIZER)))
}

pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// A `ConfigMap` of a web, owned by it, that says a size.
pub(crate) fn map(web: &Value, name: &str, size: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "ownerReferences": [owner(web)] },
        "data": { "size": size.to_string() },
    })
}

/// Whether it says this size.
pub(crate) fn says(child: &Value, size: &Value) -> bool {
    child["data"]["size"].as_str() == Some(&size.to_string())
}

pub(crate) fn owner(web: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Web",
        "name": web["metadata"]["name"], "uid": web["metadata"]["uid"],
    })
}

/// A claim that nobody owns.
pub(crate) fn claim(web: &Value, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "labels": { "web": web["metadata"]["name"], "of": web["metadata"]["uid"] } },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    })
}

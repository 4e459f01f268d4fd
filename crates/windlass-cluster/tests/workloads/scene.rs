//! A scenario's namespace: what is done in it, and how to wait for what comes of it.
//!
//! Every wait is a watch with a limit. Under virtual time the limit costs nothing, and on a real
//! server it is long enough for a machine that is busy with other tests.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event as Change, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Pods of this image never become ready.
pub(crate) const BROKEN: &str = "broken";
/// The name of a node that nobody runs: what becomes of its pods says the test.
pub(crate) const IDLE: &str = "idle";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// What can be waited for.
pub(crate) trait Object:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
}
impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
}

/// What a namespace can hold.
pub(crate) trait Namespaced: Object + Resource<Scope = NamespaceResourceScope> {}
impl<K> Namespaced for K where K: Object + Resource<Scope = NamespaceResourceScope> {}

/// One scenario's namespace.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Scene {
    /// A new namespace, ready for pods.
    pub(crate) async fn open(client: Client, name: &str) -> Self {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some(format!("{name}-"));
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        let scene = Self {
            client,
            namespace: created.expect("a new namespace").name_any(),
        };
        scene
            .until::<ServiceAccount>("default", "there", |_| true)
            .await;
        scene
    }

    pub(crate) fn api<K: Namespaced>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn create<K: Namespaced + serde::Serialize>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).expect("a valid object");
        let created = self.api().create(&PostParams::default(), &object).await;
        created.unwrap_or_else(|error| panic!("cannot create {}: {error}", object.name_any()))
    }

    pub(crate) async fn patch<K: Namespaced>(&self, name: &str, patch: Value) -> K {
        let params = PatchParams::default();
        let patched = self.api().patch(name, &params, &Patch::Merge(patch)).await;
        patched.unwrap_or_else(|error| panic!("cannot patch {name}: {error}"))
    }

    pub(crate) async fn delete<K: Namespaced>(&self, name: &str, how: &DeleteParams) {
        let deleted = self.api::<K>().delete(name, how).await;
        deleted.unwrap_or_else(|error| panic!("cannot delete {name}: {error}"));
    }

    pub(crate) async fn find<K: Namespaced>(&self, name: &str) -> Option<K> {
        let found = self.api().get_opt(name).await;
        found.unwrap_or_else(|error| panic!("cannot get {name}: {error}"))
    }

    pub(crate) async fn list<K: Namespaced>(&self) -> Vec<K> {
        let list = self.api().list(&ListParams::default()).await;
        list.unwrap_or_else(|error| panic!("cannot list {}: {error}", K::plural(&())))
            .items
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.list().await
    }

    pub(crate) async fn sets(&self) -> Vec<ReplicaSet> {
        self.list().await
    }

    /// Waits until the object is there and as expected.
    pub(crate) async fn until<K: Namespaced>(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&K) -> bool,
    ) -> K {
        let found = until(&self.api(), name, what, |object| object.is_some_and(&is)).await;
        found.expect("an object that is there")
    }

    /// Waits until the object is gone.
    pub(crate) async fn until_gone<K: Namespaced>(&self, name: &str) {
        until(&self.api(), name, "gone", |object: Option<&K>| {
            object.is_none()
        })
        .await;
    }

    /// Waits until the objects of a kind, taken together, are as expected.
    pub(crate) async fn until_all<K: Namespaced>(
        &self,
        what: &str,
        are: impl Fn(&[K]) -> bool,
    ) -> Vec<K> {
        let mut objects: BTreeMap<String, K> = BTreeMap::new();
        let wait = async {
            let mut events = watcher(self.api::<K>(), watcher::Config::default()).boxed();
            let mut is_listed = false;
            while let Some(event) = events.next().await {
                match event.expect("a watch") {
                    Change::Init => {
                        objects.clear();
                        is_listed = false;
                    }
                    Change::InitDone => is_listed = true,
                    Change::InitApply(object) | Change::Apply(object) => {
                        objects.insert(object.name_any(), object);
                    }
                    Change::Delete(object) => {
                        objects.remove(&object.name_any());
                    }
                }
                let all: Vec<K> = objects.values().cloned().collect();
                if is_listed && are(&all) {
                    return all;
                }
            }
            unreachable!("a watch has no end")
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("not {what} in time: {objects:#?}"))
    }

    /// Makes a pod that no node runs run and be ready.
    pub(crate) async fn make_ready(&self, pod: &str) {
        let ready =
            json!({ "type": "Ready", "status": "True", "lastTransitionTime": self.now().await });
        let status = json!({ "phase": "Running", "conditions": [ready] });
        self.set_status::<Pod>(pod, status).await;
    }

    /// Makes a pod that no node runs end with an exit code.
    pub(crate) async fn end(&self, pod: &str, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let ended = json!({ "exitCode": code, "finishedAt": self.now().await });
        let container = json!({
            "name": "main", "image": "a", "imageID": "a", "ready": false, "restartCount": 0,
            "state": { "terminated": ended },
        });
        let status = json!({ "phase": phase, "containerStatuses": [container] });
        self.set_status::<Pod>(pod, status).await;
    }

    pub(crate) async fn set_status<K: Namespaced>(&self, name: &str, status: Value) {
        let patch = Patch::Strategic(json!({ "status": status }));
        let patched = self
            .api::<K>()
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.unwrap_or_else(|error| panic!("cannot set the status of {name}: {error}"));
    }

    /// The time as the API server has it: that of an object it makes now, to the second.
    pub(crate) async fn now(&self) -> String {
        let map = json!({ "metadata": { "generateName": "now-" } });
        let map = self.create::<ConfigMap>(map).await;
        map.metadata
            .creation_timestamp
            .expect("a time")
            .0
            .to_string()
    }

    /// Waits until an event tells this about an object.
    pub(crate) async fn until_told(&self, object: &str, reason: &str, message: &str) {
        let is = |event: &Event| {
            event.involved_object.name.as_deref() == Some(object)
                && event.reason.as_deref() == Some(reason)
                && event.message.as_deref() == Some(message)
        };
        let what = format!("told {reason} of {object}: {message}");
        self.until_all::<Event>(&what, |events| events.iter().any(is))
            .await;
    }

    /// The names of the pods, in order.
    pub(crate) async fn pod_names(&self) -> Vec<String> {
        self.pods()
            .await
            .iter()
            .map(ResourceExt::name_any)
            .collect()
    }

    /// Waits until these are the pods.
    pub(crate) async fn until_pods(&self, names: &[&str]) -> Vec<Pod> {
        let what = format!("the pods {names:?}");
        let are = |pods: &[Pod]| {
            pods.iter()
                .map(ResourceExt::name_any)
                .eq(names.iter().copied())
        };
        self.until_all::<Pod>(&what, are).await
    }

    /// Waits until a roll-out has arrived.
    pub(crate) async fn until_rolled_out(&self, name: &str) -> Deployment {
        self.until(name, "rolled out", |deployment: &Deployment| {
            let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
            deployment.status.as_ref().is_some_and(|status| {
                status.observed_generation == deployment.metadata.generation
                    && status.updated_replicas == wanted
                    && status.replicas == wanted
                    && status.available_replicas == wanted
                    && reason(deployment, "Progressing") == "NewReplicaSetAvailable"
            })
        })
        .await
    }
}

/// Waits until one object, or its absence, is as expected.
pub(crate) async fn until<K: Object>(
    api: &Api<K>,
    name: &str,
    what: &str,
    is: impl Fn(Option<&K>) -> bool,
) -> Option<K> {
    let wait = tokio::time::timeout(PATIENCE, await_condition(api.clone(), name, is));
    let Ok(found) = wait.await else {
        panic!("{name} not {what} in time: {:#?}", api.get_opt(name).await)
    };
    found.expect("a watch")
}

/// A Deployment of `replicas` pods of one image.
pub(crate) fn web(replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "annotations": { "team": "blue" } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

/// A patch that changes the image.
pub(crate) fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

pub(crate) fn reason<'a>(deployment: &'a Deployment, type_: &str) -> &'a str {
    deployment
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .find(|condition| condition.type_ == type_)
        .and_then(|condition| condition.reason.as_deref())
        .unwrap_or_default()
}

pub(crate) fn annotation<'a, K: Resource>(object: &'a K, key: &str) -> &'a str {
    let annotations = object.meta().annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(key))
        .map_or("", String::as_str)
}

/// The spec of a pod that no node runs, and that goes at once when it is deleted.
pub(crate) fn idle() -> Value {
    json!({
        "nodeName": IDLE,
        "terminationGracePeriodSeconds": 0,
        "containers": [{ "name": "main", "image": "a" }],
    })
}

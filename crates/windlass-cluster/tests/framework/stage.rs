//! What the tests of the framework share: a log, small objects, a kind that may be missing.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, Client, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::kind::KindInfo;
use windlass_cluster::{Request, TestCluster, Verb};

/// Lines that reconcilers write, and tests read.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    /// The lines since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The lines since the last call, each once: what is made wakes its maker again.
    pub(crate) fn distinct(&self) -> Vec<String> {
        let mut lines = self.take();
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

pub(crate) fn secret(name: &str) -> Secret {
    Secret {
        metadata: named(name),
        ..Secret::default()
    }
}

pub(crate) fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ConfigMap {
        metadata: named(name),
        data: Some(data.collect()),
        ..ConfigMap::default()
    }
}

/// A kind of its own.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Gadget", namespaced)]
pub(crate) struct GadgetSpec {
    #[serde(default)]
    pub(crate) size: i32,
}

pub(crate) fn gadget(name: &str, size: i32) -> Gadget {
    Gadget::new(name, GadgetSpec { size })
}

pub(crate) fn gadget_kind() -> KindInfo {
    KindInfo::of::<Gadget>()
}

/// Installs the kind.
pub(crate) async fn install(cluster: &TestCluster) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let crd = Gadget::crd();
    let params = PatchParams::apply("test").force();
    let (name, patch) = (crd.name_any(), Patch::Apply(&crd));
    definitions.patch(&name, &params, &patch).await.unwrap();
    cluster.settle().await;
}

/// Removes the kind, and every object of it.
pub(crate) async fn uninstall(cluster: &TestCluster) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let name = Gadget::crd().name_any();
    let deleted = definitions.delete(&name, &DeleteParams::default()).await;
    deleted.unwrap();
    cluster.settle().await;
}

pub(crate) fn gadgets(client: Client) -> Api<DynamicObject> {
    let kind = gadget_kind();
    let resource = kube::core::ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural,
    };
    Api::namespaced_with(client, "default", &resource)
}

/// How many requests of this verb an operator sent for a resource.
pub(crate) fn count(cluster: &TestCluster, operator: &str, verb: Verb, resource: &str) -> usize {
    let matches = |one: &&Request| one.verb == verb && one.resource == resource;
    let requests = cluster.requests_of(operator);
    requests.iter().filter(matches).count()
}

/// The writes of an operator, as people write them.
pub(crate) fn writes(cluster: &TestCluster, operator: &str) -> Vec<String> {
    let requests = cluster.requests_of(operator);
    let writes = requests.iter().filter(|one| one.verb.writes());
    writes.map(ToString::to_string).collect()
}

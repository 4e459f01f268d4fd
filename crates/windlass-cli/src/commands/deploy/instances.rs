//! The objects of an operator's own kinds.
//!
//! They are deleted before their kind is: whoever cleans up after an object, a finalizer or the
//! garbage collector, has to be able to look at it until the end.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use tokio::time::{Duration, Instant, sleep};

use super::objects::{LIMIT, shown};
use crate::error::{Error, Result, doing};

/// How often is looked whether they are gone.
const PERIOD: Duration = Duration::from_millis(200);

/// Deletes every object of a definition's kind, with what was made for it; answers how many there
/// were.
pub(super) async fn remove_instances(client: &Client, crd: &DynamicObject) -> Result<usize> {
    let definition: CustomResourceDefinition = crd
        .clone()
        .try_parse()
        .map_err(|error| Error::Other(format!("{}: {error}", shown(crd))))?;
    let spec = definition.spec;
    let Some(version) = spec.versions.iter().find(|version| version.served) else {
        return Ok(0);
    };
    let resource = ApiResource {
        group: spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", spec.group, version.name),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    };
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let what = format!("{}.{}", resource.plural, resource.group);
    let list = || async {
        let found = all.list_metadata(&ListParams::default()).await;
        found
            .map(|found| found.items)
            .map_err(doing(format!("list {what}")))
    };
    let found = list().await?;
    for object in &found {
        let name = object.name_any();
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => all.clone(),
        };
        match api.delete(&name, &DeleteParams::foreground()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(doing(format!("delete {what} {name}"))(error)),
        }
    }
    let began = Instant::now();
    loop {
        let left = list().await?;
        let Some(first) = left.first() else {
            return Ok(found.len());
        };
        if began.elapsed() > LIMIT {
            let held = first.metadata.finalizers.clone().unwrap_or_default();
            return Err(Error::Other(format!(
                "waited {} s in vain for {} of {what} to be gone; {} is held by {}",
                LIMIT.as_secs(),
                left.len(),
                first.name_any(),
                held.join(", ")
            )));
        }
        sleep(PERIOD).await;
    }
}

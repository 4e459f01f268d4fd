//! An object as the watches of the collector read it: of its metadata only what says who owns it.
//!
//! Most of the metadata of an object is the record of its writers. The collector sees every object
//! of the cluster at each of its changes, so it does not read what it does not look at.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::core::DynamicResourceScope;
use kube::discovery::ApiResource;
use serde::{Deserialize, Deserializer};

/// An object of any kind.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Seen {
    #[serde(default, deserialize_with = "ownership")]
    pub(crate) metadata: ObjectMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ownership {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

fn ownership<'de, D: Deserializer<'de>>(metadata: D) -> Result<ObjectMeta, D::Error> {
    let read = Ownership::deserialize(metadata)?;
    Ok(ObjectMeta {
        namespace: read.namespace,
        name: read.name,
        uid: read.uid,
        resource_version: read.resource_version,
        deletion_timestamp: read.deletion_timestamp,
        finalizers: read.finalizers,
        owner_references: read.owner_references,
        ..ObjectMeta::default()
    })
}

impl Resource for Seen {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_read_as_far_as_it_says_who_owns_the_object() {
        let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "blockOwnerDeletion": true});
        let whole = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {
                "namespace": "n", "name": "m", "uid": "2", "resourceVersion": "3",
                "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["x/y"],
                "ownerReferences": [owner], "labels": {"a": "b"},
                "managedFields": [{"manager": "m", "operation": "Update"}],
            },
        });
        let seen: Seen = serde_json::from_value(whole.clone()).expect("an object");
        let mut metadata: ObjectMeta =
            serde_json::from_value(whole["metadata"].clone()).expect("metadata");
        metadata.labels = None;
        metadata.managed_fields = None;
        assert_eq!(seen.metadata, metadata);
    }
}

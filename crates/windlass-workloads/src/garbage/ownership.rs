//! [`Ownership`]: what is read of every object that a watch shows.
//!
//! The API server is asked for metadata alone; of that, labels, annotations and the record of who
//! set which field, which is most of it, are skipped without being kept.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::core::DynamicResourceScope;
use kube::discovery::ApiResource;
use serde::Deserialize;

/// An object's name and owners, and whether it is on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    /// With these fields only.
    pub metadata: ObjectMeta,
}

/// It as the API server sends it.
#[derive(Deserialize)]
struct Sent {
    metadata: SentMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<Time>,
}

impl<'de> Deserialize<'de> for Ownership {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sent { metadata } = Sent::deserialize(deserializer)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            owner_references: metadata.owner_references,
            finalizers: metadata.finalizers,
            deletion_timestamp: metadata.deletion_timestamp,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata })
    }
}

impl Resource for Ownership {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
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

    #[test]
    fn metadata_is_read_as_far_as_ownership_needs_it() {
        let sent = serde_json::json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {
                "name": "a",
                "namespace": "b",
                "uid": "c",
                "resourceVersion": "7",
                "labels": {"app": "x"},
                "finalizers": ["orphan"],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "d", "uid": "e"}],
                "managedFields": [{"manager": "m"}],
            },
        });
        let read: Ownership = serde_json::from_value(sent.clone()).unwrap();
        let mut whole: ObjectMeta = serde_json::from_value(sent["metadata"].clone()).unwrap();
        (whole.labels, whole.managed_fields) = (None, None);
        assert_eq!(read.metadata, whole);
    }
}

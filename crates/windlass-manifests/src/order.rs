//! The order in which objects are applied: what others need comes first. It is kustomize's, so that
//! what it builds from the folders and what is written at once are the same.

use serde_json::Value;

use crate::Manifest;

/// Kinds that come first, in this order.
const FIRST: [&str; 11] = [
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "Deployment",
];

/// Kinds that come last: webhooks are called from when they are there.
const LAST: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

pub(crate) fn sort(manifests: &mut [Manifest]) {
    manifests.sort_by_cached_key(|manifest| {
        let value = manifest.value();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&value["kind"]);
        let first = FIRST.iter().position(|first| *first == kind);
        let last = LAST.iter().position(|last| *last == kind);
        let place = first.unwrap_or(FIRST.len() + last.map_or(0, |place| place + 1));
        (place, kind, text(&value["metadata"]["name"]))
    });
}

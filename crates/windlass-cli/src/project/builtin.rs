//! Kinds of Kubernetes itself, that a project may have webhooks for.

use super::plural::plural_of;
use super::resource::{Resource, Webhooks};

/// Groups as people type them, in full, with version, module in k8s-openapi, and kinds.
const GROUPS: &[(&str, &str, &str, &str, &[&str])] = &[
    (
        "core",
        "",
        "v1",
        "core",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    (
        "apps",
        "apps",
        "v1",
        "apps",
        &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
    ),
    ("batch", "batch", "v1", "batch", &["CronJob", "Job"]),
    (
        "autoscaling",
        "autoscaling",
        "v2",
        "autoscaling",
        &["HorizontalPodAutoscaler"],
    ),
    ("policy", "policy", "v1", "policy", &["PodDisruptionBudget"]),
    (
        "networking",
        "networking.k8s.io",
        "v1",
        "networking",
        &["Ingress", "IngressClass", "NetworkPolicy"],
    ),
    (
        "rbac",
        "rbac.authorization.k8s.io",
        "v1",
        "rbac",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    (
        "storage",
        "storage.k8s.io",
        "v1",
        "storage",
        &["StorageClass", "VolumeAttachment"],
    ),
    (
        "scheduling",
        "scheduling.k8s.io",
        "v1",
        "scheduling",
        &["PriorityClass"],
    ),
    (
        "coordination",
        "coordination.k8s.io",
        "v1",
        "coordination",
        &["Lease"],
    ),
    (
        "discovery",
        "discovery.k8s.io",
        "v1",
        "discovery",
        &["EndpointSlice"],
    ),
];

/// A kind of Kubernetes, and the path of its type; the group is as people type it or in full.
pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<(Resource, String)> {
    let (_, full, _, module, _) = GROUPS.iter().find(|(short, full, of, _, kinds)| {
        (*short == group || *full == group) && *of == version && kinds.contains(&kind)
    })?;
    let resource = Resource {
        api: None,
        controller: false,
        domain: None,
        group: (*full).to_owned(),
        kind: kind.to_owned(),
        plural: plural_of(kind),
        version: version.to_owned(),
        webhooks: Webhooks::default(),
    };
    Some((
        resource,
        format!("k8s_openapi::api::{module}::{version}::{kind}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_found_under_both_spellings_of_their_group() {
        let (pod, path) = builtin("core", "v1", "Pod").unwrap();
        assert_eq!(path, "k8s_openapi::api::core::v1::Pod");
        assert_eq!((pod.group.as_str(), pod.plural.as_str()), ("", "pods"));
        assert!(builtin("", "v1", "Pod").is_some());
        assert!(builtin("networking.k8s.io", "v1", "Ingress").is_some());
        assert!(builtin("core", "v2", "Pod").is_none());
        assert!(builtin("apps", "v1", "SidecarSet").is_none());
    }
}

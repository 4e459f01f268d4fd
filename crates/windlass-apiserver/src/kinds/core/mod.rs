//! The kinds of core/v1.

mod binding;
mod config_map;
pub(crate) mod data;
mod endpoints;
mod event;
mod limit_range;
pub(crate) mod limits;
mod namespace;
mod node;
pub(crate) mod persistent_volume;
mod persistent_volume_claim;
pub(crate) mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub(crate) mod service;
mod service_account;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "bindings" => &binding::Binding,
        "configmaps" => &config_map::ConfigMap,
        "endpoints" => &endpoints::Endpoints,
        "events" => &event::Event,
        "limitranges" => &limit_range::LimitRange,
        "namespaces" => &namespace::Namespace,
        "nodes" => &node::Node,
        "persistentvolumes" => &persistent_volume::PersistentVolume,
        "persistentvolumeclaims" => &persistent_volume_claim::PersistentVolumeClaim,
        "pods" => &pod::Pod,
        "podtemplates" => &pod_template::PodTemplate,
        "replicationcontrollers" => &replication_controller::ReplicationController,
        "resourcequotas" => &resource_quota::ResourceQuota,
        "secrets" => &secret::Secret,
        "services" => &service::Service,
        "serviceaccounts" => &service_account::ServiceAccount,
        _ => return None,
    })
}

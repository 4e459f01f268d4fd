//! What an update of a workload, or of what it needs, may not change.

use serde_json::Value;

use super::at::At;
use super::{apps, cluster, event, job, limits, pod, template};
use crate::resource::Resource;
use crate::status::Cause;

/// Everything that `new` changes and may not.
pub(in crate::validation) fn check(
    new: &Value,
    old: &Value,
    resource: &Resource,
    causes: &mut Vec<Cause>,
) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => cluster::node_update(new, old, causes),
        ("", "pods") => pod::check_update(new, old, causes),
        ("", "resourcequotas") => limits::quota_update(new, old, causes),
        ("apps", "controllerrevisions") => cluster::immutable(new, old, "data", causes),
        ("apps", "daemonsets" | "deployments" | "replicasets") => {
            let spec = At::root(&new["spec"], "spec");
            template::immutable_selector(&spec.child("selector"), &old["spec"]["selector"], causes);
        }
        ("apps", "statefulsets") => apps::stateful_set_update(new, old, causes),
        ("batch", "jobs") => job::check_update(new, old, causes),
        ("events.k8s.io", "events") => event::check_newer_update(new, old, causes),
        ("node.k8s.io", "runtimeclasses") => cluster::immutable(new, old, "handler", causes),
        ("scheduling.k8s.io", "priorityclasses") => {
            cluster::priority_class_update(new, old, causes);
        }
        _ => {}
    }
}

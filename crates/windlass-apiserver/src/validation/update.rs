//! What an update may not change.

use serde_json::{Value, json};

use super::at::At;
use super::{apps, cluster, event, job, limits, pod, template};
use crate::resource::Resource;
use crate::status::{Cause, field};

/// Everything that `new` changes and may not.
pub(crate) fn check(new: &Value, old: &Value, resource: &Resource) -> Vec<Cause> {
    if resource.is_custom() {
        return Vec::new();
    }
    let mut causes = Vec::new();
    workload(new, old, resource, &mut causes);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            role_ref(&new["roleRef"], &old["roleRef"], &mut causes);
        }
        _ => {}
    }
    causes
}

/// Workloads and what they need.
fn workload(new: &Value, old: &Value, resource: &Resource, causes: &mut Vec<Cause>) {
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

/// Shown under the names of the Go struct.
fn role_ref(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if new != old {
        let shown = json!({"APIGroup": new["apiGroup"], "Kind": new["kind"], "Name": new["name"]});
        causes.push(field::invalid("roleRef", &shown, "cannot change roleRef"));
    }
}

//! Validation of workloads and of what they need: pods in every form, their controllers, the
//! nodes they run on, and what limits them.
//!
//! All causes come in one answer, in Kubernetes' order. One module per Go type that is checked,
//! used by every kind that has such a part.

mod amount;
mod apps;
mod at;
mod autoscaler;
mod cluster;
mod cronjob;
mod difference;
mod event;
mod indexes;
mod internal;
mod job;
mod job_status;
mod label;
mod limits;
mod pod;
mod resources;
mod schedule;
mod status;
mod template;
mod update;
mod warnings;

use serde_json::Value;

use crate::resource::Resource;
use crate::status::Cause;
use at::At;

pub(crate) use cluster::SYSTEM_PRIORITIES;
pub(crate) use label::selects;
pub(super) use status::check as check_status;
pub(super) use update::check as check_update;
pub(super) use warnings::of as warnings;

/// What is wrong with an object that is new, or that was `old`; `None` when it is of another kind.
pub(super) fn check(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
) -> Option<Vec<Cause>> {
    let mut causes = Vec::new();
    let at = At::root(object, "");
    let spec = at.child("spec");
    let is_new = old.is_none();
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "events") => event::check(object, false, &mut causes),
        ("", "limitranges") => limits::limit_range(object, &mut causes),
        ("", "nodes") => cluster::node(object, is_new, &mut causes),
        ("", "pods") => {
            pod::check(object, &mut causes);
            if is_new {
                pod::check_new(object, &mut causes);
            }
        }
        ("", "podtemplates") => template::check(&at.child("template"), &mut causes),
        ("", "replicationcontrollers") => apps::replication_controller(&spec, &mut causes),
        ("", "resourcequotas") => limits::quota(object, &mut causes),
        ("apps", "controllerrevisions") => apps::revision(object, is_new, &mut causes),
        ("apps", "daemonsets") => apps::daemon_set(&spec, &mut causes),
        ("apps", "deployments") => apps::deployment(&spec, &mut causes),
        ("apps", "replicasets") => apps::replica_set(&spec, &mut causes),
        ("apps", "statefulsets") => apps::stateful_set(&spec, is_new, &mut causes),
        ("autoscaling", _) => autoscaler::check(object, &mut causes),
        ("batch", "jobs") => job::check(object, &mut causes),
        ("batch", "cronjobs") => {
            cronjob::check(object, old, &mut causes);
            if is_new {
                cronjob::check_name(object, &mut causes);
            }
        }
        ("coordination.k8s.io", "leases") => cluster::lease(object, &mut causes),
        ("events.k8s.io", "events") => {
            event::check(object, true, &mut causes);
            if is_new {
                event::check_newer(object, &mut causes);
            }
        }
        ("node.k8s.io", "runtimeclasses") => {
            if is_new {
                cluster::runtime_class(object, &mut causes);
            }
        }
        ("policy", "poddisruptionbudgets") => cluster::budget(object, &mut causes),
        ("scheduling.k8s.io", "priorityclasses") => {
            if is_new {
                cluster::priority_class(object, &mut causes);
            }
        }
        _ => return None,
    }
    Some(causes)
}

/// What is wrong with a change of a pod through one of its subresources.
pub(super) fn check_subresource(
    new: &Value,
    old: &Value,
    resource: &Resource,
    subresource: &str,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !resource.is("", "pods") {
        return causes;
    }
    pod::check(new, &mut causes);
    if subresource == "ephemeralcontainers" {
        pod::check_ephemeral_update(new, old, &mut causes);
    } else {
        pod::check_resize(new, old, &mut causes);
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_template_must_fit_its_selector() {
        let spec = json!({
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "b"}}, "spec": {
                "restartPolicy": "Always", "dnsPolicy": "Default",
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}],
            }},
        });
        let mut causes = Vec::new();
        apps::deployment(&At::root(&spec, "spec"), &mut causes);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0].field, "spec.template.metadata.labels");
    }
}

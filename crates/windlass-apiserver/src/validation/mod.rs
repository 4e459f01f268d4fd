//! Validation of built-in kinds, as far as operators meet it.
//!
//! What is not checked here is checked by the type alone. A cause names its field and says what is
//! wrong in Kubernetes' words; all causes come in one answer, in Kubernetes' order. One module per
//! Go type that is checked, used by every kind that has such a part.

mod address;
mod admission_policy;
mod amount;
mod api_service;
mod apps;
mod at;
mod autoscaler;
mod certificate;
mod claim;
mod cluster;
mod cronjob;
mod data;
mod device;
mod difference;
mod endpoints;
mod event;
mod flow;
mod indexes;
mod ingress;
mod internal;
mod job;
mod job_status;
mod kinds;
mod label;
mod limits;
mod namespace;
mod network_policy;
mod node_selector;
mod pod;
mod resources;
mod role;
mod schedule;
mod service;
mod service_address;
mod status;
mod storage;
mod template;
mod update;
mod volume;
mod warnings;
mod webhook;

use serde_json::Value;

use crate::resource::Resource;
use crate::status::Cause;
use at::At;

pub(crate) use cluster::SYSTEM_PRIORITIES;
pub(crate) use label::selects;
pub(crate) use service::check_addresses as service_addresses;
pub(crate) use service_address::name_errors as address_name_errors;
pub(crate) use warnings::of as warnings;

/// What is wrong with a change: with the new object by itself (its metadata, and what `kind_causes`
/// tells), and with what it changes.
pub(crate) fn check_change(
    new: &Value,
    old: &Value,
    resource: &Resource,
    mut metadata: Vec<Cause>,
    kind_causes: impl FnOnce() -> Vec<Cause>,
) -> Vec<Cause> {
    let Some(rules) = kinds::of(&resource.group, &resource.plural) else {
        let changed = update::check(new, old, resource);
        if resource.is("apps", "daemonsets") {
            return [changed, metadata, kind_causes()].concat();
        }
        return [metadata, kind_causes(), changed].concat();
    };
    if rules.update_only {
        (rules.update)(new, old, &mut metadata);
        return metadata;
    }
    let mut causes = Vec::new();
    if rules.update_first {
        (rules.update)(new, old, &mut causes);
    }
    causes.extend(metadata);
    causes.extend(kind_causes());
    if !rules.update_first {
        (rules.update)(new, old, &mut causes);
    }
    causes
}

/// Whether a changed object is not looked at by itself.
pub(crate) fn is_changes_only(resource: &Resource) -> bool {
    kinds::of(&resource.group, &resource.plural).is_some_and(|rules| rules.update_only)
}

/// What is wrong with what changed, whatever the new object is by itself.
pub(crate) fn check_changed(new: &Value, old: &Value, resource: &Resource) -> Vec<Cause> {
    match kinds::of(&resource.group, &resource.plural) {
        Some(rules) => {
            let mut causes = Vec::new();
            (rules.update)(new, old, &mut causes);
            causes
        }
        None => update::check(new, old, resource),
    }
}

/// What is wrong with a change through a subresource.
pub(crate) fn check_subresource(
    new: &Value,
    old: &Value,
    resource: &Resource,
    subresource: &str,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    match subresource {
        "status" => match kinds::of(&resource.group, &resource.plural) {
            Some(rules) => (rules.status)(new, old, &mut causes),
            None => causes.extend(status::check(new, old, resource)),
        },
        "ephemeralcontainers" | "resize" if resource.is("", "pods") => {
            pod::check(new, &mut causes);
            if subresource == "resize" {
                pod::check_resize(new, old, &mut causes);
            } else {
                pod::check_ephemeral_update(new, old, &mut causes);
            }
        }
        "approval" => certificate::check_approval(new, old, &mut causes),
        "finalize" => namespace::check_finalize(new, &mut causes),
        _ => {}
    }
    causes
}

/// What is wrong with a built-in object that is new, or that was `old`.
pub(crate) fn check(object: &Value, old: Option<&Value>, resource: &Resource) -> Vec<Cause> {
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
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class(object, &mut causes),
        ("policy", "poddisruptionbudgets") => cluster::budget(object, &mut causes),
        ("rbac.authorization.k8s.io", plural) if plural.ends_with("bindings") => {
            role::check_binding(object, resource.namespaced, &mut causes);
        }
        ("rbac.authorization.k8s.io", _) => role::check(object, resource.namespaced, &mut causes),
        ("scheduling.k8s.io", "priorityclasses") if is_new => {
            cluster::priority_class(object, &mut causes);
        }
        (group, plural) => {
            if let Some(rules) = kinds::of(group, plural) {
                (rules.check)(object, &mut causes);
            }
        }
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

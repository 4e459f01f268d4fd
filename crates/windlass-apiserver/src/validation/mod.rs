//! Validation of built-in kinds, as far as operators meet it.
//!
//! What is not checked here is checked by the type alone. A cause names its field and says what is
//! wrong in Kubernetes' words; all causes come in one answer, in Kubernetes' order. One module per
//! Go type that is checked, used by every kind that has such a part.

mod address;
pub(crate) mod admission_policy;
mod amount;
pub(crate) mod api_service;
pub(crate) mod apps;
pub(crate) mod at;
pub(crate) mod autoscaler;
pub(crate) mod certificate;
pub(crate) mod claim;
pub(crate) mod cluster;
pub(crate) mod cronjob;
pub(crate) mod data;
pub(crate) mod device;
mod difference;
pub(crate) mod endpoints;
pub(crate) mod event;
pub(crate) mod flow;
mod indexes;
pub(crate) mod ingress;
mod internal;
pub(crate) mod job;
pub(crate) mod job_status;
mod label;
pub(crate) mod limits;
pub(crate) mod namespace;
pub(crate) mod network_policy;
mod node_selector;
pub(crate) mod pod;
mod resources;
pub(crate) mod role;
mod schedule;
pub(crate) mod service;
pub(crate) mod service_address;
pub(crate) mod storage;
pub(crate) mod template;
pub(crate) mod volume;
pub(crate) mod warnings;
pub(crate) mod webhook;

use serde_json::Value;

use crate::kinds::{Order, Strategy};
use crate::status::Cause;

pub(crate) use cluster::SYSTEM_PRIORITIES;
pub(crate) use label::selects;
pub(crate) use service::check_addresses as service_addresses;

/// What is wrong with a change: with the new object by itself (its metadata, and what `kind_causes`
/// finds), and with what it changes.
pub(crate) fn check_change(
    new: &Value,
    old: &Value,
    strategy: &dyn Strategy,
    mut metadata: Vec<Cause>,
    kind_causes: impl FnOnce() -> Vec<Cause>,
) -> Vec<Cause> {
    match strategy.update_order() {
        Order::Only => {
            strategy.check_update(new, old, &mut metadata);
            metadata
        }
        Order::First => [check_changed(new, old, strategy), metadata, kind_causes()].concat(),
        Order::After => {
            metadata.extend(kind_causes());
            strategy.check_update(new, old, &mut metadata);
            metadata
        }
    }
}

/// What is wrong with what changed, whatever the new object is by itself.
pub(crate) fn check_changed(new: &Value, old: &Value, strategy: &dyn Strategy) -> Vec<Cause> {
    let mut causes = Vec::new();
    strategy.check_update(new, old, &mut causes);
    causes
}

/// What is wrong with a change through a subresource.
pub(crate) fn check_subresource(
    new: &Value,
    old: &Value,
    strategy: &dyn Strategy,
    subresource: &str,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    match subresource {
        "status" => strategy.check_status(new, old, &mut causes),
        _ => strategy.check_subresource(new, old, subresource, &mut causes),
    }
    causes
}

/// What is wrong with a built-in object that is new, or that was `old`.
pub(crate) fn check(object: &Value, old: Option<&Value>, strategy: &dyn Strategy) -> Vec<Cause> {
    let mut causes = Vec::new();
    strategy.check(object, old, &mut causes);
    causes
}

#[cfg(test)]
mod tests {
    use super::at::At;
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

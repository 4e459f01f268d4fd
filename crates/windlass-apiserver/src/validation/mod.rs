//! Validation of built-in kinds, as far as operators meet it.
//!
//! What is not checked here is checked by the type alone. A cause names its field and says what is
//! wrong in Kubernetes' words.

mod address;
mod admission_policy;
mod api_service;
mod at;
mod certificate;
mod claim;
mod data;
mod device;
mod endpoints;
mod flow;
mod ingress;
mod kinds;
mod namespace;
mod network_policy;
mod role;
mod selector;
mod service;
mod service_address;
mod storage;
mod update;
mod volume;
mod warnings;
mod webhook;
mod workload;

use serde_json::Value;

use crate::resource::Resource;
use crate::status::Cause;

pub(crate) use service::check_addresses as service_addresses;
pub(crate) use service_address::name_errors as address_name_errors;
pub(crate) use warnings::of as warnings;
pub(crate) use workload::{SYSTEM_PRIORITIES, selects};

/// What is wrong with a change: with the new object by itself (which `kind_causes` tells), and
/// with what it changes.
pub(crate) fn check_change(
    new: &Value,
    old: &Value,
    resource: &Resource,
    kind_causes: impl FnOnce() -> Vec<Cause>,
) -> Vec<Cause> {
    let Some(rules) = kinds::of(&resource.group, &resource.plural) else {
        let mut causes = kind_causes();
        causes.extend(update::check(new, old, resource));
        workload::check_update(new, old, resource, &mut causes);
        return causes;
    };
    let mut causes = Vec::new();
    if rules.update_only {
        (rules.update)(new, old, &mut causes);
        return causes;
    }
    if rules.update_first {
        (rules.update)(new, old, &mut causes);
    }
    causes.extend(kind_causes());
    if !rules.update_first {
        (rules.update)(new, old, &mut causes);
    }
    causes
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
        "status" => {
            if let Some(rules) = kinds::of(&resource.group, &resource.plural) {
                (rules.status)(new, old, &mut causes);
            }
            causes.extend(workload::check_status(new, old, resource));
        }
        "ephemeralcontainers" | "resize" => {
            causes.extend(workload::check_subresource(new, old, resource, subresource));
        }
        "approval" => certificate::check_approval(new, old, &mut causes),
        "finalize" => namespace::check_finalize(new, &mut causes),
        _ => {}
    }
    causes
}

/// What is wrong with a built-in object that is new, or that was `old`.
pub(crate) fn check(object: &Value, old: Option<&Value>, resource: &Resource) -> Vec<Cause> {
    if let Some(causes) = workload::check(object, old, resource) {
        return causes;
    }
    let mut causes = Vec::new();
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("rbac.authorization.k8s.io", plural) if plural.ends_with("bindings") => {
            role::check_binding(object, resource.namespaced, &mut causes);
        }
        ("rbac.authorization.k8s.io", _) => role::check(object, resource.namespaced, &mut causes),
        (group, plural) => {
            if let Some(rules) = kinds::of(group, plural) {
                (rules.check)(object, &mut causes);
            }
        }
    }
    causes
}

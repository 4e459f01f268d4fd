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
mod pod;
mod role;
mod selector;
mod service;
mod service_address;
mod storage;
mod subresource;
mod update;
mod volume;
mod warnings;
mod webhook;

use serde_json::{Map, Value};

use crate::resource::Resource;
use crate::status::{Cause, field};

pub(crate) use service::check_addresses as service_addresses;
pub(crate) use service_address::name_errors as address_name_errors;
pub(crate) use warnings::of as warnings;

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
        }
        "ephemeralcontainers" => subresource::check_ephemeral(new, old, &mut causes),
        "resize" => subresource::check_resize(new, old, &mut causes),
        "approval" => certificate::check_approval(new, old, &mut causes),
        "finalize" => namespace::check_finalize(new, &mut causes),
        _ => {}
    }
    causes
}

/// What is wrong with a built-in object.
pub(crate) fn check(object: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::check(spec, "spec", &mut causes),
        ("apps", "daemonsets") => templated(spec, "daemonset", &mut causes),
        ("apps", "deployments" | "replicasets") => templated(spec, "deployment", &mut causes),
        ("apps", "statefulsets") => templated(spec, "statefulset", &mut causes),
        ("batch", "jobs") => {
            let template = &spec["template"]["spec"];
            pod::check(template, "spec.template.spec", &mut causes);
            restart_policy(template, &["OnFailure", "Never"], &mut causes);
        }
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

/// Kinds of apps: a number of replicas, a selector, and a template that fits it.
fn templated(spec: &Value, kind: &str, causes: &mut Vec<Cause>) {
    if let Some(replicas) = spec["replicas"].as_i64().filter(|number| *number < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(field::invalid("spec.replicas", &replicas.into(), why));
    }
    let selector = &spec["selector"];
    let template = &spec["template"];
    if selector.is_null() {
        causes.push(field::required("spec.selector", ""));
    } else if is_empty_selector(selector) {
        let why = format!("empty selector is invalid for {kind}");
        causes.push(field::invalid("spec.selector", selector, &why));
    }
    let labels = &template["metadata"]["labels"];
    let unchecked = !selector.is_null() && is_empty_selector(selector);
    if !unchecked && !selects(selector, labels) {
        causes.push(field::invalid(
            "spec.template.metadata.labels",
            labels,
            "`selector` does not match template `labels`",
        ));
    }
    pod::check(&template["spec"], "spec.template.spec", causes);
    restart_policy(&template["spec"], &["Always"], causes);
}

fn restart_policy(spec: &Value, allowed: &[&str], causes: &mut Vec<Cause>) {
    let policy = spec["restartPolicy"].as_str().unwrap_or_default();
    if !policy.is_empty() && !allowed.contains(&policy) {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
        causes.push(field::not_supported(
            "spec.template.spec.restartPolicy",
            &policy.into(),
            &allowed,
        ));
    }
}

fn is_empty_selector(selector: &Value) -> bool {
    let labels = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    labels.is_none_or(Map::is_empty) && expressions.is_none_or(Vec::is_empty)
}

/// Whether a label selector matches; an absent one matches nothing.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array();
    equal
        .into_iter()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().flatten().all(|expression| {
            let found = labels.get(expression["key"].as_str().unwrap_or_default());
            let one_of = |value: &Value| {
                let values = expression["values"].as_array();
                values.is_some_and(|values| values.contains(value))
            };
            match expression["operator"].as_str() {
                Some("In") => found.is_some_and(one_of),
                Some("NotIn") => !found.is_some_and(one_of),
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_by_labels_and_expressions() {
        let labels = json!({"app": "a", "tier": "x"});
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        assert!(selects(&json!({"matchLabels": {"app": "a"}}), &labels));
        assert!(!selects(&json!({"matchLabels": {"app": "b"}}), &labels));
        assert!(selects(&expression("In", json!(["x", "y"])), &labels));
        assert!(!selects(&expression("NotIn", json!(["x"])), &labels));
        assert!(selects(&expression("Exists", Value::Null), &labels));
        assert!(!selects(&Value::Null, &labels));
    }

    #[test]
    fn a_template_must_fit_its_selector() {
        let spec = json!({
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        });
        let mut causes = Vec::new();
        templated(&spec, "deployment", &mut causes);
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].field, "spec.template.metadata.labels");
    }
}

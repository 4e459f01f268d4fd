//! Validation of built-in kinds, as far as operators meet it.
//!
//! What is not checked here is checked by the type alone. A cause names its field and says what is
//! wrong in Kubernetes' words.

mod pod;
mod service;
mod update;

use serde_json::{Map, Value};

use crate::names;
use crate::resource::Resource;
use crate::status::{Cause, field};

pub(crate) use update::check as check_update;

/// What is wrong with a built-in object.
pub(crate) fn check(object: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps" | "secrets") => data_keys(object, &mut causes),
        ("", "pods") => pod::check(spec, "spec", &mut causes),
        ("", "services") => service::check(spec, &mut causes),
        ("apps", "daemonsets") => templated(spec, "daemonset", &mut causes),
        ("apps", "deployments" | "replicasets") => templated(spec, "deployment", &mut causes),
        ("apps", "statefulsets") => templated(spec, "statefulset", &mut causes),
        ("batch", "jobs") => {
            let template = &spec["template"]["spec"];
            pod::check(template, "spec.template.spec", &mut causes);
            restart_policy(template, &["OnFailure", "Never"], &mut causes);
        }
        _ => {}
    }
    causes
}

/// Keys become file names.
fn data_keys(object: &Value, causes: &mut Vec<Cause>) {
    for part in ["data", "binaryData"] {
        for key in object[part].as_object().into_iter().flat_map(Map::keys) {
            for why in names::data_key_errors(key) {
                let path = format!("{part}[{key}]");
                causes.push(field::invalid(path, &key.as_str().into(), &why));
            }
        }
    }
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
fn selects(selector: &Value, labels: &Value) -> bool {
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

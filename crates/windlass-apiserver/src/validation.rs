//! Validation of built-in kinds: what the walking skeleton's controllers and users meet first.

use serde_json::Value;

use crate::resource::Resource;
use crate::status::{Cause, field};

/// Kinds that have a pod template under `spec.template`.
const TEMPLATED: &[(&str, &str)] = &[
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
];

/// What is wrong with a built-in object.
pub(crate) fn check(object: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    let address = (resource.group.as_str(), resource.plural.as_str());
    if address == ("", "pods") {
        check_pod_spec(&object["spec"], "spec", &mut causes);
    }
    if TEMPLATED.contains(&address) {
        if let Some(replicas) = object["spec"]["replicas"]
            .as_i64()
            .filter(|replicas| *replicas < 0)
        {
            causes.push(field::invalid(
                "spec.replicas",
                &replicas.into(),
                "must be greater than or equal to 0",
            ));
        }
        if resource.group == "apps" {
            check_selector(object, &mut causes);
        }
        check_pod_spec(
            &object["spec"]["template"]["spec"],
            "spec.template.spec",
            &mut causes,
        );
    }
    causes
}

/// What an update may not change.
pub(crate) fn check_update(new: &Value, old: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    if resource.group == "apps"
        && resource.plural != "controllerrevisions"
        && new["spec"]["selector"] != old["spec"]["selector"]
    {
        causes.push(field::invalid(
            "spec.selector",
            &new["spec"]["selector"],
            "field is immutable",
        ));
    }
    let immutable = matches!(resource.plural.as_str(), "configmaps" | "secrets")
        && resource.group.is_empty()
        && old["immutable"] == true;
    if immutable {
        for part in ["data", "binaryData"] {
            if new.get(part) != old.get(part) {
                causes.push(field::forbidden(
                    part,
                    "field is immutable when `immutable` is set",
                ));
            }
        }
    }
    causes
}

fn check_selector(object: &Value, causes: &mut Vec<Cause>) {
    let selector = &object["spec"]["selector"];
    let labels = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    if !selector.is_object() {
        causes.push(field::required("spec.selector", ""));
    }
    if labels.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty) {
        if selector.is_object() {
            causes.push(field::invalid(
                "spec.selector",
                selector,
                "empty selector is invalid for deployment",
            ));
        }
        return;
    }
    let template = &object["spec"]["template"]["metadata"]["labels"];
    let fits = labels
        .into_iter()
        .flatten()
        .all(|(key, value)| template.get(key) == Some(value));
    if !fits {
        let shown = if template.is_null() {
            Value::Object(serde_json::Map::new())
        } else {
            template.clone()
        };
        causes.push(field::invalid(
            "spec.template.metadata.labels",
            &shown,
            "`selector` does not match template `labels`",
        ));
    }
}

fn check_pod_spec(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let containers = spec["containers"].as_array().cloned().unwrap_or_default();
    if containers.is_empty() {
        causes.push(field::required(format!("{path}.containers"), ""));
    }
    let mut names = std::collections::BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        let name = container["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(field::required(format!("{path}.name"), ""));
        } else if !names.insert(name.to_owned()) {
            causes.push(field::duplicate(format!("{path}.name"), &name.into()));
        }
        if container["image"].as_str().is_none_or(str::is_empty) {
            causes.push(field::required(format!("{path}.image"), ""));
        }
        for (at, port) in container["ports"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let number = port["containerPort"].as_i64().unwrap_or_default();
            if number == 0 {
                causes.push(field::required(
                    format!("{path}.ports[{at}].containerPort"),
                    "",
                ));
            } else if !(1..=65535).contains(&number) {
                causes.push(field::invalid(
                    format!("{path}.ports[{at}].containerPort"),
                    &number.into(),
                    "must be between 1 and 65535, inclusive",
                ));
            }
        }
    }
}

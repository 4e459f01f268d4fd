//! Scopes: which pods and claims a quota is about.

use serde_json::Value;

/// Whether an object of a kind that has scopes is in all of those a quota names.
pub(super) fn all_match(spec: &Value, matches: impl Fn(&str, &Value) -> bool) -> bool {
    let plain = spec["scopes"].as_array().into_iter().flatten();
    let plain = plain.filter_map(Value::as_str);
    let exists = Value::from("Exists");
    let exists = serde_json::json!({"operator": exists});
    let selected = spec["scopeSelector"]["matchExpressions"].as_array();
    let selected = selected.into_iter().flatten();
    plain.into_iter().all(|scope| matches(scope, &exists))
        && selected.into_iter().all(|expression| {
            let scope = expression["scopeName"].as_str().unwrap_or_default();
            matches(scope, expression)
        })
}

/// Whether a pod is in a scope.
pub(super) fn of_pod(pod: &Value, scope: &str, expression: &Value) -> bool {
    let spec = &pod["spec"];
    let best_effort = || pod["status"]["qosClass"] == "BestEffort";
    match scope {
        "Terminating" => is_limited_in_time(pod),
        "NotTerminating" => !is_limited_in_time(pod),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => {
            let class = spec["priorityClassName"].as_str().unwrap_or_default();
            selects(&[class], expression)
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(&spec["affinity"]),
        _ => false,
    }
}

/// Whether a claim is in a scope.
pub(super) fn of_claim(claim: &Value, scope: &str, expression: &Value) -> bool {
    if scope != "VolumeAttributesClass" {
        return false;
    }
    let names = [
        &claim["spec"]["volumeAttributesClassName"],
        &claim["status"]["currentVolumeAttributesClassName"],
        &claim["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let names: Vec<&str> = names.into_iter().filter_map(Value::as_str).collect();
    if names.is_empty() {
        return selects(&[""], expression);
    }
    names.iter().any(|name| selects(&[name], expression))
}

/// Whether a pod ends by itself.
pub(super) fn is_limited_in_time(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds >= 0)
}

/// Whether a class is one that is asked for; an empty one is none.
fn selects(classes: &[&str], expression: &Value) -> bool {
    let values = expression["values"].as_array().into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    let known = |class: &&str| !class.is_empty();
    let named = |class: &&str| known(class) && values.contains(class);
    match expression["operator"].as_str() {
        Some("Exists") => classes.iter().any(known),
        Some("DoesNotExist") => !classes.iter().any(known),
        Some("In") => classes.iter().any(named),
        Some("NotIn") => !classes.iter().any(named),
        _ => false,
    }
}

fn crosses_namespaces(affinity: &Value) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"]
            .as_array()
            .is_some_and(|names| !names.is_empty())
            || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|part| {
        let list = |kind: &str| affinity[*part][kind].as_array().into_iter().flatten();
        list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || list("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|weighted| crosses(&weighted["podAffinityTerm"]))
    })
}

//! What the server makes of pods before it stores them.

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::object::set_meta;
use crate::quantity::Quantity;

/// A new pod waits, is of a class of service, and may be held back by gates.
pub(crate) fn prepare_create(pod: &mut Value, clock: &Clock) {
    let class = qos_class(pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": class});
    merge_label_keys(pod);
    let gates = pod["spec"]["schedulingGates"].as_array();
    if gates.is_some_and(|gates| !gates.is_empty()) {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": clock.now_seconds(),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
}

/// What a pod says of others like it by the keys of labels means its own values of them.
fn merge_label_keys(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let spec = &mut pod["spec"];
    for (terms, inner) in [
        ("podAffinity/preferred", "/podAffinityTerm"),
        ("podAffinity/required", ""),
        ("podAntiAffinity/preferred", "/podAffinityTerm"),
        ("podAntiAffinity/required", ""),
    ] {
        let place = format!("/affinity/{terms}DuringSchedulingIgnoredDuringExecution");
        let terms = spec.pointer_mut(&place).and_then(Value::as_array_mut);
        for term in terms.into_iter().flatten() {
            if let Some(term) = term.pointer_mut(inner) {
                merge_keys(term, "matchLabelKeys", "In", &labels);
                merge_keys(term, "mismatchLabelKeys", "NotIn", &labels);
            }
        }
    }
    let constraints = spec
        .get_mut("topologySpreadConstraints")
        .and_then(Value::as_array_mut);
    for constraint in constraints.into_iter().flatten() {
        merge_keys(constraint, "matchLabelKeys", "In", &labels);
    }
}

/// One that selects nobody stays so.
fn merge_keys(term: &mut Value, keys: &str, operator: &str, labels: &Value) {
    let wanted = term[keys].as_array().cloned().unwrap_or_default();
    let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else {
        return;
    };
    for key in wanted {
        let Some(value) = labels.get(key.as_str().unwrap_or_default()) else {
            continue;
        };
        let expression = json!({"key": key, "operator": operator, "values": [value]});
        let expressions = selector
            .entry("matchExpressions")
            .or_insert_with(|| json!([]));
        if let Some(expressions) = expressions.as_array_mut() {
            expressions.push(expression);
        }
    }
}

/// Through a subresource only one thing changes.
pub(crate) fn keep_all_but(new: &mut Value, old: &Value, subresource: &str) {
    let mut kept = old.clone();
    for field in ["managedFields", "resourceVersion"] {
        set_meta(&mut kept, field, new["metadata"].get(field).cloned());
    }
    if subresource == "ephemeralcontainers" {
        set_or_remove(&mut kept["spec"], &new["spec"], "ephemeralContainers");
    } else {
        let list = |pod: &Value, name: &str| pod["spec"][name].as_array().map_or(0, Vec::len);
        for name in ["containers", "initContainers"] {
            if list(new, name) != list(old, name) {
                // Said to be wrong later.
                kept["spec"][name] = new["spec"][name].clone();
                continue;
            }
            let containers = kept["spec"].get_mut(name).and_then(Value::as_array_mut);
            for (index, container) in containers.into_iter().flatten().enumerate() {
                let wanted = &new["spec"][name][index];
                if wanted["name"] == container["name"] {
                    set_or_remove(container, wanted, "resources");
                    set_or_remove(container, wanted, "resizePolicy");
                }
            }
        }
    }
    *new = kept;
}

fn set_or_remove(to: &mut Value, from: &Value, field: &str) {
    if let Some(map) = to.as_object_mut() {
        match from.get(field) {
            Some(value) => map.insert(field.to_owned(), value.clone()),
            None => map.remove(field),
        };
    }
}

/// `BestEffort`, Burstable or Guaranteed: from the resources of the pod, or else of its
/// containers. Asking for nothing of something is not asking for it.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let of_pod = spec["resources"]
        .as_object()
        .is_some_and(|own| !own.is_empty());
    let parts: Vec<&Value> = if of_pod {
        vec![spec]
    } else {
        ["containers", "initContainers"]
            .iter()
            .flat_map(|list| spec[*list].as_array().into_iter().flatten())
            .collect()
    };
    let (mut any, mut all) = (false, true);
    for part in parts {
        let amount = |kind: &str, name: &str| {
            let text = part["resources"][kind][name].as_str()?;
            Quantity::parse(text).filter(|amount| !amount.is_zero())
        };
        for name in ["cpu", "memory"] {
            let (asked, most) = (amount("requests", name), amount("limits", name));
            any |= asked.is_some() || most.is_some();
            all &= most.is_some() && asked == most;
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

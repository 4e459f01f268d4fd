//! Fields whose feature is off by default: what is sent of them is not kept.

use serde_json::{Map, Value};

use crate::kinds::{Strategy, Way};

/// Of a pod, alone or as a template.
const POD: &[Way] = &[
    &["spec", "schedulingGroup"],
    &[
        "spec",
        "volumes",
        "*",
        "projected",
        "sources",
        "*",
        "clusterTrustBundle",
    ],
    &[
        "spec",
        "volumes",
        "*",
        "projected",
        "sources",
        "*",
        "podCertificate",
    ],
    &["spec", "containers", "*", "lifecycle", "stopSignal"],
    &["spec", "initContainers", "*", "lifecycle", "stopSignal"],
    &[
        "spec",
        "ephemeralContainers",
        "*",
        "lifecycle",
        "stopSignal",
    ],
];

/// What does not stay when nothing is in it.
const HOLLOW: &[Way] = &[
    &["spec", "containers", "*", "lifecycle"],
    &["spec", "initContainers", "*", "lifecycle"],
    &["spec", "ephemeralContainers", "*", "lifecycle"],
];

/// Takes such fields off an object.
pub(super) fn drop(object: &mut Value, strategy: &dyn Strategy) {
    for way in strategy.disabled_fields() {
        visit(object, way, remove);
    }
    let Some(way) = strategy.pod_template() else {
        return;
    };
    let Some(pod) = way
        .iter()
        .try_fold(object, |value, step| value.get_mut(*step))
    else {
        return;
    };
    for way in POD {
        visit(pod, way, remove);
    }
    for way in HOLLOW {
        visit(pod, way, remove_hollow);
    }
}

fn remove(map: &mut Map<String, Value>, field: &str) {
    map.remove(field);
}

fn remove_hollow(map: &mut Map<String, Value>, field: &str) {
    let inner = map.get(field).and_then(Value::as_object);
    if inner.is_some_and(Map::is_empty) {
        map.remove(field);
    }
}

/// Goes to every place a way leads to, and does something to the last field there.
fn visit(value: &mut Value, way: &[&str], act: fn(&mut Map<String, Value>, &str)) {
    match (way, value) {
        (["*", rest @ ..], Value::Array(items)) => {
            for item in items {
                visit(item, rest, act);
            }
        }
        (["*", rest @ ..], Value::Object(map)) => {
            for entry in map.values_mut() {
                visit(entry, rest, act);
            }
        }
        ([field], Value::Object(map)) => act(map, field),
        ([step, rest @ ..], Value::Object(map)) => {
            if let Some(inner) = map.get_mut(*step) {
                visit(inner, rest, act);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_of_a_hook_without_its_signal_goes_as_well() {
        let mut pod = json!({"spec": {"containers": [{"lifecycle": {"stopSignal": "SIGUSR1"}}, {"lifecycle": {"stopSignal": "SIGUSR1", "preStop": {}}}]}});
        for way in POD {
            visit(&mut pod, way, remove);
        }
        for way in HOLLOW {
            visit(&mut pod, way, remove_hollow);
        }
        let kept = json!([{}, {"lifecycle": {"preStop": {}}}]);
        assert_eq!(pod["spec"]["containers"], kept);
    }
}

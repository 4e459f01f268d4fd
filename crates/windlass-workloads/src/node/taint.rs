//! The taints that say what is wrong with a node.
//!
//! Nothing more is sent to a node that is not ready, is short of something, or was cordoned
//! (`NoSchedule`); and what is there has to leave one that is not ready or does not answer, as
//! soon as it does not tolerate that any longer (`NoExecute`).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::condition::value;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The taints with the effect `NoSchedule` that follow from conditions.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
];
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

fn is_ours(taint: &Taint) -> bool {
    let schedule = BY_CONDITION.iter().any(|(_, _, key)| *key == taint.key);
    match taint.effect.as_str() {
        "NoSchedule" => schedule || taint.key == UNSCHEDULABLE,
        "NoExecute" => [NOT_READY, UNREACHABLE].contains(&taint.key.as_str()),
        _ => false,
    }
}

/// The keys and effects of the taints that a node should have from us.
fn wanted_keys(node: &Node) -> Vec<(&'static str, &'static str)> {
    let mut keys = Vec::new();
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    if cordoned {
        keys.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (type_, bad, key) in BY_CONDITION {
        if value(node, type_) == Some(bad) {
            keys.push((key, "NoSchedule"));
        }
    }
    match value(node, "Ready") {
        Some("True") => {}
        Some("Unknown") => keys.push((UNREACHABLE, "NoExecute")),
        Some(_) => keys.push((NOT_READY, "NoExecute")),
        // One that has not said anything yet is new: the API server tainted it.
        None => keys.push((NOT_READY, "NoSchedule")),
    }
    keys
}

/// The taints a node should have, when they are not those it has.
pub(crate) fn wanted(node: &Node, now: Timestamp) -> Option<Vec<Taint>> {
    let keys = wanted_keys(node);
    let has = crate::toleration::taints(node);
    let is_wanted = |taint: &Taint| {
        keys.iter()
            .any(|(key, effect)| taint.key == *key && taint.effect == *effect)
    };
    let kept: Vec<Taint> = has
        .iter()
        .filter(|taint| !is_ours(taint) || is_wanted(taint))
        .cloned()
        .collect();
    let missing = keys.iter().filter(|(key, effect)| {
        !has.iter()
            .any(|taint| taint.key == *key && taint.effect == *effect)
    });
    let new = missing.map(|(key, effect)| Taint {
        key: (*key).to_owned(),
        effect: (*effect).to_owned(),
        time_added: (*effect == "NoExecute").then(|| Time(now)),
        value: None,
    });
    let wanted: Vec<Taint> = kept.into_iter().chain(new).collect();
    (wanted != has).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;
    use serde_json::{Value, json};

    fn node(ready: Option<&str>, more: Value) -> Node {
        let ready = ready.map(|status| json!({"type": "Ready", "status": status}));
        let mut node = json!({"metadata": {"name": "n"}, "spec": {}, "status": {
            "conditions": ready.into_iter().collect::<Vec<_>>(),
        }});
        for (key, value) in more.as_object().unwrap() {
            node["spec"][key] = value.clone();
        }
        serde_json::from_value(node).unwrap()
    }

    fn keys(node: &Node) -> Option<Vec<(String, String)>> {
        let taints = wanted(node, at(0))?;
        Some(
            taints
                .into_iter()
                .map(|taint| (taint.key, taint.effect))
                .collect(),
        )
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(
            pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn a_ready_node_loses_ours_and_keeps_the_others() {
        let taints = json!({"taints": [
            {"key": "a", "effect": "NoSchedule"}, {"key": NOT_READY, "effect": "NoSchedule"},
        ]});
        assert_eq!(
            keys(&node(Some("True"), taints)),
            pairs(&[("a", "NoSchedule")])
        );
        assert_eq!(keys(&node(Some("True"), json!({}))), None);
    }

    #[test]
    fn a_node_that_is_not_ready_keeps_pods_out_and_sends_them_away() {
        assert_eq!(
            keys(&node(Some("False"), json!({}))),
            pairs(&[(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")])
        );
        let before = json!({"taints": [{"key": NOT_READY, "effect": "NoExecute"}]});
        assert_eq!(
            keys(&node(Some("Unknown"), before)),
            pairs(&[(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")])
        );
    }

    #[test]
    fn a_cordoned_node_is_tainted_until_it_is_not() {
        let cordoned = node(Some("True"), json!({"unschedulable": true}));
        assert_eq!(keys(&cordoned), pairs(&[(UNSCHEDULABLE, "NoSchedule")]));
        let free = json!({"taints": [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]});
        assert_eq!(keys(&node(Some("True"), free)), pairs(&[]));
    }
}

//! The taints that say what is wrong with a node.
//!
//! Nothing more is sent to a node that is not ready, is short of something, or was cordoned
//! (`NoSchedule`); and what is there has to leave one that is not ready or does not answer, as
//! soon as it does not tolerate that any longer (`NoExecute`). But when most of a zone seems to be
//! gone, or everything is, it is rather us who are cut off: then nothing is sent away.

use std::borrow::Borrow;

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

/// In a zone of up to this many nodes nothing is sent away while most of them are not ready.
const SMALL: usize = 50;

fn zone(node: &Node) -> Option<&String> {
    node.metadata
        .labels
        .as_ref()?
        .get("topology.kubernetes.io/zone")
}

/// Whether pods are sent away from the nodes of this one's zone.
pub(crate) fn sends_away(node: &Node, nodes: &[impl Borrow<Node>]) -> bool {
    let is_ready = |node: &Node| value(node, "Ready") == Some("True");
    if !nodes.iter().any(|node| is_ready(node.borrow())) {
        return false;
    }
    let zone_of: Vec<&Node> = nodes
        .iter()
        .map(Borrow::borrow)
        .filter(|other| zone(other) == zone(node))
        .collect();
    let ready = zone_of.iter().filter(|node| is_ready(node)).count();
    let missing = zone_of.len() - ready;
    let most = ready > 0 && missing > 2 && missing * 100 >= zone_of.len() * 55;
    !most || zone_of.len() > SMALL
}

/// The keys and effects of the taints that a node should have from us.
fn wanted_keys(node: &Node, sends_away: bool) -> Vec<(&'static str, &'static str)> {
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
        Some(_) if !sends_away => {}
        Some("Unknown") => keys.push((UNREACHABLE, "NoExecute")),
        Some(_) => keys.push((NOT_READY, "NoExecute")),
        // One that has not said anything yet is new: the API server tainted it.
        None => keys.push((NOT_READY, "NoSchedule")),
    }
    keys
}

/// The taints a node should have, when they are not those it has.
pub(crate) fn wanted(node: &Node, sends_away: bool, now: Timestamp) -> Option<Vec<Taint>> {
    let keys = wanted_keys(node, sends_away);
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
        time_added: (*effect == "NoExecute").then_some(Time(now)),
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
        let taints = wanted(node, true, at(0))?;
        Some(
            taints
                .into_iter()
                .map(|taint| (taint.key, taint.effect))
                .collect(),
        )
    }

    #[allow(clippy::unnecessary_wraps, reason = "as `keys` gives them")]
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

    #[test]
    fn nothing_is_sent_away_when_most_seem_gone() {
        let nodes = |ready: usize, gone: usize| -> Vec<Node> {
            let ready = (0..ready).map(|_| node(Some("True"), json!({})));
            ready
                .chain((0..gone).map(|_| node(Some("Unknown"), json!({}))))
                .collect()
        };
        for (ready, gone, away) in [
            (0, 1, false),
            (1, 1, true),
            (1, 2, true),
            (1, 3, false),
            (3, 3, true),
            (2, 3, false),
            (20, 40, true),
        ] {
            let nodes = nodes(ready, gone);
            let last = nodes.last().unwrap();
            assert_eq!(sends_away(last, &nodes), away, "{ready} ready, {gone} gone");
        }
        let lonely = node(Some("Unknown"), json!({}));
        let wanted = wanted(&lonely, false, at(0)).unwrap();
        assert_eq!(wanted.len(), 1);
        assert_eq!(wanted[0].effect, "NoSchedule");
    }
}

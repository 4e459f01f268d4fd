//! Which node a pod goes to.
//!
//! A node fits when it is ready, takes pods, has the labels of the pod's `nodeSelector`, and has
//! no taint that the pod does not tolerate. Of the nodes that fit the one with the fewest pods
//! takes it; among equals the first by name, so that a run can be repeated.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};

/// Where a pod goes, or why nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement<'a> {
    /// The name of the node.
    Node(&'a str),
    /// No node fits, for these reasons.
    Nowhere(String),
}

/// Places a pod on one of the nodes; `load` is the number of pods on each node.
pub(crate) fn place<'a>(
    pod: &Pod,
    nodes: &'a [Node],
    load: &BTreeMap<String, usize>,
) -> Placement<'a> {
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting: Vec<(usize, &str)> = Vec::new();
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        match refusal(pod, node) {
            Some(reason) => *refusals.entry(reason).or_default() += 1,
            None => fitting.push((load.get(name).copied().unwrap_or(0), name)),
        }
    }
    match fitting.into_iter().min() {
        Some((_, name)) => Placement::Node(name),
        None => Placement::Nowhere(message(nodes.len(), &refusals)),
    }
}

/// Why the node does not take the pod; `None` if it does.
fn refusal(pod: &Pod, node: &Node) -> Option<String> {
    let spec = node.spec.as_ref();
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default();
    if spec.and_then(|spec| spec.unschedulable) == Some(true) {
        return Some("node(s) were unschedulable".to_owned());
    }
    let taints = spec
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    let untolerated = taints
        .iter()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .find(|taint| {
            !tolerations
                .iter()
                .any(|toleration| tolerates(toleration, taint))
        });
    if let Some(taint) = untolerated {
        let value = taint.value.as_deref().unwrap_or_default();
        return Some(format!(
            "node(s) had untolerated taint {{{}: {value}}}",
            taint.key
        ));
    }
    let selector = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_selector.as_ref());
    let labels = node.metadata.labels.as_ref();
    let selected = selector
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
    if !selected {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    (!is_ready(node)).then(|| "node(s) were not ready".to_owned())
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect_matches = effect.is_empty() || effect == taint.effect;
    // An empty key with Exists tolerates everything.
    let key_matches = key.is_empty() || key == taint.key;
    let value_matches = match toleration.operator.as_deref() {
        Some("Exists") => true,
        _ => {
            !key.is_empty()
                && toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default()
        }
    };
    effect_matches && key_matches && value_matches
}

fn is_ready(node: &Node) -> bool {
    node.status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The reasons in the form people know from Kubernetes: `0/2 nodes are available: 2 …`.
fn message(nodes: usize, refusals: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let reasons: Vec<String> = refusals
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use k8s_openapi::api::core::v1::{NodeCondition, NodeSpec, NodeStatus};

    fn node(name: &str) -> Node {
        let mut node = Node {
            spec: Some(NodeSpec::default()),
            status: Some(NodeStatus {
                conditions: Some(vec![NodeCondition {
                    type_: "Ready".to_owned(),
                    status: "True".to_owned(),
                    ..NodeCondition::default()
                }]),
                ..NodeStatus::default()
            }),
            ..Node::default()
        };
        node.metadata.name = Some(name.to_owned());
        node
    }

    fn tainted(mut node: Node, key: &str, effect: &str) -> Node {
        node.spec.get_or_insert_default().taints = Some(vec![Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            ..Taint::default()
        }]);
        node
    }

    fn placed(pod: &Pod, nodes: &[Node]) -> String {
        match place(pod, nodes, &BTreeMap::new()) {
            Placement::Node(name) => name.to_owned(),
            Placement::Nowhere(why) => why,
        }
    }

    #[test]
    fn the_emptiest_node_takes_it() {
        let nodes = [node("a"), node("b"), node("c")];
        let load = BTreeMap::from([
            ("a".to_owned(), 2),
            ("b".to_owned(), 1),
            ("c".to_owned(), 1),
        ]);
        assert_eq!(place(&pod("p"), &nodes, &load), Placement::Node("b"));
        assert_eq!(
            place(&pod("p"), &nodes, &BTreeMap::new()),
            Placement::Node("a")
        );
    }

    #[test]
    fn says_why_no_node_fits() {
        assert_eq!(
            placed(&pod("p"), &[]),
            "no nodes available to schedule pods"
        );
        let mut cordoned = node("a");
        cordoned.spec.get_or_insert_default().unschedulable = Some(true);
        let mut broken = node("b");
        broken.status = None;
        assert_eq!(
            placed(
                &pod("p"),
                &[cordoned, broken, tainted(node("c"), "gpu", "NoSchedule")]
            ),
            "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: }, \
             1 node(s) were not ready, 1 node(s) were unschedulable."
        );
    }

    #[test]
    fn the_selector_must_match() {
        let mut picky = pod("p");
        picky.spec.get_or_insert_default().node_selector =
            Some(BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]));
        let mut ssd = node("b");
        ssd.metadata.labels = Some(BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]));
        assert_eq!(
            placed(&picky, &[node("a")]),
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
        );
        assert_eq!(placed(&picky, &[node("a"), ssd]), "b");
    }

    #[test]
    fn tolerations_open_tainted_nodes() {
        let nodes = [tainted(node("a"), "gpu", "NoSchedule")];
        let mut tolerant = pod("p");
        let mut tolerate = |toleration: Toleration| {
            tolerant.spec.get_or_insert_default().tolerations = Some(vec![toleration]);
            placed(&tolerant, &nodes)
        };
        let exists = Some("Exists".to_owned());
        let all = Toleration {
            operator: exists.clone(),
            ..Toleration::default()
        };
        assert_eq!(tolerate(all), "a");
        let gpu = Toleration {
            key: Some("gpu".to_owned()),
            ..Toleration::default()
        };
        assert_eq!(tolerate(gpu), "a");
        let other = Toleration {
            key: Some("gpu".to_owned()),
            operator: exists,
            effect: Some("NoExecute".to_owned()),
            ..Toleration::default()
        };
        assert!(tolerate(other).starts_with("0/1"));
        assert_eq!(
            placed(&pod("p"), &[tainted(node("a"), "x", "PreferNoSchedule")]),
            "a"
        );
    }
}

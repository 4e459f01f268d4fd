//! Where a DaemonSet has pods, and where it should.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::template;
use crate::toleration::{taints, untolerated};
use crate::{affinity, pod};

/// What a node wants of a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// A pod.
    Pod,
    /// To keep the pod it has, but no new one.
    ToKeep,
    /// No pod.
    None,
}

/// What the node wants of the set.
pub(crate) fn wants(set: &DaemonSet, node: &Node) -> Wants {
    let mut spec = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.clone())
        .unwrap_or_default();
    let named = spec.node_name.as_ref().filter(|name| !name.is_empty());
    if named.is_some() && named != node.metadata.name.as_ref() {
        return Wants::None;
    }
    template::tolerate(&mut spec);
    if !affinity::is_allowed(&spec, node) {
        return Wants::None;
    }
    let tolerations = spec.tolerations.unwrap_or_default();
    if untolerated(taints(node), &tolerations, &["NoSchedule", "NoExecute"]).is_none() {
        Wants::Pod
    } else if untolerated(taints(node), &tolerations, &["NoExecute"]).is_none() {
        Wants::ToKeep
    } else {
        Wants::None
    }
}

/// The pods by the nodes they are on or meant for, each list oldest first.
pub(crate) fn by_node<'a>(pods: &[&'a Pod]) -> BTreeMap<&'a str, Vec<&'a Pod>> {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for &one in pods {
        if pod::has_ended(one) && pod::is_terminating(one) {
            continue;
        }
        let meant = || one.spec.as_ref().and_then(affinity::named);
        if let Some(node) = pod::node_name(one).or_else(meant) {
            by_node.entry(node).or_default().push(one);
        }
    }
    for pods in by_node.values_mut() {
        pods.sort_by(|a, b| age(a).cmp(&age(b)));
    }
    by_node
}

/// Bound pods before others, then by age.
fn age(one: &Pod) -> (bool, Option<Timestamp>, Option<&String>) {
    let created = one.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (
        pod::node_name(one).is_none(),
        created,
        one.metadata.name.as_ref(),
    )
}

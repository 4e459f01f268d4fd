//! Which pods a pod wants near it, or not near it: required pod affinity and anti-affinity.
//!
//! Near means on nodes that have the same value of the term's topology key. A pod that matches
//! its own affinity may be the first of its kind. The anti-affinity of pods that are there already
//! is respected as well.

use k8s_openapi::api::core::v1::{Affinity, Node, Pod, PodAffinityTerm};

use super::fit::Cluster;
use crate::owner;

fn affinity(pod: &Pod) -> Option<&Affinity> {
    pod.spec.as_ref()?.affinity.as_ref()
}

fn wanted(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = affinity(pod).and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = affinity.and_then(|one| {
        one.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    terms.unwrap_or_default()
}

fn unwanted(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = affinity(pod).and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let terms = affinity.and_then(|one| {
        one.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    terms.unwrap_or_default()
}

/// Whether a term of `whose` means this pod.
fn means(term: &PodAffinityTerm, whose: &Pod, pod: &Pod, cluster: &Cluster<'_>) -> bool {
    let namespace = pod.metadata.namespace.as_ref();
    let named = term.namespaces.as_deref().unwrap_or_default();
    let in_namespace = if let Some(selector) = &term.namespace_selector {
        let selector = owner::selector(selector);
        let found = cluster
            .namespaces
            .iter()
            .find(|one| one.metadata.name.as_ref() == namespace);
        let selected = selector
            .zip(found)
            .is_some_and(|(selector, found)| owner::matches(&selector, &found.metadata));
        selected || namespace.is_some_and(|one| named.contains(one))
    } else if named.is_empty() {
        namespace == whose.metadata.namespace.as_ref()
    } else {
        namespace.is_some_and(|one| named.contains(one))
    };
    let selector = term.label_selector.as_ref().and_then(owner::selector);
    in_namespace && selector.is_some_and(|selector| owner::matches(&selector, &pod.metadata))
}

fn value<'a>(node: &'a Node, key: &str) -> Option<&'a String> {
    node.metadata.labels.as_ref()?.get(key)
}

/// Whether a pod that the test accepts is near the node, by this key.
fn is_near(node: &Node, key: &str, cluster: &Cluster<'_>, is: impl Fn(&Pod) -> bool) -> bool {
    let Some(here) = value(node, key) else {
        return false;
    };
    let near = cluster
        .nodes
        .iter()
        .filter(|other| value(other, key) == Some(here));
    let mut pods = near
        .filter_map(|other| cluster.placed.get(other.metadata.name.as_deref()?))
        .flatten();
    pods.any(|pod| is(pod))
}

/// Why the pod's neighbours keep it off the node, and whether that passes when they leave.
pub(crate) fn refusal(
    pod: &Pod,
    node: &Node,
    cluster: &Cluster<'_>,
) -> Option<(&'static str, bool)> {
    let terms = wanted(pod);
    let all_near = terms.iter().all(|term| {
        is_near(node, &term.topology_key, cluster, |other| {
            means(term, pod, other, cluster)
        })
    });
    if !terms.is_empty() && !all_near {
        let has_keys = terms
            .iter()
            .all(|term| value(node, &term.topology_key).is_some());
        let is_first = terms.iter().all(|term| {
            let mut placed = cluster.placed.values().flatten();
            means(term, pod, pod, cluster) && !placed.any(|other| means(term, pod, other, cluster))
        });
        if !(has_keys && is_first) {
            return Some(("node(s) didn't match pod affinity rules", false));
        }
    }
    let crowded = unwanted(pod).iter().any(|term| {
        is_near(node, &term.topology_key, cluster, |other| {
            means(term, pod, other, cluster)
        })
    });
    if crowded {
        return Some(("node(s) didn't match pod anti-affinity rules", true));
    }
    let mut placed = cluster.placed.values().flatten();
    let objected = placed.any(|other| {
        unwanted(other).iter().any(|term| {
            means(term, other, pod, cluster)
                && is_near(node, &term.topology_key, cluster, |near| {
                    near.metadata.uid == other.metadata.uid
                })
        })
    });
    objected.then_some((
        "node(s) didn't satisfy existing pods anti-affinity rules",
        true,
    ))
}

//! Which pods a pod wants near it, or not near it: required pod affinity and anti-affinity.
//!
//! Near means on nodes that have the same value of the term's topology key. A pod that matches
//! its own affinity may be the first of its kind. The anti-affinity of pods that are there already
//! is respected as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, Namespace, Node, Pod, PodAffinityTerm};
use kube::core::SelectorExt;

use super::fit::Cluster;
use super::occupancy::{House, Occupancy, Tenant};
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

/// Whom a pod does not want near it.
pub(crate) fn unwanted(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = affinity(pod).and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let terms = affinity.and_then(|one| {
        one.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    terms.unwrap_or_default()
}

/// Whoever a term may mean: a pod by its namespace and labels.
#[derive(Clone, Copy)]
struct Who<'a> {
    namespace: Option<&'a str>,
    labels: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Who<'a> {
    fn pod(pod: &'a Pod) -> Self {
        Self {
            namespace: pod.metadata.namespace.as_deref(),
            labels: pod.metadata.labels.as_ref(),
        }
    }

    fn tenant(tenant: &'a Tenant) -> Self {
        Self {
            namespace: tenant.namespace.as_deref(),
            labels: Some(&tenant.labels),
        }
    }
}

/// Whether a term of a pod in this namespace means somebody.
fn means(
    term: &PodAffinityTerm,
    whose: Option<&str>,
    who: Who<'_>,
    namespaces: &[Arc<Namespace>],
) -> bool {
    let named = term.namespaces.as_deref().unwrap_or_default();
    let is_named = || {
        let mut named = named.iter();
        who.namespace
            .is_some_and(|one| named.any(|name| name == one))
    };
    let in_namespace = if let Some(selector) = &term.namespace_selector {
        let selector = owner::selector(selector);
        let found = namespaces
            .iter()
            .find(|one| one.metadata.name.as_deref() == who.namespace);
        let selected = selector
            .zip(found)
            .is_some_and(|(selector, found)| owner::matches(&selector, &found.metadata));
        selected || is_named()
    } else if named.is_empty() {
        who.namespace == whose
    } else {
        is_named()
    };
    let nothing = BTreeMap::new();
    let selector = term.label_selector.as_ref().and_then(owner::selector);
    in_namespace
        && selector.is_some_and(|selector| selector.matches(who.labels.unwrap_or(&nothing)))
}

fn value<'a>(node: &'a Node, key: &str) -> Option<&'a String> {
    node.metadata.labels.as_ref()?.get(key)
}

/// The nodes with pods that are near this one, by the key: this one among them.
fn near<'a>(
    node: &'a Node,
    key: &'a str,
    cluster: &'a Cluster<'_>,
) -> impl Iterator<Item = &'a House> {
    let here = value(node, key);
    cluster
        .nodes
        .iter()
        .filter(move |other| here.is_some() && value(other, key) == here)
        .filter_map(|other| cluster.occupancy.on(other.metadata.name.as_deref()?))
}

/// Whether what has to be known of namespaces to place the pod is more than their names.
pub(crate) fn asks_for_namespaces(pod: &Pod, occupancy: &Occupancy) -> bool {
    let theirs = occupancy.houses().flat_map(|(_, house)| house.minding());
    wanted(pod)
        .iter()
        .chain(unwanted(pod))
        .chain(theirs.flat_map(|tenant| &tenant.unwanted))
        .any(|term| term.namespace_selector.is_some())
}

/// Why the pod's neighbours keep it off the node, and whether that passes when they leave.
pub(crate) fn refusal(
    pod: &Pod,
    node: &Node,
    cluster: &Cluster<'_>,
) -> Option<(&'static str, bool)> {
    let whose = pod.metadata.namespace.as_deref();
    let means_tenant = |term: &PodAffinityTerm, tenant: &Tenant| {
        means(term, whose, Who::tenant(tenant), cluster.namespaces)
    };
    let is_near = |term: &PodAffinityTerm| {
        near(node, &term.topology_key, cluster)
            .flat_map(House::tenants)
            .any(|tenant| means_tenant(term, tenant))
    };
    let terms = wanted(pod);
    if !terms.iter().all(is_near) {
        let has_keys = terms
            .iter()
            .all(|term| value(node, &term.topology_key).is_some());
        let is_first = terms.iter().all(|term| {
            let mut placed = cluster
                .occupancy
                .houses()
                .flat_map(|(_, one)| one.tenants());
            means(term, whose, Who::pod(pod), cluster.namespaces)
                && !placed.any(|tenant| means_tenant(term, tenant))
        });
        if !(has_keys && is_first) {
            return Some(("node(s) didn't match pod affinity rules", false));
        }
    }
    if unwanted(pod).iter().any(is_near) {
        return Some(("node(s) didn't match pod anti-affinity rules", true));
    }
    let objected = cluster.nodes.iter().any(|other| {
        let house = cluster
            .occupancy
            .on(other.metadata.name.as_deref().unwrap_or_default());
        let mut minding = house.into_iter().flat_map(House::minding);
        minding.any(|tenant| {
            tenant.unwanted.iter().any(|term| {
                let key = &term.topology_key;
                let here = value(node, key);
                let whose = tenant.namespace.as_deref();
                here.is_some()
                    && value(other, key) == here
                    && means(term, whose, Who::pod(pod), cluster.namespaces)
            })
        })
    });
    objected.then_some((
        "node(s) didn't satisfy existing pods anti-affinity rules",
        true,
    ))
}

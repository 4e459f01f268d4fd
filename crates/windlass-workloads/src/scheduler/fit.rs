//! Which node a pod goes to, and why not to the others.
//!
//! A node takes a pod when it is not cordoned or tainted against it, has the labels the pod asks
//! for, has its ports and [`resources`](super::resources) free, and the pod's neighbours
//! ([`neighbours`](super::neighbours)) and volumes ([`volumes`](super::volumes)) allow it. Of those
//! that take it the one that would rather have others (`PreferNoSchedule`) comes last; then the one
//! with the most preferred labels is chosen, then the one with the fewest pods, then the first by
//! name, so that a run can be repeated.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodSpec, Taint};

use super::occupancy::{House, Occupancy};
use super::resources::{self, Resources};
use super::volumes::Volumes;
use super::{neighbours, resources::ports};
use crate::affinity;
use crate::toleration::{of_pod, taints, tolerates, untolerated};

/// What there is.
pub(crate) struct Cluster<'a> {
    pub nodes: &'a [Arc<Node>],
    /// The pods on nodes, those just bound included.
    pub occupancy: &'a Occupancy,
    pub namespaces: &'a [Arc<Namespace>],
}

/// Where a pod goes, or why nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement<'a> {
    /// The name of the node.
    Node(&'a str),
    /// No node takes it, for these reasons.
    Nowhere(String),
}

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    reasons: Vec<String>,
    /// Whether it might if other pods left.
    passing: bool,
}

impl Refusal {
    fn lasting(reason: &str) -> Self {
        Self {
            reasons: vec![reason.to_owned()],
            passing: false,
        }
    }

    fn passing(reason: &str) -> Self {
        Self {
            reasons: vec![reason.to_owned()],
            passing: true,
        }
    }
}

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Places a pod on one of the nodes.
pub(crate) fn place<'a>(pod: &Pod, cluster: &Cluster<'a>, volumes: &Volumes<'_>) -> Placement<'a> {
    if cluster.nodes.is_empty() {
        return Placement::Nowhere("no nodes available to schedule pods".to_owned());
    }
    let all = cluster.nodes.len();
    if let Err(why) = volumes.are_there() {
        let lasting = BTreeMap::from([(HOPELESS.to_owned(), all)]);
        let told = format!(
            "0/{all} nodes are available: {why}. {}",
            preemption(pod, all, &lasting)
        );
        return Placement::Nowhere(told);
    }
    let mut refusals = Vec::new();
    let mut fitting = Vec::new();
    for node in cluster.nodes {
        if let Some(refusal) = refusal(pod, node, cluster, volumes) {
            refusals.push(refusal);
            continue;
        }
        let load = cluster.occupancy.on(name(node)).map_or(0, House::len);
        let chosen = volumes.chose(name(node));
        let unwelcome = unwelcome(pod, node);
        fitting.push((!chosen, unwelcome, -preference(pod, node), load, name(node)));
    }
    match fitting.into_iter().min() {
        Some((_, _, _, _, name)) => Placement::Node(name),
        None => Placement::Nowhere(message(pod, all, &refusals)),
    }
}

/// How many taints say that the node would rather not have the pod.
fn unwelcome(pod: &Pod, node: &Node) -> usize {
    let soft = |taint: &&Taint| taint.effect == "PreferNoSchedule";
    let bears = |taint: &Taint| of_pod(pod).iter().any(|one| tolerates(one, taint));
    let taints = taints(node).iter().filter(soft);
    taints.filter(|taint| !bears(taint)).count()
}

/// Why the node does not take the pod; `None` if it does.
fn refusal(
    pod: &Pod,
    node: &Node,
    cluster: &Cluster<'_>,
    volumes: &Volumes<'_>,
) -> Option<Refusal> {
    let empty = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let tolerations = of_pod(pod);
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    if cordoned && !tolerations.iter().any(tolerates_cordon) {
        return Some(Refusal::lasting("node(s) were unschedulable"));
    }
    if untolerated(taints(node), tolerations, &["NoSchedule", "NoExecute"]).is_some() {
        return Some(Refusal::lasting("node(s) had untolerated taint(s)"));
    }
    if !affinity::is_allowed(spec, node) {
        return Some(Refusal::lasting(
            "node(s) didn't match Pod's node affinity/selector",
        ));
    }
    let nobody = House::default();
    let there = cluster.occupancy.on(name(node)).unwrap_or(&nobody);
    if ports::are_taken(spec, there) {
        let reason = "node(s) didn't have free ports for the requested pod ports";
        return Some(Refusal::passing(reason));
    }
    let short = resources::short(node, there, &Resources::of(spec));
    if !short.is_empty() {
        return Some(Refusal {
            reasons: short,
            passing: true,
        });
    }
    if let Some(reason) = volumes.refusal(node) {
        return Some(Refusal::lasting(reason));
    }
    neighbours::refusal(pod, node, cluster).map(|(reason, passing)| {
        if passing {
            Refusal::passing(reason)
        } else {
            Refusal::lasting(reason)
        }
    })
}

fn tolerates_cordon(toleration: &k8s_openapi::api::core::v1::Toleration) -> bool {
    let taint = k8s_openapi::api::core::v1::Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    };
    crate::toleration::tolerates(toleration, &taint)
}

/// How much a pod would like to be on a node.
fn preference(pod: &Pod, node: &Node) -> i64 {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = affinity
        .and_then(|one| {
            one.preferred_during_scheduling_ignored_during_execution
                .as_deref()
        })
        .unwrap_or_default();
    let matching = terms
        .iter()
        .filter(|term| affinity::term_matches(&term.preference, node));
    matching.map(|term| i64::from(term.weight)).sum()
}

const HOPELESS: &str = "Preemption is not helpful for scheduling";

/// The reasons in the form people know from Kubernetes: `0/2 nodes are available: 2 …`.
fn message(pod: &Pod, all: usize, refusals: &[Refusal]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut preempting: BTreeMap<String, usize> = BTreeMap::new();
    for refusal in refusals {
        for reason in &refusal.reasons {
            *counts.entry(reason.clone()).or_default() += 1;
        }
        let why = if refusal.passing {
            "No preemption victims found for incoming pod"
        } else {
            HOPELESS
        };
        *preempting.entry(why.to_owned()).or_default() += 1;
    }
    let told = sentence(all, &counts);
    format!("{told} {}", preemption(pod, all, &preempting))
}

/// What Kubernetes adds about making room: nobody is sent away here, which it has words for.
fn preemption(pod: &Pod, all: usize, reasons: &BTreeMap<String, usize>) -> String {
    let policy = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.preemption_policy.as_deref());
    let claims = "no new claims to deallocate";
    if policy == Some("Never") {
        return format!("{claims}, preemption: not eligible due to preemptionPolicy=Never.");
    }
    format!("{claims}, preemption: {}", sentence(all, reasons))
}

fn sentence(all: usize, counts: &BTreeMap<String, usize>) -> String {
    let mut reasons: Vec<String> = counts
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    reasons.sort();
    format!("0/{all} nodes are available: {}.", reasons.join(", "))
}

/// How important a pod is: of those that wait, the more important ones come first.
pub(crate) fn priority(pod: &Pod) -> i32 {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.priority).unwrap_or(0)
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;

//! What a DaemonSet does next.
//!
//! First every node gets the pod it wants and loses those it does not ([`manage`]); only when
//! there is nothing of that to do, a rolling update takes its next step ([`update`]): it deletes
//! old pods as far as `maxUnavailable` allows, or creates new ones beside them as far as
//! `maxSurge` does.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};

use super::place::{Wants, by_node, wants};
use super::template::is_updated;
use crate::deployment::limits::{Rounding, scaled};
use crate::pod;

/// What there is.
pub(crate) struct View<'a> {
    pub set: &'a DaemonSet,
    pub nodes: Vec<&'a Node>,
    pub pods: Vec<&'a Pod>,
    /// The revision of now.
    pub hash: &'a str,
    pub now: Timestamp,
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan<'a> {
    /// Nodes that get a pod.
    pub create: Vec<String>,
    /// Pods that go.
    pub delete: Vec<&'a Pod>,
    /// Pods that failed, by node: they go, but not too often.
    pub failed: Vec<(String, &'a Pod)>,
    /// Pods that ended well, by node.
    pub succeeded: Vec<(String, &'a Pod)>,
}

impl Plan<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Plan::default()
    }
}

pub(crate) fn min_ready_seconds(set: &DaemonSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.min_ready_seconds)
        .unwrap_or(0)
}

/// The rolling update, unless pods change only as somebody deletes them.
fn rolling(set: &DaemonSet) -> Option<RollingUpdateDaemonSet> {
    let strategy = set
        .spec
        .as_ref()
        .and_then(|spec| spec.update_strategy.clone());
    let strategy = strategy.unwrap_or_default();
    (strategy.type_.as_deref() != Some("OnDelete"))
        .then(|| strategy.rolling_update.unwrap_or_default())
}

/// How many pods may be there besides those of before, and how many may be missing.
fn room(set: &DaemonSet, wanted: i32) -> (i32, i32) {
    let rolling = rolling(set).unwrap_or_default();
    let surge = scaled(rolling.max_surge.as_ref(), wanted, Rounding::Up);
    let unavailable = scaled(rolling.max_unavailable.as_ref(), wanted, Rounding::Up);
    if wanted > 0 && surge == 0 && unavailable == 0 {
        return (0, 1);
    }
    (surge, unavailable)
}

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

impl<'a> View<'a> {
    fn is_available(&self, pod: &Pod) -> bool {
        pod::is_available(pod, min_ready_seconds(self.set), self.now)
    }

    fn is_new(&self, pod: &Pod) -> bool {
        is_updated(self.set, pod, self.hash)
    }

    /// Gives every node what it wants.
    pub(crate) fn manage(&self) -> Plan<'a> {
        let by_node = by_node(&self.pods);
        let mut plan = Plan::default();
        for node in &self.nodes {
            let pods = by_node.get(name(node)).map(Vec::as_slice);
            match (wants(self.set, node), pods) {
                (Wants::Pod, None) => plan.create.push(name(node).to_owned()),
                (Wants::None, Some(pods)) => {
                    plan.delete
                        .extend(pods.iter().filter(|pod| !pod::is_terminating(pod)));
                }
                (Wants::None | Wants::ToKeep, None) => {}
                (wanted, Some(pods)) => self.keep(&mut plan, name(node), wanted, pods),
            }
        }
        // What was meant for a node that is gone will never be bound.
        let is_node = |one: &str| self.nodes.iter().any(|node| name(node) == one);
        for (_, pods) in by_node.iter().filter(|(node, _)| !is_node(node)) {
            plan.delete
                .extend(pods.iter().filter(|pod| pod::node_name(pod).is_none()));
        }
        plan
    }

    /// Looks after the pods of a node that may keep them.
    fn keep(&self, plan: &mut Plan<'a>, node: &str, wanted: Wants, pods: &[&'a Pod]) {
        let mut running: Vec<&'a Pod> = Vec::new();
        for one in pods.iter().filter(|pod| !pod::is_terminating(pod)) {
            match pod::phase(one) {
                "Failed" => plan.failed.push((node.to_owned(), one)),
                "Succeeded" => plan.succeeded.push((node.to_owned(), one)),
                _ => running.push(one),
            }
        }
        if room(self.set, 1).0 == 0 {
            plan.delete.extend(running.into_iter().skip(1));
            return;
        }
        if running.is_empty() && wanted == Wants::Pod {
            plan.create.push(node.to_owned());
        }
        if running.len() <= 1 {
            return;
        }
        let (new, old): (Vec<&Pod>, Vec<&Pod>) =
            running.into_iter().partition(|one| self.is_new(one));
        plan.delete
            .extend(new.iter().skip(1).chain(old.iter().skip(1)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pod::is_ready(old) || self.is_available(new))
        {
            plan.delete.push(old);
        }
    }

    /// The new and the old pod of a node; `None` where there are more of either.
    fn pair(&self, pods: &[&'a Pod]) -> Option<(Option<&'a Pod>, Option<&'a Pod>)> {
        let (mut new, mut old) = (None, None);
        for one in pods.iter().filter(|pod| !pod::is_terminating(pod)) {
            let place = if self.is_new(one) { &mut new } else { &mut old };
            if place.replace(*one).is_some() {
                return None;
            }
        }
        Some((new, old))
    }

    /// The next step of a rolling update.
    pub(crate) fn update(&self) -> Plan<'a> {
        if rolling(self.set).is_none() {
            return Plan::default();
        }
        let mut by_node = by_node(&self.pods);
        let mut wanted = 0;
        for node in self
            .nodes
            .iter()
            .filter(|node| wants(self.set, node) == Wants::Pod)
        {
            wanted += 1;
            by_node.entry(name(node)).or_default();
        }
        let (surge, unavailable) = room(self.set, wanted);
        if surge == 0 {
            self.replace(&by_node, unavailable)
        } else {
            self.surge(&by_node, surge, wanted)
        }
    }

    /// Deletes old pods: those that are no loss, and as many others as may be missing.
    fn replace(&self, by_node: &BTreeMap<&str, Vec<&'a Pod>>, may_be_missing: i32) -> Plan<'a> {
        let (mut missing, mut no_loss, mut candidates) = (0, Vec::new(), Vec::new());
        for pods in by_node.values() {
            match self.pair(pods) {
                None | Some((None, None) | (Some(_), Some(_))) => missing += 1,
                Some((Some(new), None)) => missing += i32::from(!self.is_available(new)),
                Some((None, Some(old))) if !self.is_available(old) => {
                    no_loss.push(old);
                    missing += 1;
                }
                Some((None, Some(old))) => candidates.push(old),
            }
        }
        let more = usize::try_from(may_be_missing - missing).unwrap_or(0);
        no_loss.extend(candidates.into_iter().take(more));
        Plan {
            delete: no_loss,
            ..Plan::default()
        }
    }

    /// Creates new pods beside old ones, and deletes those whose new one is there.
    fn surge(&self, by_node: &BTreeMap<&str, Vec<&'a Pod>>, surge: i32, wanted: i32) -> Plan<'a> {
        let mut plan = Plan::default();
        let (mut surging, mut available) = (0, 0);
        let (mut candidates, mut unwanted) = (Vec::new(), Vec::new());
        let wants_pod = |node: &str| {
            let mut nodes = self.nodes.iter();
            let node = nodes.find(|one| name(one) == node);
            node.is_some_and(|node| wants(self.set, node) == Wants::Pod)
        };
        for (node, pods) in by_node {
            let Some((new, old)) = self.pair(pods) else {
                surging += 1;
                continue;
            };
            available += i32::from(old.or(new).is_some_and(|one| self.is_available(one)));
            match (new, old) {
                (_, None) => {}
                (None, Some(old)) => match (self.is_available(old), wants_pod(node)) {
                    (false, false) => plan.delete.push(old),
                    (false, true) => plan.create.push((*node).to_owned()),
                    (true, false) => unwanted.push(old),
                    (true, true) => candidates.push((*node).to_owned()),
                },
                (Some(new), Some(old)) if self.is_available(new) => plan.delete.push(old),
                (Some(_), Some(_)) => surging += 1,
            }
        }
        let spare = usize::try_from(available - wanted).unwrap_or(0);
        plan.delete.extend(unwanted.into_iter().take(spare));
        let more = usize::try_from(surge - surging).unwrap_or(0);
        plan.create.extend(candidates.into_iter().take(more));
        plan
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

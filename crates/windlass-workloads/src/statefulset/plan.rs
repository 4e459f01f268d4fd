//! What a StatefulSet does next.
//!
//! Pods are looked at in the order of their ordinals: one that ended is deleted, one that is
//! missing is created. Then those beyond the wanted range go, the highest first, and last of all
//! the highest pod of an old revision is deleted, to come back as a new one. An **ordered** set
//! takes no step before the pod of the step before is available; a **parallel** one does all but
//! the update at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use super::ordinal::{ordinal, range, spec, start};
use super::template::{self, Version};
use super::{retention, status};
use crate::pod;

/// What there is.
pub(crate) struct View<'a> {
    pub set: &'a StatefulSet,
    /// What pods were made from before the roll-out under way.
    pub current: &'a Version,
    /// What pods are made from now.
    pub update: &'a Version,
    /// The pods of the set.
    pub pods: &'a [Arc<Pod>],
    /// The claims of the namespace, by name.
    pub claims: &'a BTreeMap<String, Arc<PersistentVolumeClaim>>,
    pub now: Timestamp,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Create the claims of a pod, and then the pod.
    Create(Box<Pod>, i32),
    /// Create what claims of a pending pod are missing.
    Claim(Box<Pod>, i32),
    /// Give a pod its identity, its volumes and its claims' owners back.
    Repair(Box<Pod>, i32),
    /// Give the claims of a pod that is not wanted any more their owners.
    Retain(Box<Pod>, i32),
    /// Delete a pod.
    Delete(Box<Pod>),
}

/// What to do, in order, and what there is to tell.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub steps: Vec<Step>,
    /// Pods of the old revision that are deleted for the update.
    pub updated: i32,
    /// Whether a claim has to go before a pod can come.
    pub waits_for_claim: bool,
}

impl View<'_> {
    fn min_ready(&self) -> i32 {
        status::min_ready_seconds(self.set)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod::is_available(pod, self.min_ready(), self.now)
    }

    fn is_ordered(&self) -> bool {
        spec(self.set).and_then(|spec| spec.pod_management_policy.as_deref()) != Some("Parallel")
    }

    /// The lowest ordinal, counted from the first, that a rolling update changes; `None` when pods
    /// change only as somebody deletes them.
    fn partition(&self) -> Option<i32> {
        let strategy = spec(self.set).and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        Some(rolling.and_then(|rolling| rolling.partition).unwrap_or(0))
    }

    /// The pod with this ordinal as it would be made now.
    fn missing(&self, ordinal: i32) -> Pod {
        let strategy = spec(self.set).and_then(|spec| spec.update_strategy.as_ref());
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let kept = match (self.partition(), rolling) {
            (Some(partition), Some(_)) => partition,
            (Some(_), None) => {
                let status = self.set.status.as_ref();
                status
                    .and_then(|status| status.current_replicas)
                    .unwrap_or(0)
            }
            (None, _) => 0,
        };
        let is_kept = ordinal < start(self.set).saturating_add(kept);
        let version = if is_kept { self.current } else { self.update };
        template::pod(self.set, version, ordinal)
    }

    fn claims_of(&self, ordinal: i32) -> impl Iterator<Item = &PersistentVolumeClaim> {
        let names = template::claims(self.set, ordinal).into_iter();
        let claims = names.filter_map(|claim| self.claims.get(claim.metadata.name.as_deref()?));
        claims.map(Arc::as_ref)
    }

    fn is_repaired(&self, pod: &Pod, ordinal: i32) -> bool {
        template::is_identified(self.set, pod, ordinal)
            && template::is_stored(self.set, pod, ordinal)
            && self.is_retained(pod, ordinal)
    }

    fn is_retained(&self, pod: &Pod, ordinal: i32) -> bool {
        let mut claims = self.claims_of(ordinal);
        claims.all(|claim| retention::owners(self.set, claim, pod).is_none())
    }

    /// Looks after one wanted pod; true when nothing more may be done before it is well.
    fn look_after(&self, plan: &mut Plan, pod: Option<&Pod>, ordinal: i32) -> bool {
        let Some(pod) = pod else {
            let missing = self.missing(ordinal);
            if self
                .claims_of(ordinal)
                .any(|claim| retention::is_doomed(self.set, claim, &missing))
            {
                plan.waits_for_claim = true;
            } else {
                plan.steps.push(Step::Create(Box::new(missing), ordinal));
            }
            return true;
        };
        if pod::has_ended(pod) {
            if !pod::is_terminating(pod) {
                plan.steps.push(Step::Delete(Box::new(pod.clone())));
            }
            return true;
        }
        if pod::phase(pod) == "Pending" {
            plan.steps.push(Step::Claim(Box::new(pod.clone()), ordinal));
        }
        if self.is_ordered() && (pod::is_terminating(pod) || !self.is_available(pod)) {
            return true;
        }
        if !self.is_repaired(pod, ordinal) {
            plan.steps
                .push(Step::Repair(Box::new(pod.clone()), ordinal));
        }
        false
    }
}

/// What to do next.
pub(crate) fn plan(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let by_ordinal: BTreeMap<i32, &Pod> = view
        .pods
        .iter()
        .filter_map(|pod| Some((ordinal(view.set, pod)?, pod.as_ref())))
        .collect();
    let wanted = range(view.set);
    let is_unavailable = |pod: &Pod| pod::is_terminating(pod) || !view.is_available(pod);
    for ordinal in wanted.clone() {
        let waits = view.look_after(&mut plan, by_ordinal.get(&ordinal).copied(), ordinal);
        if waits && view.is_ordered() {
            return plan;
        }
    }

    let condemned = by_ordinal
        .iter()
        .rev()
        .filter(|(ordinal, _)| !wanted.contains(*ordinal));
    let condemned: Vec<(i32, &Pod)> = condemned.map(|(ordinal, pod)| (*ordinal, *pod)).collect();
    for (ordinal, pod) in &condemned {
        if !view.is_retained(pod, *ordinal) {
            plan.steps
                .push(Step::Retain(Box::new((*pod).clone()), *ordinal));
        }
    }
    // An ordered set gets smaller only from a healthy state, but for the pod that is not.
    let unhealthy = condemned.iter().rev().find(|(_, pod)| is_unavailable(pod));
    let first_wanted_is_unhealthy = wanted.clone().any(|ordinal| {
        by_ordinal
            .get(&ordinal)
            .is_none_or(|pod| is_unavailable(pod))
    });
    for (ordinal, pod) in &condemned {
        if pod::is_terminating(pod) {
            if view.is_ordered() {
                return plan;
            }
            continue;
        }
        let is_the_unhealthy = !first_wanted_is_unhealthy
            && unhealthy.is_some_and(|(unhealthy, _)| unhealthy == ordinal);
        if view.is_ordered() && !view.is_available(pod) && !is_the_unhealthy {
            return plan;
        }
        plan.steps.push(Step::Delete(Box::new((*pod).clone())));
        if view.is_ordered() {
            return plan;
        }
    }

    let Some(partition) = view.partition() else {
        return plan;
    };
    let lowest = start(view.set).saturating_add(partition);
    for ordinal in wanted.rev().take_while(|ordinal| *ordinal >= lowest) {
        let Some(pod) = by_ordinal.get(&ordinal).copied() else {
            // One that is made just now is of the new revision, and not yet available.
            return plan;
        };
        if template::revision(pod) != view.update.name && !pod::is_terminating(pod) {
            plan.steps.push(Step::Delete(Box::new(pod.clone())));
            plan.updated = 1;
            return plan;
        }
        if is_unavailable(pod) {
            return plan;
        }
    }
    plan
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

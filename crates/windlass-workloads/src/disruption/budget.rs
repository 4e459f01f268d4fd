//! How many pods a PodDisruptionBudget lets go.
//!
//! A budget wants so many of its pods healthy; what is healthy beyond that may be disrupted. A
//! percentage, and `maxUnavailable`, are of the pods that the pods' controllers want, so they hold
//! while pods are missing. A pod that was evicted counts as gone even before it is.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::deployment::limits::{Rounding, scaled};
use crate::pod;

const CONDITION: &str = "DisruptionAllowed";
/// How long an evicted pod may take until its deletion begins.
const PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// Whether the budget depends on how many pods are wanted, beyond those that are there.
pub(crate) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    budget.spec.as_ref().is_some_and(|spec| {
        let is_percent = matches!(spec.min_available, Some(IntOrString::String(_)));
        spec.max_unavailable.is_some() || is_percent
    })
}

/// The pods that were evicted and are still there, and when the first of them should be gone.
pub(crate) fn disrupted(
    budget: &PodDisruptionBudget,
    pods: &[impl Borrow<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Time>, Option<Timestamp>) {
    let status = budget.status.as_ref();
    let known = status.and_then(|status| status.disrupted_pods.as_ref());
    let mut disrupted = BTreeMap::new();
    let mut recheck: Option<Timestamp> = None;
    for (name, time) in known.into_iter().flatten() {
        let there =
            |pod: &Pod| pod.metadata.name.as_ref() == Some(name) && !pod::is_terminating(pod);
        let gone_at = time.0.checked_add(PATIENCE).unwrap_or(time.0);
        if pods.iter().any(|pod| there(pod.borrow())) && gone_at >= now {
            disrupted.insert(name.clone(), time.clone());
            recheck = Some(recheck.map_or(gone_at, |at| at.min(gone_at)));
        }
    }
    (disrupted, recheck)
}

/// The status of a budget with these pods, of which their controllers want `scale`.
pub(crate) fn status(
    budget: &PodDisruptionBudget,
    pods: &[impl Borrow<Pod>],
    scale: i32,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let spec = budget.spec.clone().unwrap_or_default();
    let count = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    let (expected, desired) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(unavailable), _) => {
            let unavailable = scaled(Some(unavailable), scale, Rounding::Up);
            (scale, (scale - unavailable).max(0))
        }
        (None, Some(IntOrString::Int(available))) => (count, *available),
        (None, Some(percent)) => (scale, scaled(Some(percent), scale, Rounding::Up)),
        (None, None) => (0, 0),
    };
    let (disrupted, _) = disrupted(budget, pods, now);
    let is_healthy = |pod: &Pod| {
        let evicted = pod
            .metadata
            .name
            .as_ref()
            .is_some_and(|name| disrupted.contains_key(name));
        !pod::is_terminating(pod) && !evicted && pod::is_ready(pod)
    };
    let healthy = pods.iter().filter(|pod| is_healthy((*pod).borrow()));
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let allowed = if expected <= 0 {
        0
    } else {
        (healthy - desired).max(0)
    };
    let generation = budget.metadata.generation;
    let (state, reason) = match allowed {
        0 => ("False", "InsufficientPods"),
        _ => ("True", "SufficientPods"),
    };
    PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: generation,
        conditions: Some(told(budget, state, reason, "", generation, now)),
    }
}

/// The status of a budget that cannot be worked out: nothing may go.
pub(crate) fn failed(
    budget: &PodDisruptionBudget,
    why: &str,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    let generation = status.observed_generation;
    status.conditions = Some(told(budget, "False", "SyncFailed", why, generation, now));
    status
}

/// The conditions with ours among them.
fn told(
    budget: &PodDisruptionBudget,
    state: &str,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let before = budget
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone());
    let mut conditions = before.unwrap_or_default();
    let mut ours = Condition {
        type_: CONDITION.to_owned(),
        status: state.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|one| one.type_ == CONDITION) {
        Some(one) => {
            if one.status == ours.status {
                ours.last_transition_time
                    .clone_from(&one.last_transition_time);
            }
            *one = ours;
        }
        None => conditions.push(ours),
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{at, pod, ready};
    use serde_json::{Value, json};

    fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": {"generation": 3}, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn counts(spec: Value, pods: &[Pod], scale: i32) -> [i32; 4] {
        let status = status(&budget(spec, Value::Null), pods, scale, at(0));
        [
            status.expected_pods.unwrap(),
            status.desired_healthy.unwrap(),
            status.current_healthy.unwrap(),
            status.disruptions_allowed.unwrap(),
        ]
    }

    #[test]
    fn numbers_are_of_pods_and_percentages_of_the_scale() {
        let pods = [ready(pod("a"), 0), ready(pod("b"), 0), pod("c")];
        assert_eq!(counts(json!({"minAvailable": 1}), &pods, 5), [3, 1, 2, 1]);
        assert_eq!(counts(json!({"minAvailable": 3}), &pods, 5), [3, 3, 2, 0]);
        assert_eq!(
            counts(json!({"minAvailable": "30%"}), &pods, 5),
            [5, 2, 2, 0]
        );
        assert_eq!(counts(json!({"maxUnavailable": 4}), &pods, 5), [5, 1, 2, 1]);
        assert_eq!(
            counts(json!({"maxUnavailable": "50%"}), &pods, 3),
            [3, 1, 2, 1]
        );
        assert_eq!(counts(json!({"maxUnavailable": 1}), &[], 0), [0, 0, 0, 0]);
    }

    #[test]
    fn an_evicted_pod_counts_as_gone_for_a_while() {
        let pods = [ready(pod("a"), 0), ready(pod("b"), 0)];
        let evicted = json!({
            "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 2,
            "disruptedPods": {"a": "1970-01-01T00:00:10Z", "gone": "1970-01-01T00:00:10Z"},
        });
        let budget = budget(json!({"minAvailable": 1}), evicted);
        let status_now = status(&budget, &pods, 0, at(20));
        assert_eq!(status_now.current_healthy, Some(1));
        assert_eq!(
            status_now
                .disrupted_pods
                .unwrap()
                .keys()
                .collect::<Vec<_>>(),
            ["a"]
        );
        assert_eq!(disrupted(&budget, &pods, at(20)).1, Some(at(130)));
        let later = status(&budget, &pods, 0, at(131));
        assert_eq!(
            (later.current_healthy, later.disrupted_pods),
            (Some(2), None)
        );
    }

    #[test]
    fn the_condition_says_whether_and_why() {
        let pods = [ready(pod("a"), 0)];
        let allowed = status(
            &budget(json!({"minAvailable": 0}), Value::Null),
            &pods,
            0,
            at(0),
        );
        let told = &allowed.conditions.unwrap()[0];
        assert_eq!(
            (told.status.as_str(), told.reason.as_str()),
            ("True", "SufficientPods")
        );
        assert_eq!(told.observed_generation, Some(3));
        let failed = failed(&budget(json!({}), Value::Null), "no idea", at(0));
        assert_eq!(failed.conditions.unwrap()[0].reason, "SyncFailed");
    }
}

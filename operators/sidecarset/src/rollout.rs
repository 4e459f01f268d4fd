//! Which pods get new images next, as a pure function of the set and its pods.
//!
//! A pod is **updated** when what is recorded on it is what the set says now. It can be **upgraded**
//! when the two differ in images alone: nothing else of a running pod can be changed. It is **ready**
//! when its condition says so and what it was sent really runs: [`crate::readiness`].
//!
//! Pods that are not ready come first: they lose nothing by an upgrade. A pod that is ready is only
//! upgraded while fewer than `maxUnavailable` are not. And no more than `maxUnavailable` that were
//! upgraded may be unready, so a bad image stops the roll-out where it began.

use std::borrow::Borrow;
use std::cmp::Reverse;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use crate::kind::{NOT_UPDATE, SidecarSet, SidecarSetStatus};
use crate::readiness::is_ready;
use crate::record::{Record, records_of};

/// What is to be done, and how things are.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan<'a> {
    /// Pods that get their new images now.
    pub(crate) upgrade: Vec<&'a Pod>,
    /// Pods that cannot get what the set says until they are recreated.
    pub(crate) stuck: Vec<&'a Pod>,
    /// How many pods there are.
    pub(crate) status: SidecarSetStatus,
}

/// Whether a pod has not ended and is not about to.
pub(crate) fn is_active(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Decides about the active pods that a set selects, given in the order of their names.
pub(crate) fn plan<'a>(set: &SidecarSet, pods: &'a [impl Borrow<Pod>]) -> Plan<'a> {
    let wanted = Record::of(set);
    let mut plan = Plan::default();
    let (mut waiting, mut unavailable, mut upgrading) = (Vec::new(), 0, 0);
    for pod in pods.iter().map(Borrow::borrow) {
        let mut records = records_of(pod);
        // What another set has sent to the pod counts as well.
        let ready = is_ready(pod, records.values());
        let record = records.remove(&set.name_any()).unwrap_or_default();
        let updated = record.hash == wanted.hash;
        plan.status.matched_pods += 1;
        plan.status.ready_pods += i32::from(ready);
        plan.status.updated_pods += i32::from(updated);
        plan.status.updated_ready_pods += i32::from(updated && ready);
        unavailable += usize::from(!ready);
        upgrading += usize::from(updated && !ready);
        if !updated && record.hash_without_image == wanted.hash_without_image {
            waiting.push((ready, pod));
        } else if !updated {
            plan.stuck.push(pod);
        }
    }
    let strategy = &set.spec.update_strategy;
    let updates = strategy.of.as_deref() != Some(NOT_UPDATE);
    if !updates {
        plan.stuck.clear();
    }
    if !updates || strategy.paused {
        return plan;
    }
    if let Some(selector) = strategy.selector.clone() {
        let selector = Selector::try_from(selector).unwrap_or_default();
        waiting.retain(|(_, pod)| selector.matches(pod.labels()));
    }
    // The youngest first: they have done the least.
    waiting.sort_by_key(|(ready, pod)| (*ready, Reverse(pod.creation_timestamp())));
    let keep = amount(strategy.partition.as_ref(), 0, pods.len());
    waiting.truncate(waiting.len().saturating_sub(keep));
    let limit = amount(strategy.max_unavailable.as_ref(), 1, pods.len());
    for (ready, pod) in waiting {
        if upgrading >= limit || (ready && unavailable >= limit) {
            break;
        }
        upgrading += 1;
        unavailable += usize::from(ready);
        plan.upgrade.push(pod);
    }
    plan
}

/// How many of `all` a number or a percentage, rounded up, is.
fn amount(of: Option<&IntOrString>, default: usize, all: usize) -> usize {
    match of {
        None => default,
        Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or(0),
        Some(IntOrString::String(text)) => match text.strip_suffix('%').map(str::parse::<usize>) {
            Some(Ok(percent)) => all.saturating_mul(percent).div_ceil(100),
            _ => default,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::record::ANNOTATION;

    /// A set whose sidecar has this image.
    fn set(image: &str, strategy: Value) -> SidecarSet {
        let mut set = crate::sample::set();
        set.spec.containers[0].container.image = Some(image.to_owned());
        set.spec.update_strategy = serde_json::from_value(strategy).unwrap();
        set
    }

    fn pod(name: &str, of: &SidecarSet, ready: bool) -> Pod {
        let records = BTreeMap::from([(of.name_any(), Record::of(of))]);
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "n", "labels": { "name": name },
                "annotations": { ANNOTATION: serde_json::to_string(&records).unwrap() } },
            "status": { "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }] },
        }))
        .unwrap()
    }

    fn upgraded(set: &SidecarSet, pods: &[Pod]) -> Vec<String> {
        plan(set, pods)
            .upgrade
            .iter()
            .map(|pod| pod.name_any())
            .collect()
    }

    #[test]
    fn max_unavailable_bounds_how_many_are_on_their_way() {
        let old = set("a:1", json!({}));
        let pods: Vec<Pod> = ["p1", "p2", "p3", "p4"]
            .map(|name| pod(name, &old, true))
            .into();
        assert_eq!(
            upgraded(&set("a:2", json!({})), &pods),
            ["p1"],
            "one by default"
        );
        assert_eq!(
            upgraded(&set("a:2", json!({ "maxUnavailable": 2 })), &pods),
            ["p1", "p2"]
        );
        assert_eq!(
            upgraded(&set("a:2", json!({ "maxUnavailable": "60%" })), &pods),
            ["p1", "p2", "p3"]
        );
        assert_eq!(
            upgraded(&set("a:2", json!({ "maxUnavailable": 0 })), &pods),
            [""; 0]
        );
    }

    #[test]
    fn the_unready_come_first_and_count() {
        let old = set("a:1", json!({}));
        let pods = [
            pod("p1", &old, true),
            pod("p2", &old, false),
            pod("p3", &old, true),
        ];
        assert_eq!(upgraded(&set("a:2", json!({})), &pods), ["p2"]);
        assert_eq!(
            upgraded(&set("a:2", json!({ "maxUnavailable": 2 })), &pods),
            ["p2", "p1"]
        );
    }

    #[test]
    fn a_bad_image_stops_where_it_began() {
        let (old, new) = (set("a:1", json!({})), set("bad", json!({})));
        let pods = [
            pod("p1", &new, false),
            pod("p2", &old, true),
            pod("p3", &old, false),
        ];
        assert_eq!(upgraded(&new, &pods), [""; 0]);
        let good = set("a:3", json!({}));
        assert_eq!(
            upgraded(&good, &pods),
            ["p1"],
            "a better image goes to the broken one first"
        );
    }

    #[test]
    fn partition_pause_selector_and_not_update_hold_back() {
        let old = set("a:1", json!({}));
        let pods: Vec<Pod> = ["p1", "p2", "p3"].map(|name| pod(name, &old, true)).into();
        let all = |mut strategy: Value| {
            strategy["maxUnavailable"] = json!("100%");
            upgraded(&set("a:2", strategy), &pods)
        };
        assert_eq!(all(json!({})), ["p1", "p2", "p3"]);
        assert_eq!(all(json!({ "partition": 2 })), ["p1"]);
        assert_eq!(all(json!({ "partition": "50%" })), ["p1"]);
        assert_eq!(all(json!({ "partition": 3 })), [""; 0]);
        assert_eq!(all(json!({ "paused": true })), [""; 0]);
        assert_eq!(all(json!({ "type": "NotUpdate" })), [""; 0]);
        assert_eq!(
            all(json!({ "selector": { "matchLabels": { "name": "p2" } } })),
            ["p2"]
        );
    }

    #[test]
    fn more_than_the_image_is_stuck() {
        let old = set("a:1", json!({}));
        let mut new = set("a:2", json!({}));
        new.spec.containers[0].container.command = Some(vec!["sleep".to_owned()]);
        let pods = [pod("p1", &old, true), pod("p2", &new, true)];
        let plan = plan(&new, &pods);
        assert_eq!(plan.stuck, [&pods[0]]);
        assert!(plan.upgrade.is_empty());
        let status = SidecarSetStatus {
            matched_pods: 2,
            updated_pods: 1,
            ready_pods: 2,
            updated_ready_pods: 1,
            ..SidecarSetStatus::default()
        };
        assert_eq!(plan.status, status);
    }
}

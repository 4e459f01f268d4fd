//! Which pods get new images next, as a pure function of the set and its pods.
//!
//! A pod is **updated** when what is recorded on it is what the set says now. It can be **upgraded**
//! when the two differ in images alone: nothing else of a running pod can be changed. It is **ready**
//! when it says so and no container of it is still the one that was replaced.
//!
//! Pods that are not ready come first: they lose nothing by an upgrade. A pod that is ready is only
//! upgraded while fewer than `maxUnavailable` are not. And no more than `maxUnavailable` that were
//! upgraded may be on their way, so a bad image stops the roll-out where it began.

use std::borrow::Borrow;

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::util::intstr::IntOrString};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use crate::kind::{SidecarSet, SidecarSetStatus};
use crate::record::{Record, records_of};
use crate::validation::share_of;

/// What is to be done, and how things are.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan<'a> {
    /// Pods that get their new images now.
    pub(crate) upgrade: Vec<&'a Pod>,
    /// Pods that cannot get what the set says without being made anew.
    pub(crate) stuck: Vec<&'a Pod>,
    /// How many pods there are.
    pub(crate) counts: Counts,
}

/// How many pods there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    matched: i32,
    updated: i32,
    ready: i32,
    updated_ready: i32,
}

impl From<Counts> for SidecarSetStatus {
    fn from(counts: Counts) -> Self {
        Self {
            matched_pods: counts.matched,
            updated_pods: counts.updated,
            ready_pods: counts.ready,
            updated_ready_pods: counts.updated_ready,
            ..Self::default()
        }
    }
}

/// Whether a pod has not ended and is not about to.
pub(crate) fn is_active(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Decides about the active pods that a set matches.
pub(crate) fn plan<'a>(set: &SidecarSet, pods: &'a [impl Borrow<Pod>]) -> Plan<'a> {
    let wanted = Record::of(set);
    let name = set.name_any();
    let mut plan = Plan::default();
    let (mut waiting, mut unavailable, mut upgrading) = (Vec::new(), 0, 0);
    for pod in pods.iter().map(Borrow::borrow) {
        let record = records_of(pod).remove(&name);
        let ready = is_ready(pod, record.as_ref());
        let updated = record
            .as_ref()
            .is_some_and(|record| record.hash == wanted.hash);
        plan.counts.matched += 1;
        plan.counts.ready += i32::from(ready);
        plan.counts.updated += i32::from(updated);
        plan.counts.updated_ready += i32::from(updated && ready);
        unavailable += usize::from(!ready);
        upgrading += usize::from(updated && !ready);
        match record {
            Some(record) if !updated && record.hash_without_image == wanted.hash_without_image => {
                waiting.push((ready, pod));
            }
            _ if !updated => plan.stuck.push(pod),
            _ => {}
        }
    }
    let strategy = &set.spec.update_strategy;
    if !set.spec.rolls() {
        plan.stuck.clear();
        return plan;
    }
    if strategy.paused {
        return plan;
    }
    if let Some(selector) = strategy.selector.clone() {
        let selector = Selector::try_from(selector).unwrap_or_default();
        waiting.retain(|(_, pod)| selector.matches(pod.labels()));
    }
    // The youngest first: they have done the least.
    waiting.sort_by_key(|(ready, pod)| {
        let born = pod.metadata.creation_timestamp.clone();
        (
            *ready,
            std::cmp::Reverse(born),
            pod.namespace(),
            pod.name_any(),
        )
    });
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

/// The number that an amount is of so many, a share rounded up.
fn amount(of: Option<&IntOrString>, otherwise: usize, all: usize) -> usize {
    match of {
        None => otherwise,
        Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or(0),
        Some(IntOrString::String(text)) => {
            let share = share_of(text).and_then(|share| usize::try_from(share).ok());
            share.map_or(otherwise, |share| (all * share).div_ceil(100))
        }
    }
}

fn is_ready(pod: &Pod, record: Option<&Record>) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let says = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let replaced = record.into_iter().flat_map(|record| &record.replaced);
    says && replaced
        .into_iter()
        .all(|(container, old)| id_of(pod, container).is_some_and(|id| id != *old))
}

/// The id of a container that runs, or ran last.
pub(crate) fn id_of(pod: &Pod, container: &str) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    status.container_id.clone().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::record::{ANNOTATION, text_of};

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
                "annotations": { ANNOTATION: text_of(&records).unwrap() } },
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
            "one unless told"
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
        let mended = set("a:3", json!({}));
        assert_eq!(
            upgraded(&mended, &pods),
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
        let counts = Counts {
            matched: 2,
            updated: 1,
            ready: 2,
            updated_ready: 1,
        };
        assert_eq!(plan.counts, counts);
    }

    #[test]
    fn a_pod_whose_old_container_still_runs_is_not_ready() {
        let set = set("a:2", json!({}));
        let mut pod = pod("p1", &set, true);
        let mut records = records_of(&pod);
        records
            .get_mut(&set.name_any())
            .unwrap()
            .replaced
            .insert("cache".to_owned(), "id-1".to_owned());
        pod.annotations_mut()
            .insert(ANNOTATION.to_owned(), text_of(&records).unwrap());
        let running = |id: &str| {
            serde_json::from_value(json!([{ "name": "cache", "containerID": id, "image": "", "imageID": "", "ready": true, "restartCount": 0 }])).unwrap()
        };
        let mut ready = |id: &str| {
            pod.status.as_mut().unwrap().container_statuses = running(id);
            plan(&set, std::slice::from_ref(&pod)).counts.ready
        };
        assert_eq!((ready("id-1"), ready(""), ready("id-2")), (0, 0, 1));
    }
}

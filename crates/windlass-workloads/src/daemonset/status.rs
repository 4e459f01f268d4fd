//! The status of a DaemonSet, from its nodes and pods.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};

use super::place::{Wants, by_node, wants};
use super::plan::{View, min_ready_seconds};
use super::template::is_updated;
use crate::pod;

/// The status that describes what there is.
pub(crate) fn status(view: &View<'_>) -> DaemonSetStatus {
    let before = view.set.status.as_ref();
    let mut status = DaemonSetStatus {
        observed_generation: view.set.metadata.generation,
        collision_count: before.and_then(|status| status.collision_count),
        conditions: before.and_then(|status| status.conditions.clone()),
        ..DaemonSetStatus::default()
    };
    let (mut available, mut updated) = (0, 0);
    let by_node = by_node(&view.pods);
    for node in &view.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let pods = by_node.get(name);
        if wants(view.set, node) != Wants::Pod {
            status.number_misscheduled += i32::from(pods.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(first) = pods.and_then(|pods| pods.first()) else {
            continue;
        };
        status.current_number_scheduled += 1;
        let is_available = pod::is_available(first, min_ready_seconds(view.set), view.now);
        status.number_ready += i32::from(pod::is_ready(first));
        available += i32::from(pod::is_ready(first) && is_available);
        updated += i32::from(is_updated(view.set, first, view.hash));
    }
    let some = |count: i32| (count != 0).then_some(count);
    status.number_available = some(available);
    status.number_unavailable = some(status.desired_number_scheduled - available);
    status.updated_number_scheduled = some(updated);
    status
}

/// When the next ready pod becomes available; `None` when no ready pod is waiting for that.
pub(crate) fn next_available(set: &DaemonSet, view: &View<'_>) -> Option<Timestamp> {
    let min_ready = min_ready_seconds(set);
    let at = view
        .pods
        .iter()
        .filter_map(|pod| pod::available_at(pod, min_ready));
    at.filter(|at| *at > view.now).min()
}

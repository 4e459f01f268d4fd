//! The status of a StatefulSet, from its pods.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::ordinal::{replicas, spec};
use super::template::revision;
use crate::pod;

/// How long a pod has to be ready to count as available.
pub(crate) fn min_ready_seconds(set: &StatefulSet) -> i32 {
    spec(set)
        .and_then(|spec| spec.min_ready_seconds)
        .unwrap_or(0)
}

/// The status that describes these pods. `updated` of them were just deleted for the update.
pub(crate) fn status(
    set: &StatefulSet,
    (current, update): (&str, &str),
    collisions: i32,
    pods: &[Arc<Pod>],
    updated: i32,
    now: Timestamp,
) -> StatefulSetStatus {
    let count = |is: &dyn Fn(&Pod) -> bool| {
        let count = pods.iter().filter(|pod| is(pod)).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    };
    let is_ready = |pod: &Pod| pod::phase(pod) == "Running" && pod::is_ready(pod);
    let ready = count(&is_ready);
    let min_ready = min_ready_seconds(set);
    let available = count(&|pod| is_ready(pod) && pod::is_available(pod, min_ready, now));
    let of = |name: &str| count(&|pod| !pod::is_terminating(pod) && revision(pod) == name);
    let all = count(&|_| true);
    let (mut current_replicas, updated_replicas) = (of(current) - updated, of(update));
    let wanted = replicas(set);
    // The update has arrived: what was new is what is.
    let mut current = current;
    if !is_on_delete(set) && [updated_replicas, ready, all] == [wanted; 3] {
        current_replicas = updated_replicas;
        current = update;
    }
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: all,
        ready_replicas: some(ready),
        available_replicas: Some(available),
        current_replicas: some(current_replicas),
        updated_replicas: some(updated_replicas),
        current_revision: Some(current.to_owned()),
        update_revision: Some(update.to_owned()),
        collision_count: Some(collisions),
        conditions: set
            .status
            .as_ref()
            .and_then(|status| status.conditions.clone()),
    }
}

fn is_on_delete(set: &StatefulSet) -> bool {
    let strategy = spec(set).and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// When the next ready pod becomes available; `None` when no ready pod is waiting for that.
pub(crate) fn next_available(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Option<Timestamp> {
    let min_ready = min_ready_seconds(set);
    let at = pods
        .iter()
        .filter_map(|pod| pod::available_at(pod, min_ready));
    at.filter(|at| *at > now).min()
}

/// A count that the API leaves out when it is nought.
fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

//! The conditions of a Deployment.
//!
//! **Available** says whether enough pods are. **Progressing** says how the roll-out goes: its
//! update time moves with every step forward, and when it has stood still for the progress
//! deadline the roll-out has failed, which is told and nothing more: the controller goes on trying.
//! **ReplicaFailure** repeats what a ReplicaSet reports about pods it cannot create.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The type of the condition that says whether enough pods are available.
pub(crate) const AVAILABLE: &str = "Available";
/// The type of the condition that says how the roll-out goes.
pub(crate) const PROGRESSING: &str = "Progressing";
/// The type of the condition that repeats the failure of a ReplicaSet.
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// A condition that begins now.
pub(crate) fn condition(
    type_: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The condition of one type.
pub(crate) fn find<'a>(
    conditions: &'a [DeploymentCondition],
    type_: &str,
) -> Option<&'a DeploymentCondition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Sets a condition. One with the same status and reason stays as it is; one with the same status
/// keeps its transition time.
pub(crate) fn set(conditions: &mut Vec<DeploymentCondition>, mut condition: DeploymentCondition) {
    if let Some(current) = find(conditions, &condition.type_)
        && current.status == condition.status
    {
        if current.reason == condition.reason {
            return;
        }
        condition
            .last_transition_time
            .clone_from(&current.last_transition_time);
    }
    remove(conditions, &condition.type_);
    conditions.push(condition);
}

/// Removes the condition of one type.
pub(crate) fn remove(conditions: &mut Vec<DeploymentCondition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}

/// The time a roll-out may stand still, if that is limited.
pub(crate) fn progress_deadline(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds?;
    (seconds != i32::MAX).then(|| SignedDuration::from_secs(i64::from(seconds)))
}

/// Whether the roll-out has arrived: all wanted pods are of the new version, available, and alone.
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = super::limits::replicas(deployment);
    [
        status.updated_replicas,
        status.replicas,
        status.available_replicas,
    ]
    .iter()
    .all(|count| count.unwrap_or(0) == wanted)
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether anything moved forward between two statuses.
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let count = |number: Option<i32>| number.unwrap_or(0);
    let outdated =
        |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(after.updated_replicas) > count(before.updated_replicas)
        || outdated(after) < outdated(before)
        || count(after.ready_replicas) > count(before.ready_replicas)
        || count(after.available_replicas) > count(before.available_replicas)
}

/// When the roll-out told of by this condition has stood still for too long; `None` when it is not
/// limited, has arrived, or has already failed.
pub(crate) fn times_out_at(
    deployment: &Deployment,
    conditions: &[DeploymentCondition],
) -> Option<Timestamp> {
    let progressing = find(conditions, PROGRESSING)?;
    if matches!(
        progressing.reason.as_deref(),
        Some(NEW_REPLICA_SET_AVAILABLE | TIMED_OUT | PAUSED)
    ) {
        return None;
    }
    let since = progressing.last_update_time.as_ref()?.0;
    since.checked_add(progress_deadline(deployment)?).ok()
}

/// Brings the Progressing condition of `status` up to date with a roll-out in motion.
pub(crate) fn progress(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    status: &mut DeploymentStatus,
    now: Timestamp,
) {
    let mut conditions = status.conditions.take().unwrap_or_default();
    if progress_deadline(deployment).is_none() {
        remove(&mut conditions, PROGRESSING);
        status.conditions = Some(conditions);
        return;
    }
    let current = find(&conditions, PROGRESSING).cloned();
    let had_arrived = current
        .as_ref()
        .is_some_and(|current| current.reason.as_deref() == Some(NEW_REPLICA_SET_AVAILABLE));
    // Pods that come and go after the roll-out has arrived are no roll-out.
    if had_arrived && status.replicas == status.updated_replicas {
        status.conditions = Some(conditions);
        return;
    }

    let subject = match new.and_then(|set| set.metadata.name.as_deref()) {
        Some(name) => format!("ReplicaSet \"{name}\""),
        None => format!(
            "Deployment \"{}\"",
            deployment.metadata.name.as_deref().unwrap_or_default()
        ),
    };
    let before = deployment.status.clone().unwrap_or_default();
    if is_complete(deployment, status) {
        let message = format!("{subject} has successfully progressed.");
        set(
            &mut conditions,
            condition(PROGRESSING, "True", NEW_REPLICA_SET_AVAILABLE, message, now),
        );
    } else if has_progressed(&before, status) {
        let message = format!("{subject} is progressing.");
        let mut moved = condition(PROGRESSING, "True", "ReplicaSetUpdated", message, now);
        if let Some(current) = current.filter(|current| current.status == "True") {
            moved.last_transition_time = current.last_transition_time;
        }
        // Not `set`: the update time must move although status and reason stay.
        remove(&mut conditions, PROGRESSING);
        conditions.push(moved);
    } else if times_out_at(deployment, &conditions).is_some_and(|at| at < now) {
        let message = format!("{subject} has timed out progressing.");
        set(
            &mut conditions,
            condition(PROGRESSING, "False", TIMED_OUT, message, now),
        );
    }
    status.conditions = Some(conditions);
}

/// The Progressing condition of a Deployment that was just paused or resumed, if it has to change.
pub(crate) fn pause(deployment: &Deployment, now: Timestamp) -> Option<DeploymentCondition> {
    progress_deadline(deployment)?;
    let conditions = deployment
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let reason = find(conditions.unwrap_or_default(), PROGRESSING)
        .and_then(|current| current.reason.as_deref());
    if reason == Some(TIMED_OUT) {
        return None;
    }
    let paused = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.paused)
        .unwrap_or(false);
    let was_paused = reason == Some(PAUSED);
    let (reason, message) = match (paused, was_paused) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return None,
    };
    Some(condition(
        PROGRESSING,
        "Unknown",
        reason,
        message.to_owned(),
        now,
    ))
}

/// The failure that a ReplicaSet reports, the new one's first.
pub(crate) fn replica_failure(
    new: Option<&ReplicaSet>,
    all: &[&ReplicaSet],
) -> Option<DeploymentCondition> {
    let failure = new
        .into_iter()
        .chain(all.iter().copied())
        .find_map(failure_of)?;
    Some(DeploymentCondition {
        type_: REPLICA_FAILURE.to_owned(),
        status: failure.status.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        last_transition_time: failure.last_transition_time.clone(),
        last_update_time: failure.last_transition_time.clone(),
    })
}

fn failure_of(set: &ReplicaSet) -> Option<&ReplicaSetCondition> {
    let conditions = set.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == REPLICA_FAILURE)
}

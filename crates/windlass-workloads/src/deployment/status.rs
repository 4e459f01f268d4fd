//! The status of a Deployment, from its ReplicaSets.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus};

use super::condition::{self, AVAILABLE, REPLICA_FAILURE};
use super::limits::Limits;

/// The counts and the Available condition.
pub(crate) fn counted(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    all: &[&ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let sum = |count: fn(&ReplicaSetStatus) -> Option<i32>| -> i32 {
        all.iter()
            .filter_map(|set| set.status.as_ref())
            .filter_map(count)
            .sum()
    };
    let limits = Limits::of(deployment);
    let asked: i32 = all.iter().map(|set| replicas(set)).sum();
    let available = sum(|status| status.available_replicas);
    let before = deployment.status.as_ref();
    let mut conditions = before
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    let (status, reason, message) = if available >= limits.min_available() {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    condition::set(
        &mut conditions,
        condition::condition(AVAILABLE, status, reason, message.to_owned(), now),
    );
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sum(|status| Some(status.replicas))),
        updated_replicas: some(
            new.and_then(|set| set.status.as_ref())
                .map_or(0, |status| status.replicas),
        ),
        ready_replicas: some(sum(|status| status.ready_replicas)),
        available_replicas: some(available),
        unavailable_replicas: some((asked - available).max(0)),
        terminating_replicas: Some(sum(|status| status.terminating_replicas)),
        collision_count: before.and_then(|status| status.collision_count),
        conditions: Some(conditions),
    }
}

/// The whole status of a Deployment that is being rolled out.
pub(crate) fn rolling_out(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    all: &[&ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = counted(deployment, new, all, now);
    condition::progress(deployment, new, &mut status, now);
    let conditions = status.conditions.get_or_insert_default();
    match condition::replica_failure(new, all) {
        Some(failure) => condition::set(conditions, failure),
        None => condition::remove(conditions, REPLICA_FAILURE),
    }
    status
}

/// The size a ReplicaSet is asked to have: one unless it says otherwise.
pub(crate) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}

/// A count that the API leaves out when it is nought.
fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::super::condition::{PROGRESSING, find, is_complete, pause, times_out_at};
    use super::*;
    use crate::pod::testing::at;
    use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSetCondition, ReplicaSetSpec};

    fn deployment(replicas: i32) -> Deployment {
        let mut deployment = Deployment {
            spec: Some(DeploymentSpec {
                replicas: Some(replicas),
                progress_deadline_seconds: Some(600),
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        };
        deployment.metadata.name = Some("web".to_owned());
        deployment.metadata.generation = Some(1);
        deployment
    }

    fn set(name: &str, asked: i32, exist: i32, available: i32) -> ReplicaSet {
        let mut set = ReplicaSet {
            spec: Some(ReplicaSetSpec {
                replicas: Some(asked),
                ..ReplicaSetSpec::default()
            }),
            status: Some(ReplicaSetStatus {
                replicas: exist,
                ready_replicas: Some(available),
                available_replicas: Some(available),
                ..ReplicaSetStatus::default()
            }),
            ..ReplicaSet::default()
        };
        set.metadata.name = Some(name.to_owned());
        set
    }

    fn told<'a>(status: &'a DeploymentStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
        let condition = find(status.conditions.as_deref().unwrap(), type_).unwrap();
        (
            condition.status.as_str(),
            condition.reason.as_deref().unwrap(),
            condition.message.as_deref().unwrap(),
        )
    }

    #[test]
    fn counts_over_all_sets() {
        let (new, old) = (set("new", 2, 2, 1), set("old", 2, 3, 2));
        let status = rolling_out(&deployment(3), Some(&new), &[&old, &new], at(0));
        assert_eq!(status.replicas, Some(5));
        assert_eq!(status.updated_replicas, Some(2));
        assert_eq!(status.available_replicas, Some(3));
        assert_eq!(status.unavailable_replicas, Some(1));
        assert_eq!(status.observed_generation, Some(1));
    }

    #[test]
    fn a_rollout_is_told_from_start_to_end() {
        let mut deployment = deployment(3);
        let new = set("web-x", 3, 3, 0);
        let status = rolling_out(&deployment, Some(&new), &[&new], at(10));
        assert_eq!(told(&status, AVAILABLE).1, "MinimumReplicasUnavailable");
        assert_eq!(
            told(&status, PROGRESSING),
            (
                "True",
                "ReplicaSetUpdated",
                "ReplicaSet \"web-x\" is progressing."
            )
        );
        deployment.status = Some(status);

        let new = set("web-x", 3, 3, 2);
        let status = rolling_out(&deployment, Some(&new), &[&new], at(20));
        let progressing = find(status.conditions.as_deref().unwrap(), PROGRESSING).unwrap();
        assert_eq!(progressing.last_update_time.as_ref().unwrap().0, at(20));
        assert_eq!(progressing.last_transition_time.as_ref().unwrap().0, at(10));
        deployment.status = Some(status);

        let new = set("web-x", 3, 3, 3);
        let status = rolling_out(&deployment, Some(&new), &[&new], at(30));
        assert!(is_complete(&deployment, &status));
        assert_eq!(
            told(&status, AVAILABLE),
            (
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability."
            )
        );
        assert_eq!(
            told(&status, PROGRESSING),
            (
                "True",
                "NewReplicaSetAvailable",
                "ReplicaSet \"web-x\" has successfully progressed."
            )
        );
        deployment.status = Some(status.clone());
        // A pod lost later is no roll-out: the condition stays.
        let new = set("web-x", 3, 3, 2);
        let later = rolling_out(&deployment, Some(&new), &[&new], at(9999));
        assert_eq!(told(&later, PROGRESSING), told(&status, PROGRESSING));
    }

    #[test]
    fn standing_still_past_the_deadline_has_failed() {
        let mut deployment = deployment(3);
        let new = set("web-x", 3, 3, 0);
        deployment.status = Some(rolling_out(&deployment, Some(&new), &[&new], at(0)));
        let conditions = deployment
            .status
            .as_ref()
            .unwrap()
            .conditions
            .clone()
            .unwrap();
        assert_eq!(times_out_at(&deployment, &conditions), Some(at(600)));
        let status = rolling_out(&deployment, Some(&new), &[&new], at(600));
        assert_eq!(told(&status, PROGRESSING).0, "True");
        let status = rolling_out(&deployment, Some(&new), &[&new], at(601));
        assert_eq!(
            told(&status, PROGRESSING),
            (
                "False",
                "ProgressDeadlineExceeded",
                "ReplicaSet \"web-x\" has timed out progressing."
            )
        );
        assert_eq!(
            times_out_at(&deployment, status.conditions.as_deref().unwrap()),
            None
        );
        deployment.status = Some(status);
        // Progress heals it.
        let new = set("web-x", 3, 3, 1);
        let status = rolling_out(&deployment, Some(&new), &[&new], at(700));
        assert_eq!(told(&status, PROGRESSING).1, "ReplicaSetUpdated");
    }

    #[test]
    fn without_a_deadline_progress_is_not_told() {
        let mut deployment = deployment(1);
        deployment.spec.as_mut().unwrap().progress_deadline_seconds = Some(i32::MAX);
        let status = rolling_out(&deployment, None, &[], at(0));
        assert!(find(status.conditions.as_deref().unwrap(), PROGRESSING).is_none());
    }

    #[test]
    fn pausing_and_resuming_are_told_once() {
        let mut deployment = deployment(1);
        assert!(pause(&deployment, at(0)).is_none());
        deployment.spec.as_mut().unwrap().paused = Some(true);
        let paused = pause(&deployment, at(1)).unwrap();
        assert_eq!(paused.reason.as_deref(), Some("DeploymentPaused"));
        deployment.status.get_or_insert_default().conditions = Some(vec![paused]);
        assert!(pause(&deployment, at(2)).is_none());
        deployment.spec.as_mut().unwrap().paused = Some(false);
        let resumed = pause(&deployment, at(3)).unwrap();
        assert_eq!(resumed.reason.as_deref(), Some("DeploymentResumed"));
    }

    #[test]
    fn a_failure_of_a_set_shows_and_goes() {
        let mut deployment = deployment(1);
        let mut new = set("web-x", 1, 0, 0);
        new.status.as_mut().unwrap().conditions = Some(vec![ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some("FailedCreate".to_owned()),
            message: Some("exceeded quota".to_owned()),
            ..ReplicaSetCondition::default()
        }]);
        let status = rolling_out(&deployment, Some(&new), &[&new], at(0));
        assert_eq!(
            told(&status, REPLICA_FAILURE),
            ("True", "FailedCreate", "exceeded quota")
        );
        deployment.status = Some(status);
        let new = set("web-x", 1, 1, 1);
        let status = rolling_out(&deployment, Some(&new), &[&new], at(0));
        assert!(find(status.conditions.as_deref().unwrap(), REPLICA_FAILURE).is_none());
    }
}

//! The status of a ReplicaSet, from its pods.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod;

/// Why the last attempt to reach the wanted number of pods failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A pod could not be created.
    Create(String),
    /// A pod could not be deleted.
    Delete(String),
}

/// The status that describes these claimed pods.
pub(crate) fn status(
    replica_set: &ReplicaSet,
    claimed: &[&Pod],
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let min_ready_seconds = min_ready_seconds(replica_set);
    let active: Vec<&Pod> = claimed
        .iter()
        .copied()
        .filter(|pod| pod::is_active(pod))
        .collect();
    let ready = active.iter().filter(|pod| pod::is_ready(pod));
    let available = active
        .iter()
        .filter(|pod| pod::is_available(pod, min_ready_seconds, now));
    let labelled = active
        .iter()
        .filter(|pod| has_template_labels(replica_set, pod));
    let terminating = claimed
        .iter()
        .filter(|pod| pod::is_terminating(pod) && !pod::has_ended(pod))
        .count();
    ReplicaSetStatus {
        replicas: number(active.len()),
        fully_labeled_replicas: some(labelled.count()),
        ready_replicas: some(ready.count()),
        available_replicas: some(available.count()),
        terminating_replicas: Some(number(terminating)),
        observed_generation: replica_set.metadata.generation,
        conditions: conditions(replica_set, failure, now),
    }
}

/// When the next ready pod becomes available; `None` when no ready pod is waiting for that.
pub(crate) fn next_available(
    replica_set: &ReplicaSet,
    claimed: &[&Pod],
    now: Timestamp,
) -> Option<Timestamp> {
    let min_ready_seconds = min_ready_seconds(replica_set);
    if min_ready_seconds == 0 {
        return None;
    }
    claimed
        .iter()
        .filter(|pod| pod::is_active(pod))
        .filter_map(|pod| pod::available_at(pod, min_ready_seconds))
        .filter(|at| *at > now)
        .min()
}

fn min_ready_seconds(replica_set: &ReplicaSet) -> i32 {
    replica_set
        .spec
        .as_ref()
        .and_then(|spec| spec.min_ready_seconds)
        .unwrap_or(0)
}

/// The conditions: other people's are kept, ours says whether the last attempt failed. One that
/// already tells of a failure keeps its first reason and time.
fn conditions(
    replica_set: &ReplicaSet,
    failure: Option<&Failure>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    const TYPE: &str = "ReplicaFailure";
    let previous = replica_set
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let (mine, mut conditions): (Vec<_>, Vec<_>) = previous
        .cloned()
        .partition(|condition| condition.type_ == TYPE);
    if let Some(failure) = failure {
        let (reason, message) = match failure {
            Failure::Create(message) => ("FailedCreate", message),
            Failure::Delete(message) => ("FailedDelete", message),
        };
        conditions.push(
            mine.into_iter()
                .next()
                .unwrap_or_else(|| ReplicaSetCondition {
                    type_: TYPE.to_owned(),
                    status: "True".to_owned(),
                    reason: Some(reason.to_owned()),
                    message: Some(message.clone()),
                    last_transition_time: Some(Time(now)),
                }),
        );
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Whether the pod carries every label of the template.
fn has_template_labels(replica_set: &ReplicaSet, pod: &Pod) -> bool {
    let wanted = replica_set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.as_ref())
        .and_then(|template| template.metadata.as_ref())
        .and_then(|metadata| metadata.labels.as_ref());
    let labels = pod.metadata.labels.as_ref();
    wanted.is_none_or(|wanted| {
        wanted
            .iter()
            .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}

/// A count as the API has it.
fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A count that the API leaves out when it is nought.
fn some(count: usize) -> Option<i32> {
    (count > 0).then(|| number(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{at, bound, in_phase, pod, ready};
    use k8s_openapi::api::apps::v1::ReplicaSetSpec;
    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use std::collections::BTreeMap;

    fn labels() -> BTreeMap<String, String> {
        BTreeMap::from([("app".to_owned(), "web".to_owned())])
    }

    fn replica_set(min_ready_seconds: i32) -> ReplicaSet {
        ReplicaSet {
            metadata: ObjectMeta {
                generation: Some(7),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                min_ready_seconds: Some(min_ready_seconds),
                template: Some(PodTemplateSpec {
                    metadata: Some(ObjectMeta {
                        labels: Some(labels()),
                        ..ObjectMeta::default()
                    }),
                    spec: None,
                }),
                ..ReplicaSetSpec::default()
            }),
            status: None,
        }
    }

    #[test]
    fn counts_what_is_there_ready_available_and_labelled() {
        let mut labelled = ready(bound(pod("a"), "n"), 10);
        labelled.metadata.labels = Some(labels());
        let young = ready(bound(pod("b"), "n"), 95);
        let ended = in_phase(pod("c"), "Failed");
        let mut going = ready(bound(pod("d"), "n"), 10);
        going.metadata.deletion_timestamp = Some(Time(at(90)));
        let pods = [&labelled, &young, &ended, &going];
        let replica_set = replica_set(30);
        let status = status(&replica_set, &pods, None, at(100));
        assert_eq!(status.replicas, 2);
        assert_eq!(status.ready_replicas, Some(2));
        assert_eq!(status.available_replicas, Some(1));
        assert_eq!(status.fully_labeled_replicas, Some(1));
        assert_eq!(status.terminating_replicas, Some(1));
        assert_eq!(status.observed_generation, Some(7));
        assert_eq!(status.conditions, None);
        assert_eq!(next_available(&replica_set, &pods, at(100)), Some(at(125)));
        assert_eq!(next_available(&replica_set, &pods, at(125)), None);
    }

    #[test]
    fn a_failure_keeps_its_first_telling_until_it_is_over() {
        let mut replica_set = replica_set(0);
        let quota = Failure::Create("exceeded quota".to_owned());
        replica_set.status = Some(status(&replica_set, &[], Some(&quota), at(1)));
        let later = Failure::Create("exceeded quota again".to_owned());
        let again = status(&replica_set, &[], Some(&later), at(2))
            .conditions
            .unwrap();
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].reason.as_deref(), Some("FailedCreate"));
        assert_eq!(again[0].message.as_deref(), Some("exceeded quota"));
        assert_eq!(again[0].last_transition_time, Some(Time(at(1))));
        assert_eq!(status(&replica_set, &[], None, at(3)).conditions, None);
    }
}

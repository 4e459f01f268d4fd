//! Counting the ends of pods so that none is lost and none counted twice.
//!
//! The end of a pod is first written to the status as uncounted, then the pod's finalizer goes,
//! and then the status counts it: killed at any point, the next attempt knows where to go on. An
//! indexed Job counts successes by its indexes, which need no such care.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::assess::State;
use super::condition::{self, COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, condition};
use super::pods::{self, is_indexed, is_tracked};
use super::policy::{self, Failure};
use crate::pod;

/// The most ends that are under way at once.
const MOST: usize = 500;

/// What is written first, what is done then, and how the Job ends after that.
pub(crate) struct Tracking<'a> {
    pub status: JobStatus,
    /// Pods whose finalizer goes.
    pub release: Vec<&'a Pod>,
    /// How the Job ends, once all is counted.
    pub end: Option<JobCondition>,
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn add(counter: &mut Option<i32>, count: usize) {
    let sum = counter.unwrap_or(0) + i32::try_from(count).unwrap_or(i32::MAX);
    *counter = (sum != 0).then_some(sum);
}

/// Counts uncounted pods that have no finalizer any more.
pub(crate) fn count(status: &mut JobStatus, tracked: &BTreeSet<&str>) {
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let settle = |list: &mut Option<Vec<String>>| {
        let before = list.as_ref().map_or(0, Vec::len);
        let left: Vec<String> = list.take().unwrap_or_default();
        let left: Vec<String> = left
            .into_iter()
            .filter(|uid| tracked.contains(uid.as_str()))
            .collect();
        let counted = before - left.len();
        *list = (!left.is_empty()).then_some(left);
        counted
    };
    let (succeeded, failed) = (
        settle(&mut uncounted.succeeded),
        settle(&mut uncounted.failed),
    );
    add(&mut status.succeeded, succeeded);
    add(&mut status.failed, failed);
}

/// What to write about the pods of a Job. `end` is how it ends, if it has to.
pub(crate) fn track<'a>(
    job: &Job,
    mut status: JobStatus,
    pods: &'a [impl Borrow<Pod>],
    state: &State<'_>,
    end: Option<JobCondition>,
    now: Timestamp,
) -> Tracking<'a> {
    let pods = pods.iter().map(Borrow::borrow);
    let tracked: Vec<&Pod> = pods.filter(|pod| is_tracked(pod)).collect();
    let completions = job
        .spec
        .as_ref()
        .and_then(|spec| spec.completions)
        .unwrap_or(0);
    let is_success = end
        .as_ref()
        .is_some_and(|end| end.type_ == SUCCESS_CRITERIA_MET);
    let fails = end.is_some() && !is_success;
    let before = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let knows = |list: &Option<Vec<String>>, pod: &Pod| {
        list.iter().flatten().any(|known| known == uid(pod))
    };
    count(&mut status, &tracked.iter().map(|pod| uid(pod)).collect());

    let mut ordered = tracked.clone();
    if is_indexed(job) {
        ordered.sort_by_key(|pod| pods::index(pod).unwrap_or(-1));
    }
    let mut release = Vec::new();
    let mut new_indexes = BTreeSet::new();
    let (mut succeeded, mut failed) = (Vec::new(), Vec::new());
    for pod in ordered {
        if release.len() >= MOST {
            break;
        }
        let has_failed = pods::has_failed(job, pod);
        let is_done = pod::phase(pod) == "Succeeded";
        let waits = pods::index(pod)
            .and_then(|index| state.replaced.get(&index))
            .is_some_and(|last| uid(last) == uid(pod));
        let is_going = job.metadata.deletion_timestamp.is_some();
        if !(is_going || end.is_some() || is_done || (has_failed && !waits)) {
            continue;
        }
        release.push(pod);
        let place = pods::index(pod).filter(|index| *index < completions);
        let has_place = !is_indexed(job) || place.is_some();
        if is_done && !knows(&before.failed, pod) {
            if is_indexed(job) {
                new_indexes.extend(place.filter(|index| !state.succeeded_before.has(*index)));
            } else if !knows(&before.succeeded, pod) {
                succeeded.push(uid(pod).to_owned());
            }
        } else if (has_failed || fails)
            && has_place
            && !knows(&before.failed, pod)
            && policy::failure(job, pod) != Failure::Ignored
        {
            failed.push(uid(pod).to_owned());
        }
    }
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let extend = |list: &mut Option<Vec<String>>, new: Vec<String>| {
        if !new.is_empty() {
            list.get_or_insert_default().extend(new);
        }
    };
    extend(&mut uncounted.succeeded, succeeded);
    extend(&mut uncounted.failed, failed);
    if is_indexed(job) {
        let indexes = state.succeeded_indexes.clone().with(new_indexes);
        let total = indexes.total();
        status.succeeded = (total != 0).then_some(total);
        status.completed_indexes = (!indexes.is_empty()).then(|| indexes.to_string());
        status.failed_indexes = state.failed_indexes.as_ref().map(ToString::to_string);
    }
    let end = end.map(|end| {
        let conditions = status.conditions.get_or_insert_default();
        let last = if end.type_ == SUCCESS_CRITERIA_MET {
            COMPLETE
        } else {
            FAILED
        };
        if matches!(end.type_.as_str(), SUCCESS_CRITERIA_MET | FAILURE_TARGET)
            && condition::held(job, &end.type_).is_none()
        {
            conditions.push(end.clone());
        }
        let (reason, message) = (
            end.reason.unwrap_or_default(),
            end.message.unwrap_or_default(),
        );
        condition(last, &reason, &message, now)
    });
    Tracking {
        status,
        release,
        end,
    }
}

/// Ends the Job, if everything is counted and nobody is left; true if it has ended.
pub(crate) fn finish(status: &mut JobStatus, end: &JobCondition, terminating: i32) -> bool {
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let is_counted = uncounted.succeeded.is_none() && uncounted.failed.is_none();
    if !is_counted || terminating > 0 {
        return false;
    }
    condition::set(status.conditions.get_or_insert_default(), end.clone());
    if end.type_ == COMPLETE {
        status.completion_time.clone_from(&end.last_transition_time);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::backoff::Backoff;
    use crate::pod::testing::{at, in_phase, pod as named};
    use serde_json::{Value, json};

    fn job(status: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "work"},
            "spec": {"template": {}, "completions": 3},
            "status": status,
        }))
        .unwrap()
    }

    fn pod(name: &str, phase: &str) -> Pod {
        let mut pod = in_phase(named(name), phase);
        pod.metadata.finalizers = Some(vec![pods::FINALIZER.to_owned()]);
        pod
    }

    fn tracked<'a>(job: &Job, pods: &'a [Pod], end: Option<JobCondition>) -> Tracking<'a> {
        let state = State::of(job, pods, None, Backoff::default(), at(0));
        let status = job.status.clone().unwrap_or_default();
        track(job, status, pods, &state, end, at(0))
    }

    #[test]
    fn an_end_is_noted_then_released_and_then_counted() {
        let pods = [
            pod("a", "Succeeded"),
            pod("b", "Failed"),
            pod("c", "Running"),
        ];
        let Tracking {
            mut status,
            release,
            ..
        } = tracked(&job(json!({})), &pods, None);
        let uncounted = status.uncounted_terminated_pods.clone().unwrap();
        assert_eq!(uncounted.succeeded, Some(vec!["uid-a".to_owned()]));
        assert_eq!(uncounted.failed, Some(vec!["uid-b".to_owned()]));
        assert_eq!((status.succeeded, status.failed), (None, None));
        assert_eq!(release.len(), 2, "the one at work is kept");
        count(&mut status, &BTreeSet::from(["uid-b", "uid-c"]));
        assert_eq!(
            (status.succeeded, status.failed),
            (Some(1), None),
            "b is not released yet"
        );
        count(&mut status, &BTreeSet::from(["uid-c"]));
        assert_eq!((status.succeeded, status.failed), (Some(1), Some(1)));
    }

    #[test]
    fn what_was_noted_before_is_not_noted_again() {
        let noted = json!({"uncountedTerminatedPods": {"succeeded": ["uid-a"]}});
        let pods = [pod("a", "Succeeded")];
        let status = tracked(&job(noted), &pods, None).status;
        let uncounted = status.uncounted_terminated_pods.unwrap();
        assert_eq!(uncounted.succeeded, Some(vec!["uid-a".to_owned()]));
        // Killed after the release, before the count: the next attempt counts.
        let noted = json!({"uncountedTerminatedPods": {"succeeded": ["uid-a"]}});
        let status = tracked(&job(noted), &[], None).status;
        assert_eq!(status.succeeded, Some(1));
    }

    #[test]
    fn a_job_ends_when_all_is_counted_and_nobody_is_left() {
        let target = condition(FAILURE_TARGET, "DeadlineExceeded", "too long", at(0));
        let pods = [pod("a", "Running")];
        let Tracking {
            mut status, end, ..
        } = tracked(&job(json!({})), &pods, Some(target));
        let end = end.unwrap();
        assert_eq!(
            (end.type_.as_str(), end.reason.as_deref()),
            (FAILED, Some("DeadlineExceeded"))
        );
        assert!(!finish(&mut status, &end, 0), "one is not counted");
        count(&mut status, &BTreeSet::new());
        assert_eq!(
            status.failed,
            Some(1),
            "what is ended with the job has failed"
        );
        assert!(!finish(&mut status, &end, 1), "one is still going");
        assert!(finish(&mut status, &end, 0));
        let types: Vec<String> = status
            .conditions
            .unwrap()
            .into_iter()
            .map(|one| one.type_)
            .collect();
        assert_eq!(types, [FAILURE_TARGET, FAILED]);
    }
}

//! How far a Job has come, and what it does next.
//!
//! [`State::of`] counts pods, those whose end was not counted yet included, and says whether the
//! Job has to end; [`State::next`] says which pods have to go or come while it has not.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::backoff::{self, Backoff};
use super::condition::{self, FAILURE_TARGET, SUCCESS_CRITERIA_MET, condition};
use super::indexes::Indexes;
use super::pods::{self, is_indexed, is_tracked, replaces_only_ended};
use super::policy::{self, Failure};
use crate::pod;
use crate::replicaset::ranking;

/// The most pods that are created or deleted at once.
const BURST: usize = 500;

/// How far a Job has come.
pub(crate) struct State<'a> {
    job: &'a Job,
    pods: Vec<&'a Pod>,
    /// Pods that can still do work.
    pub active: Vec<&'a Pod>,
    /// Pods that were asked to go and have not gone.
    pub terminating: i32,
    /// Successes, those not yet counted included.
    pub succeeded: i32,
    /// The indexes that succeeded before, and those that have by now.
    pub succeeded_before: Indexes,
    pub succeeded_indexes: Indexes,
    /// The indexes that failed for good, if they are counted one by one.
    pub failed_indexes: Option<Indexes>,
    /// Failed pods that wait for the next of their index, by index.
    pub replaced: BTreeMap<i32, &'a Pod>,
    /// How the Job ends, if it has to.
    pub end: Option<JobCondition>,
    /// When the Job has run for too long.
    pub deadline: Option<Timestamp>,
    /// The failures since the last success.
    pub backoff: Backoff,
}

/// Which pods go and come.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step<'a> {
    pub delete: Vec<&'a Pod>,
    /// The indexes of the pods to create, `None` where pods have none.
    pub create: Vec<Option<i32>>,
    /// When pods may be created again.
    pub wait: Option<Timestamp>,
}

pub(crate) fn spec(job: &Job) -> JobSpec {
    job.spec.clone().unwrap_or_default()
}

pub(crate) fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

impl<'a> State<'a> {
    /// The state of a Job that began at `began`.
    pub(crate) fn of(
        job: &'a Job,
        pods: &'a [impl Borrow<Pod>],
        began: Option<Timestamp>,
        backoff: Backoff,
        now: Timestamp,
    ) -> Self {
        let pods: Vec<&Pod> = pods.iter().map(Borrow::borrow).collect();
        let all = || pods.iter().copied();
        let spec = spec(job);
        let status = job.status.clone().unwrap_or_default();
        let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
        let uncounted_succeeded = uncounted.succeeded.unwrap_or_default();
        let uncounted_failed = uncounted.failed.unwrap_or_default();
        let completions = spec.completions.unwrap_or(0);
        let is_valid = |pod: &&Pod| {
            let index = pods::index(pod);
            let has_place = index.is_some_and(|index| index < completions);
            is_tracked(pod) && (!is_indexed(job) || has_place)
        };
        let ended = |counted: &[String], is: &dyn Fn(&Pod) -> bool| -> Vec<&'a Pod> {
            let pods = all().filter(is_valid).filter(|pod| is(pod));
            let is_new = |pod: &&Pod| {
                pod.metadata
                    .uid
                    .as_ref()
                    .is_none_or(|uid| !counted.contains(uid))
            };
            pods.filter(is_new).collect()
        };
        let new_succeeded = ended(&uncounted_succeeded, &|pod| pod::phase(pod) == "Succeeded");
        let new_failed = ended(&uncounted_failed, &|pod| pods::has_failed(job, pod));
        let counting = new_failed
            .iter()
            .filter(|pod| policy::failure(job, pod) != Failure::Ignored)
            .count();
        let failed = status.failed.unwrap_or(0) + number(counting) + number(uncounted_failed.len());
        let is_terminating = |pod: &&Pod| pod::is_terminating(pod) && !pod::has_ended(pod);
        let mut state = Self {
            job,
            active: all().filter(|pod| pod::is_active(pod)).collect(),
            terminating: number(all().filter(is_terminating).count()),
            pods,
            succeeded: status.succeeded.unwrap_or(0)
                + number(new_succeeded.len())
                + number(uncounted_succeeded.len()),
            succeeded_before: Indexes::default(),
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            replaced: BTreeMap::new(),
            end: None,
            deadline: None,
            backoff: backoff.after(&new_succeeded, &new_failed),
        };
        state.end = state.ended(&spec, failed, began, now);
        if is_indexed(job) {
            state.count_indexes(&spec, now);
        }
        state
    }

    /// How the Job ends, as far as its pods as a whole decide.
    fn ended(
        &mut self,
        spec: &JobSpec,
        failed: i32,
        began: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<JobCondition> {
        let job = self.job;
        let known = condition::held(job, SUCCESS_CRITERIA_MET);
        if let Some(known) = known.or_else(|| condition::held(job, FAILURE_TARGET)) {
            return Some(known.clone());
        }
        let failing = |reason: &str, message: &str| condition(FAILURE_TARGET, reason, message, now);
        let failures = self.pods.iter().filter(|pod| pods::has_failed(job, pod));
        for pod in failures {
            if let Failure::FailsJob(message) = policy::failure(job, pod) {
                return Some(failing("PodFailurePolicy", &message));
            }
        }
        let limit = spec.backoff_limit.unwrap_or(6);
        if failed > limit || restarted_too_often(spec, &self.pods, limit) {
            return Some(failing(
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ));
        }
        if let (Some(seconds), Some(began), false) =
            (spec.active_deadline_seconds, began, is_suspended(job))
        {
            let deadline = began.checked_add(SignedDuration::from_secs(seconds)).ok()?;
            if now >= deadline {
                return Some(failing(
                    "DeadlineExceeded",
                    "Job was active longer than specified deadline",
                ));
            }
            self.deadline = Some(deadline);
        }
        None
    }

    /// Counts an indexed Job by its indexes, which may decide its end.
    fn count_indexes(&mut self, spec: &JobSpec, now: Timestamp) {
        let job = self.job;
        let completions = spec.completions.unwrap_or(0);
        let status = job.status.clone().unwrap_or_default();
        let indexes_of = |is: &dyn Fn(&Pod) -> bool| -> Vec<i32> {
            let pods = self.pods.iter().copied();
            let tracked = pods.filter(|pod| is_tracked(pod) && is(pod));
            let indexes = tracked.filter_map(pods::index);
            indexes.filter(|index| *index < completions).collect()
        };
        let before = status.completed_indexes.unwrap_or_default();
        self.succeeded_before = Indexes::parse(&before, completions);
        let succeeded = indexes_of(&|pod| pod::phase(pod) == "Succeeded");
        self.succeeded_indexes = self.succeeded_before.clone().with(succeeded);
        self.succeeded = self.succeeded_indexes.total();
        if let Some(limit) = spec.backoff_limit_per_index {
            let before = Indexes::parse(&status.failed_indexes.unwrap_or_default(), completions);
            let failed = before.with(indexes_of(&|pod| has_failed_its_index(job, pod, limit)));
            let total = failed.total();
            if self.end.is_none() {
                if spec.max_failed_indexes.is_some_and(|most| total > most) {
                    self.end = Some(condition(
                        FAILURE_TARGET,
                        "MaxFailedIndexesExceeded",
                        "Job has exceeded the specified maximal number of failed indexes",
                        now,
                    ));
                } else if total > 0 && total + self.succeeded >= completions {
                    let message = "Job has failed indexes";
                    self.end = Some(condition(FAILURE_TARGET, "FailedIndexes", message, now));
                }
            }
            self.failed_indexes = Some(failed);
            self.find_replaced(completions);
        }
        let policy = spec.success_policy.as_ref();
        if self.end.is_none()
            && let Some(message) = policy::success(policy, completions, &self.succeeded_indexes)
        {
            self.end = Some(condition(
                SUCCESS_CRITERIA_MET,
                "SuccessPolicy",
                &message,
                now,
            ));
        }
    }

    /// Finds the last failed pod of each index that is neither done nor running: it is kept until
    /// the next pod of its index knows how often the index has failed.
    fn find_replaced(&mut self, completions: i32) {
        let active: BTreeSet<i32> = self
            .active
            .iter()
            .filter_map(|pod| pods::index(pod))
            .collect();
        let failed = self.failed_indexes.clone().unwrap_or_default();
        for &pod in &self.pods {
            let Some(index) = pods::index(pod).filter(|index| *index < completions) else {
                continue;
            };
            let done = self.succeeded_indexes.has(index) || failed.has(index);
            if done
                || active.contains(&index)
                || !is_tracked(pod)
                || !pods::has_failed(self.job, pod)
            {
                continue;
            }
            let rank = |pod: &Pod| (pods::all_failures(pod), backoff::ended_at(pod));
            if self
                .replaced
                .get(&index)
                .is_none_or(|last| rank(last) <= rank(pod))
            {
                self.replaced.insert(index, pod);
            }
        }
    }

    /// Which pods go and come, while the Job has not to end.
    pub(crate) fn next(&self, now: Timestamp) -> Step<'a> {
        let spec = spec(self.job);
        let active = number(self.active.len());
        if is_suspended(self.job) {
            return Step {
                delete: self.surplus(active, &spec, now),
                ..Step::default()
            };
        }
        let parallelism = spec.parallelism.unwrap_or(1);
        let wanted = match spec.completions {
            None if self.succeeded > 0 => active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded).min(parallelism).max(0),
        };
        let mut delete = self.surplus((active - wanted).max(0), &spec, now);
        delete.truncate(BURST);
        if !delete.is_empty() {
            return Step {
                delete,
                ..Step::default()
            };
        }
        let leaving = if replaces_only_ended(self.job) {
            self.terminating
        } else {
            0
        };
        let missing = usize::try_from(wanted - leaving - active)
            .unwrap_or(0)
            .min(BURST);
        if missing == 0 {
            return Step::default();
        }
        let per_index = spec.backoff_limit_per_index.is_some();
        if let Some(wait) = self.backoff.until().filter(|at| *at > now && !per_index) {
            return Step {
                wait: Some(wait),
                ..Step::default()
            };
        }
        if !is_indexed(self.job) {
            return Step {
                create: vec![None; missing],
                ..Step::default()
            };
        }
        self.create_indexes(&spec, missing, now)
    }

    fn create_indexes(&self, spec: &JobSpec, missing: usize, now: Timestamp) -> Step<'a> {
        let of = |pods: &[&Pod]| -> Vec<i32> {
            pods.iter().filter_map(|pod| pods::index(pod)).collect()
        };
        let mut taken = self.succeeded_indexes.clone().with(of(&self.active));
        if replaces_only_ended(self.job) {
            let leaving = self.pods.iter().copied();
            let leaving = leaving.filter(|pod| pod::is_terminating(pod) && !pod::has_ended(pod));
            taken = taken.with(of(&leaving.collect::<Vec<_>>()));
        }
        if let Some(failed) = &self.failed_indexes {
            taken = taken.merged(failed);
        }
        let mut indexes = taken.missing(spec.completions.unwrap_or(0), missing);
        let mut wait = None;
        if spec.backoff_limit_per_index.is_some() {
            let ready_at = |index: &i32| {
                let last = self.replaced.get(index)?;
                let failures = u32::try_from(pods::all_failures(last) + 1).unwrap_or(1);
                backoff::after(failures, backoff::ended_at(last)).filter(|at| *at > now)
            };
            wait = indexes.iter().filter_map(ready_at).min();
            indexes.retain(|index| ready_at(index).is_none());
        }
        Step {
            create: indexes.into_iter().map(Some).collect(),
            wait,
            ..Step::default()
        }
    }

    /// Active pods that go: those whose index is another's or nobody's, and as many more as have
    /// to.
    fn surplus(&self, at_least: i32, spec: &JobSpec, now: Timestamp) -> Vec<&'a Pod> {
        let at_least = usize::try_from(at_least).unwrap_or(0);
        let (mut going, mut left) = (Vec::new(), Vec::new());
        if is_indexed(self.job) {
            let completions = spec.completions.unwrap_or(0);
            let mut by_index: BTreeMap<i32, Vec<&Pod>> = BTreeMap::new();
            for pod in &self.active {
                match pods::index(pod).filter(|index| *index < completions) {
                    Some(index) => by_index.entry(index).or_default().push(pod),
                    None => going.push(*pod),
                }
            }
            for pods in by_index.into_values() {
                let mut ranked = ranking::to_delete(&pods, &[], pods.len(), now);
                left.extend(ranked.pop());
                going.extend(ranked);
            }
        } else {
            left.clone_from(&self.active);
        }
        let more = at_least.saturating_sub(going.len());
        going.extend(ranking::to_delete(&left, &[], more, now));
        going
    }
}

fn has_failed_its_index(job: &Job, pod: &Pod, limit: i32) -> bool {
    if !pods::has_failed(job, pod) {
        return false;
    }
    match policy::failure(job, pod) {
        Failure::FailsIndex => true,
        Failure::Ignored => false,
        _ => pods::failures(pod) >= limit,
    }
}

/// Whether containers that are restarted in their pods have been so often enough.
fn restarted_too_often(spec: &JobSpec, pods: &[&Pod], limit: i32) -> bool {
    let template = spec.template.spec.as_ref();
    let policy = template.and_then(|template| template.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let running = pods
        .iter()
        .filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
    let statuses = running
        .filter_map(|pod| pod.status.as_ref())
        .flat_map(|status| {
            let inits = status.init_container_statuses.iter().flatten();
            inits.chain(status.container_statuses.iter().flatten())
        });
    let restarts: i32 = statuses.map(|status| status.restart_count).sum();
    restarts > 0 && restarts >= limit
}

#[cfg(test)]
#[path = "assess_tests.rs"]
mod tests;

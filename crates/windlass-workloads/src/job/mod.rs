//! The Job controller: pods that run to their end.
//!
//! Each reconcile finds out how far the Job has come ([`assess`]), creates or deletes pods, and
//! counts those that ended ([`tracking`]). A Job ends in two steps: first a condition says how it
//! will, and when its last pod is gone another says that it has. Two small controllers go with it:
//! [`orphan`] lets go of pods whose Job is gone, and [`ttl`] deletes Jobs that ended long enough
//! ago.

mod assess;
mod backoff;
mod condition;
mod indexes;
mod orphan;
mod pods;
mod policy;
mod tracking;
mod ttl;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Operator, Reconciler, Result, Watched,
    handle::{Access, Controlled, Delete, Raw, Reads, Verb, Writes},
};

use self::assess::{State, Step, is_suspended};
use self::backoff::Backoff;
use self::condition::{COMPLETE, SUCCESS_CRITERIA_MET, SUSPENDED, condition};
use crate::owner::{self, Claim};
use crate::pending::Pending;
use crate::replicaset::{batches, gone_meanwhile, until};
use crate::{cause, pod};

pub(crate) use self::condition::finished;

/// The controller that Jobs ask for, unless they ask for another.
const NAME: &str = "kubernetes.io/job-controller";
/// How often a pod that others write, too, is tried to be released.
const TRIES: u32 = 10;

/// Adds the controller of Jobs and those that go with it.
pub(crate) fn add_to(operator: Operator) -> Operator {
    operator
        .controller(controller())
        .controller(orphan::controller())
        .controller(ttl::controller())
}

fn controller() -> Controller<Job> {
    Controller::of_existing::<Job>()
        .reports_as("job-controller")
        .reconciler(Jobs::declare)
}

struct Jobs {
    pods: Controlled<Pod>,
    /// Pods that match, though nobody controls them yet: to be adopted.
    _matching: Reads<Pod>,
    status: Writes<Job>,
    /// To look at a pod past the cache when it has changed.
    raw: Raw,
    /// The failures of each Job since its last success.
    backoffs: Mutex<BTreeMap<Key, Backoff>>,
    pending: Pending,
}

type Ctx = Context<Job>;

impl Jobs {
    fn declare(declare: &mut Declare<Job>) -> Self {
        Self {
            pods: declare.adopts(),
            _matching: declare.reads(Pod::selected_by(|job: &Job| {
                job.spec.as_ref().and_then(|spec| spec.selector.clone())
            })),
            status: declare.writes(Access::none().on("status", [Verb::Patch])),
            raw: declare.raw([Access::of::<Pod>([Verb::Get])]),
            backoffs: Mutex::default(),
            pending: Pending::default(),
        }
    }

    /// The pods that are ours, after adopting and releasing what has to be.
    async fn claim(&self, job: &Job, ctx: &Ctx) -> Result<Vec<Arc<Pod>>> {
        let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let Some(selector) = selector.and_then(owner::selector) else {
            return Ok(Vec::new());
        };
        let mut claimed = Vec::new();
        for pod in self.pods.candidates(ctx, selector.clone()).await? {
            match owner::claim(&job.metadata, &selector, &pod.metadata) {
                Claim::Keep => claimed.push(pod),
                Claim::Adopt => {
                    let Some(pod) = gone_meanwhile(self.pods.adopt(ctx, &pod).await)? else {
                        continue;
                    };
                    let mut finalizers = pods::untracked(&pod);
                    finalizers.push(pods::FINALIZER.to_owned());
                    let patch = json!({ "metadata": { "finalizers": finalizers } });
                    claimed.extend(gone_meanwhile(self.pods.patch(ctx, &pod, patch).await)?);
                }
                Claim::Release => {
                    gone_meanwhile(self.pods.release(ctx, &pod).await)?;
                }
                Claim::Ignore => {}
            }
        }
        Ok(claimed)
    }

    /// Creates pods in growing batches, and says how many.
    async fn create(
        &self,
        job: &Job,
        ctx: &Ctx,
        state: &State<'_>,
        step: &Step<'_>,
    ) -> (i32, Result<()>) {
        let (mut left, mut created) = (&step.create[..], 0);
        for size in batches::sizes(left.len()) {
            let (batch, rest) = left.split_at(size);
            left = rest;
            let attempts = batch.iter().map(|index| {
                let before = index.and_then(|index| state.replaced.get(&index).copied());
                self.pods.create(ctx, pods::new(job, *index, before))
            });
            let mut failed = None;
            for attempt in join_all(attempts).await {
                match attempt {
                    Ok(pod) => {
                        created += 1;
                        let name = pod.metadata.name.as_deref().unwrap_or_default();
                        let note = format!("Created pod: {name}");
                        ctx.event(Event::normal("SuccessfulCreate", note));
                    }
                    Err(error) if cause::namespace_is_terminating(&error) => {
                        return (created, Ok(()));
                    }
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                let note = format!("Error creating: {error}");
                ctx.event(Event::warning("FailedCreate", note));
                return (created, Err(error));
            }
        }
        (created, Ok(()))
    }

    /// Deletes pods; `for_good` if they are not to be counted.
    async fn delete(&self, ctx: &Ctx, pods: &[&Pod], for_good: bool) -> Result<()> {
        for pod in pods {
            if for_good && pods::is_tracked(pod) {
                self.release(ctx, pod).await?;
            }
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            match self.pods.delete(ctx, pod, Delete::background()).await {
                Ok(()) => {
                    let note = format!("Deleted pod: {name}");
                    ctx.event(Event::normal("SuccessfulDelete", note));
                }
                Err(error) => {
                    let note = format!("Error deleting: {error}");
                    ctx.event(Event::warning("FailedDelete", note));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes a pod's finalizer away. A pod that keeps it though it was deleted counts as failed the
    /// next time, so whoever else writes it (its node, and we who deleted it just now) must not
    /// stop us: it is looked at again as it is.
    async fn release(&self, ctx: &Ctx, pod: &Pod) -> Result<()> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let namespace = ctx.key().namespace().unwrap_or_default();
        let mut released = self.release_read(ctx, pod).await;
        for _ in 1..TRIES {
            match &released {
                Err(error) if error.is_conflict() => {}
                _ => break,
            }
            let pods: Api<Pod> = Api::namespaced(self.raw.client(ctx), namespace);
            released = match pods.get_opt(name).await? {
                Some(live) if live.metadata.uid == pod.metadata.uid => {
                    self.release_read(ctx, &live).await
                }
                _ => Ok(()),
            };
        }
        released
    }

    /// Takes the finalizer away from a pod that is as it was read.
    async fn release_read(&self, ctx: &Ctx, pod: &Pod) -> Result<()> {
        // The list is replaced as a whole, so nobody may have changed it since.
        let patch = json!({ "metadata": {
            "finalizers": pods::untracked(pod),
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
        } });
        gone_meanwhile(self.pods.patch(ctx, pod, patch).await)?;
        Ok(())
    }

    fn backoff(&self, key: &Key) -> Backoff {
        let backoffs = self.backoffs.lock().unwrap_or_else(PoisonError::into_inner);
        backoffs.get(key).copied().unwrap_or_default()
    }

    fn set_backoff(&self, key: &Key, backoff: Option<Backoff>) {
        let mut backoffs = self.backoffs.lock().unwrap_or_else(PoisonError::into_inner);
        match backoff {
            Some(backoff) => backoffs.insert(key.clone(), backoff),
            None => backoffs.remove(key),
        };
    }

    async fn sync(&self, job: &Job, ctx: &Ctx) -> Result<Action> {
        let managed_by = job
            .spec
            .as_ref()
            .and_then(|spec| spec.managed_by.as_deref());
        if managed_by.is_some_and(|name| name != NAME) {
            return Ok(Action::done());
        }
        if finished(job).is_some() {
            self.set_backoff(ctx.key(), None);
            self.pending.clear(ctx.key());
            return Ok(Action::done());
        }
        let now = ctx.clock().now();
        let pods = self.claim(job, ctx).await?;
        let mut status = job.status.clone().unwrap_or_default();
        status.uncounted_terminated_pods.get_or_insert_default();
        if status.start_time.is_none() && !is_suspended(job) {
            status.start_time = Some(Time(now));
        }
        let began = status.start_time.as_ref().map(|time| time.0);
        let state = State::of(job, &pods, began, self.backoff(ctx.key()), now);
        let mut ready = state.active.iter().filter(|pod| pod::is_ready(pod)).count();
        let mut active = i32::try_from(state.active.len()).unwrap_or(i32::MAX);
        let mut terminating = state.terminating;
        let mut end = state.end.clone();
        let mut wait = None;
        let mut failed = None;
        let mut went = |pods: &[&Pod]| {
            let count = i32::try_from(pods.len()).unwrap_or(i32::MAX);
            active -= count;
            terminating += count;
            ready -= pods.iter().filter(|pod| pod::is_ready(pod)).count();
        };
        if end.is_some() {
            match self.delete(ctx, &state.active, false).await {
                Ok(()) => went(&state.active),
                Err(error) => {
                    end = None;
                    failed = Some(error);
                }
            }
        } else if job.metadata.deletion_timestamp.is_none() {
            let step = state.next(now);
            wait = step.wait;
            match self.delete(ctx, &step.delete, true).await {
                Ok(()) => went(&step.delete),
                Err(error) => failed = Some(error),
            }
            let (created, result) = self.create(job, ctx, &state, &step).await;
            active += created;
            failed = failed.or(result.err());
        }
        if end.is_none() && failed.is_none() {
            let completions = job.spec.as_ref().and_then(|spec| spec.completions);
            let is_complete = match completions {
                Some(completions) => state.succeeded >= completions && active == 0,
                None => state.succeeded > 0 && active == 0,
            };
            if is_complete && state.end.is_none() {
                let message = "Reached expected number of succeeded pods";
                end = Some(condition(
                    SUCCESS_CRITERIA_MET,
                    "CompletionsReached",
                    message,
                    now,
                ));
            } else if job.metadata.deletion_timestamp.is_none() && state.end.is_none() {
                tell_rest(job, ctx, &mut status, now);
            }
        }
        status.active = (active > 0).then_some(active);
        status.ready = Some(i32::try_from(ready).unwrap_or(i32::MAX));
        status.terminating = Some(terminating);
        self.track(job, ctx, status, &pods, &state, end).await?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(at) = wait {
            let what = "wait to replace failed pods";
            return Ok(self.pending.after(ctx, until(at, now), what));
        }
        self.pending.clear(ctx.key());
        Ok(state
            .deadline
            .map_or(Action::done(), |at| Action::done().requeue_at(at)))
    }

    /// Writes what there is, lets go of pods that are accounted for, and writes what came of it.
    async fn track(
        &self,
        job: &Job,
        ctx: &Ctx,
        status: JobStatus,
        pods: &[Arc<Pod>],
        state: &State<'_>,
        end: Option<JobCondition>,
    ) -> Result<()> {
        let now = ctx.clock().now();
        let tracking = tracking::track(job, status, pods, state, end, now);
        let terminating = tracking.status.terminating.unwrap_or(0);
        let written = match self.status.status(ctx, job, &tracking.status).await {
            Err(error) if error.is_not_found() => return Ok(()),
            written => written?,
        };
        self.set_backoff(ctx.key(), Some(state.backoff));
        let mut tracked: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| pods::is_tracked(pod))
            .filter_map(|pod| pod.metadata.uid.as_deref())
            .collect();
        let mut failed = None;
        for pod in &tracking.release {
            match self.release(ctx, pod).await {
                Ok(()) => {
                    tracked.remove(pod.metadata.uid.as_deref().unwrap_or_default());
                }
                Err(error) => failed = Some(error),
            }
        }
        let mut status = tracking.status;
        tracking::count(&mut status, &tracked);
        let ended = tracking
            .end
            .filter(|end| failed.is_none() && tracking::finish(&mut status, end, terminating));
        self.status.status(ctx, &written, &status).await?;
        if let Some(end) = ended {
            tell_end(job, ctx, &status, &end);
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Tells that the Job rests, or does so no more.
fn tell_rest(job: &Job, ctx: &Ctx, status: &mut JobStatus, now: Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    if is_suspended(job) {
        let rests = condition(SUSPENDED, "JobSuspended", "Job suspended", now);
        if condition::set(conditions, rests) {
            ctx.event(Event::normal("Suspended", "Job suspended"));
            status.start_time = None;
        }
    } else {
        let mut rests = condition(SUSPENDED, "JobResumed", "Job resumed", now);
        "False".clone_into(&mut rests.status);
        if condition::set(conditions, rests) {
            ctx.event(Event::normal("Resumed", "Job resumed"));
            status.start_time = Some(Time(now));
        }
    }
    if conditions.is_empty() {
        status.conditions = None;
    }
}

impl Reconciler for Jobs {
    type Object = Job;

    async fn reconcile(&self, job: &Job, ctx: &Ctx) -> Result<Action> {
        self.sync(job, ctx).await
    }

    async fn terminating(&self, job: &Job, ctx: &Ctx) -> Result<Action> {
        self.sync(job, ctx).await
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.set_backoff(key, None);
        self.pending.clear(key);
        Ok(())
    }
}

/// Tells how the Job ended.
fn tell_end(job: &Job, ctx: &Ctx, status: &JobStatus, end: &JobCondition) {
    let completions = job.spec.as_ref().and_then(|spec| spec.completions);
    if end.type_ != COMPLETE {
        let reason = end.reason.clone().unwrap_or_default();
        return ctx.event(Event::warning(
            reason,
            end.message.clone().unwrap_or_default(),
        ));
    }
    if completions.is_some_and(|completions| status.succeeded > Some(completions)) {
        let note = "Too many succeeded pods running after completion count reached";
        ctx.event(Event::warning("TooManySucceededPods", note));
    }
    ctx.event(Event::normal("Completed", "Job completed"));
}

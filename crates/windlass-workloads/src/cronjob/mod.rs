//! The CronJob controller: a Job whenever a schedule says so.
//!
//! Each reconcile takes note of Jobs that ended, deletes those beyond the limits of its history,
//! and starts the run that is [`due`], unless it is too late for it or the one before still runs
//! and its concurrency policy forbids another.

mod due;
mod schedule;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Reconciler, Result,
    handle::{Access, Controlled, Delete, Verb, Writes},
};

use self::schedule::Schedule;
use crate::job;

/// When the run of a Job was due.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The controller of CronJobs.
pub(crate) fn controller() -> Controller<CronJob> {
    Controller::of_existing::<CronJob>()
        .reports_as("cronjob-controller")
        .reconciler(CronJobs::declare)
}

struct CronJobs {
    jobs: Controlled<Job>,
    status: Writes<CronJob>,
    /// The schedules that were seen last: a new one begins with its next run.
    seen: Mutex<BTreeMap<Key, (String, Option<String>)>>,
}

type Ctx = Context<CronJob>;

impl CronJobs {
    fn declare(declare: &mut Declare<CronJob>) -> Self {
        Self {
            jobs: declare.controls(),
            status: declare.writes(Access::none().on("status", [Verb::Patch])),
            seen: Mutex::default(),
        }
    }

    /// Whether the schedule is another than it was.
    fn has_changed(&self, key: &Key, spec: &CronJobSpec) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let schedule = (spec.schedule.clone(), spec.time_zone.clone());
        let before = seen.insert(key.clone(), schedule.clone());
        before.is_some_and(|before| before != schedule)
    }

    async fn delete(&self, ctx: &Ctx, status: &mut CronJobStatus, job: &Job) -> Result<()> {
        let deleted = self.jobs.delete(ctx, job, Delete::background()).await;
        match &deleted {
            Ok(()) => {
                forget(status, &job.metadata);
                let note = format!("Deleted job {}", name(&job.metadata));
                ctx.event(Event::normal("SuccessfulDelete", note));
            }
            Err(error) => {
                ctx.event(Event::warning(
                    "FailedDelete",
                    format!("Deleted job: {error}"),
                ));
            }
        }
        deleted
    }

    /// Deletes Jobs that ended, the oldest first, until no more are left than are kept.
    async fn clean_up(
        &self,
        ctx: &Ctx,
        spec: &CronJobSpec,
        status: &mut CronJobStatus,
        jobs: &[Arc<Job>],
    ) -> Result<()> {
        for (type_, limit) in [
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ] {
            let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
                continue;
            };
            let ended = |job: &&Job| job::finished(job).is_some_and(|end| end.type_ == type_);
            let mut ended: Vec<&Job> = jobs.iter().map(Arc::as_ref).filter(ended).collect();
            let began = |job: &Job| {
                let start = job
                    .status
                    .as_ref()
                    .and_then(|status| status.start_time.as_ref());
                start.map_or(Timestamp::MAX, |time| time.0)
            };
            ended.sort_by_key(|job| (began(job), name(&job.metadata).to_owned()));
            for job in ended.iter().take(ended.len().saturating_sub(limit)) {
                self.delete(ctx, status, job).await?;
            }
        }
        Ok(())
    }

    /// Starts what is due, and says when to look again.
    async fn start(
        &self,
        cron: &CronJob,
        ctx: &Ctx,
        spec: &CronJobSpec,
        status: &mut CronJobStatus,
        jobs: &[Arc<Job>],
    ) -> Result<Option<Timestamp>> {
        let now = ctx.clock().now();
        let zone_name = spec.time_zone.as_deref().unwrap_or("UTC");
        let Ok(zone) = TimeZone::get(zone_name) else {
            let note = format!("invalid timeZone: {zone_name:?}: unknown time zone {zone_name}");
            ctx.event(Event::warning("UnknownTimeZone", note));
            return Ok(None);
        };
        if spec.suspend == Some(true) {
            return Ok(None);
        }
        let schedule = match Schedule::parse(&spec.schedule, zone.clone()) {
            Ok(schedule) => schedule,
            Err(error) => {
                let note = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                ctx.event(Event::warning("UnparseableSchedule", note));
                return Ok(None);
            }
        };
        let look_again = |status: &CronJobStatus| {
            let told = CronJob {
                status: Some(status.clone()),
                ..cron.clone()
            };
            due::look_again(&told, &schedule, now)
        };
        if self.has_changed(ctx.key(), spec) {
            return Ok(look_again(status));
        }
        let due = due::due(cron, &schedule, now, true);
        let Some(run) = due.run else {
            return Ok(look_again(status));
        };
        if due.missed_many {
            let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            ctx.event(Event::warning("TooManyMissedTimes", note));
        }
        if due::is_too_late(cron, run, now) {
            let missed = run
                .to_zoned(TimeZone::UTC)
                .strftime("%a, %d %b %Y %H:%M:%S %z")
                .to_string();
            let note = format!("Missed scheduled time to start a job: {missed}");
            ctx.event(Event::warning("MissSchedule", note));
            return Ok(look_again(status));
        }
        let job_name = format!(
            "{}-{}",
            name(&cron.metadata),
            run.as_second().div_euclid(60)
        );
        let active = status.active.clone().unwrap_or_default();
        let is_running = active
            .iter()
            .any(|one| one.name.as_ref() == Some(&job_name));
        if is_running || due::is_done(cron, run) {
            return Ok(look_again(status));
        }
        match spec.concurrency_policy.as_deref() {
            Some("Forbid") if !active.is_empty() => {
                let note = "Not starting job because prior execution is running and concurrency policy is Forbid";
                ctx.event(Event::normal("JobAlreadyActive", note));
                return Ok(look_again(status));
            }
            Some("Replace") => {
                for job in jobs.iter().filter(|job| is_active(&active, &job.metadata)) {
                    self.delete(ctx, status, job).await?;
                }
            }
            _ => {}
        }
        let new = new_job(cron, spec, &job_name, run, &zone);
        let job = match self.jobs.create(ctx, new).await {
            Ok(job) => {
                let note = format!("Created job {job_name}");
                ctx.event(Event::normal("SuccessfulCreate", note));
                Arc::new(job)
            }
            // Ours from before a crash, or somebody else's: then there is nothing to do.
            Err(error) if error.is_already_exists() => {
                match self.jobs.get(ctx, job_name.as_str()).await? {
                    Some(job) => job,
                    None => return Ok(look_again(status)),
                }
            }
            Err(error) => {
                ctx.event(Event::warning(
                    "FailedCreate",
                    format!("Error creating job: {error}"),
                ));
                return Err(error);
            }
        };
        status.active.get_or_insert_default().push(reference(&job));
        status.last_schedule_time = Some(Time(run));
        Ok(look_again(status))
    }
}

impl Reconciler for CronJobs {
    type Object = CronJob;

    async fn reconcile(&self, cron: &CronJob, ctx: &Ctx) -> Result<Action> {
        let spec = cron.spec.clone();
        let jobs = self.jobs.list(ctx).await?;
        let mut status = cron.status.clone().unwrap_or_default();
        let cleaned = self.clean_up(ctx, &spec, &mut status, &jobs).await;
        for event in take_note(&mut status, &jobs) {
            ctx.event(event);
        }
        let next = self.start(cron, ctx, &spec, &mut status, &jobs).await;
        self.status.status(ctx, cron, &status).await?;
        cleaned?;
        Ok(next?.map_or(Action::done(), |at| Action::done().requeue_at(at)))
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(key);
        Ok(())
    }
}

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

fn is_active(active: &[ObjectReference], job: &ObjectMeta) -> bool {
    active.iter().any(|one| one.uid == job.uid)
}

fn forget(status: &mut CronJobStatus, job: &ObjectMeta) {
    if let Some(active) = &mut status.active {
        active.retain(|one| one.uid != job.uid);
    }
    if status.active.as_ref().is_some_and(Vec::is_empty) {
        status.active = None;
    }
}

/// Brings the status up to date with the Jobs there are, and tells what changed.
fn take_note(status: &mut CronJobStatus, jobs: &[Arc<Job>]) -> Vec<Event> {
    let mut events = Vec::new();
    for job in jobs {
        let active = status.active.clone().unwrap_or_default();
        let known = is_active(&active, &job.metadata);
        let Some(end) = job::finished(job) else {
            if !known && job.metadata.deletion_timestamp.is_none() {
                let note = "Saw a job that the controller did not create or forgot";
                let note = format!("{note}: {}", name(&job.metadata));
                events.push(Event::warning("UnexpectedJob", note));
            }
            continue;
        };
        if known {
            forget(status, &job.metadata);
            let note = format!(
                "Saw completed job: {}, condition: {}",
                name(&job.metadata),
                end.type_
            );
            events.push(Event::normal("SawCompletedJob", note));
        }
        let completed = job
            .status
            .as_ref()
            .and_then(|status| status.completion_time.clone());
        if let Some(completed) = completed.filter(|_| end.type_ == "Complete") {
            let last = status.last_successful_time.as_ref();
            if last.is_none_or(|last| completed.0 > last.0) {
                status.last_successful_time = Some(completed);
            }
        }
    }
    let missing: Vec<ObjectReference> = status
        .active
        .iter()
        .flatten()
        .filter(|one| jobs.iter().all(|job| job.metadata.uid != one.uid))
        .cloned()
        .collect();
    for one in missing {
        let gone = one.name.clone().unwrap_or_default();
        events.push(Event::normal(
            "MissingJob",
            format!("Active job went missing: {gone}"),
        ));
        forget(
            status,
            &ObjectMeta {
                uid: one.uid,
                ..ObjectMeta::default()
            },
        );
    }
    events
}

fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        field_path: None,
    }
}

fn new_job(cron: &CronJob, spec: &CronJobSpec, name: &str, run: Timestamp, zone: &TimeZone) -> Job {
    let template = spec.job_template.clone();
    let metadata = template.metadata.unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    let local = run.to_zoned(zone.clone());
    let offset = local.offset();
    let written = if offset.is_zero() {
        run.to_string()
    } else {
        local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    };
    annotations.insert(SCHEDULED.to_owned(), written);
    Job {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: cron.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

//! The worker of one pod: hears, decides by [`crate::pod`], acts, and reports.

mod attend;
mod hear;
mod launch;
mod message;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use windlass::testing::{BusyGuard, Environment};

use super::{Agency, event::event};
use crate::env::Sources;
use crate::folder;
use crate::pod::{Action, Plan, Record, StopCause, is_reported, plan, status};
use crate::runtime::{Mail, Note, Report, Reports, Runtime};
use crate::volume::{Token, Wish};
use attend::Attendants;
pub(crate) use launch::user;

/// The field manager of what the node says.
const MANAGER: &str = "windlass-node";
/// The first and the longest wait before a request that failed is sent again.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

pub(super) struct Worker<R> {
    runtime: Arc<R>,
    agency: Agency,
    client: kube::Client,
    api: Api<Pod>,
    events: Api<k8s_openapi::api::events::v1::Event>,
    environment: Environment,
    /// The newest version that is known.
    pod: Arc<Pod>,
    sources: Sources,
    tokens: BTreeMap<Wish, Token>,
    record: Record,
    attendants: Attendants,
    reports: Reports,
    /// The object was deleted; its absence will be heard of.
    deleted: bool,
    /// Its containers have ended for good, and the runtime knows.
    released: bool,
    /// How many requests failed in a row.
    failures: u32,
}

/// Why a worker waits.
enum Wait {
    /// For news alone.
    News,
    /// For a time at which a settled cluster would still do something.
    Due(Instant, &'static str),
    /// Until the node answers again: its containers go on, but nobody decides anything.
    Silence,
    /// For a time at which something is tried that may well fail again, for ever.
    Retry(Instant),
}

impl<R: Runtime> Worker<R> {
    pub(super) fn new(
        runtime: Arc<R>,
        agency: Agency,
        client: kube::Client,
        environment: Environment,
        pod: Pod,
        reports: Reports,
    ) -> Self {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let mut record = Record::of(&pod, environment.clock.now());
        let known = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.as_deref());
        record.address = known.and_then(|address| address.parse().ok());
        let pod = Arc::new(pod);
        agency.directory.put(&pod);
        Self {
            runtime,
            agency,
            api: Api::namespaced(client.clone(), &namespace),
            events: Api::namespaced(client.clone(), &namespace),
            client,
            environment,
            pod,
            sources: Sources::default(),
            tokens: BTreeMap::new(),
            record,
            attendants: Attendants::default(),
            reports,
            deleted: false,
            released: false,
            failures: 0,
        }
    }

    /// Lives as long as the pod does. (The worker itself can send to its inbox, so that never
    /// closes.)
    pub(super) async fn run(mut self, mut inbox: UnboundedReceiver<(Mail, BusyGuard)>) {
        self.adopt();
        let mut mail = inbox.recv().await;
        loop {
            let mut busy = vec![
                self.environment
                    .activity
                    .busy(format!("node: pod {}", self.name())),
            ];
            while let Some((news, guard)) = mail {
                busy.push(guard);
                match news {
                    Mail::Gone => return self.tear_down().await,
                    Mail::Desired(pod, sources) => self.desire(*pod, sources),
                    Mail::Reported(report) => self.hear(report).await,
                }
                mail = inbox.try_recv().ok();
            }
            let wait = self.advance().await;
            drop(busy);
            mail = match wait {
                Wait::News => inbox.recv().await,
                Wait::Due(at, what) => {
                    let what = format!("node: {what} of pod {}", self.name());
                    let _due = self.environment.activity.due(at, what);
                    next(&mut inbox, at).await
                }
                Wait::Retry(at) => next(&mut inbox, at).await,
                Wait::Silence => tokio::select! {
                    biased;
                    mail = inbox.recv() => mail,
                    () = self.agency.faults.answering() => None,
                },
            };
        }
    }

    /// Goes on with the containers that have outlived a former life of the node.
    fn adopt(&mut self) {
        for adopted in self.runtime.adopt(self.uid(), &self.reports) {
            let (container, run) = (adopted.container.clone(), adopted.run);
            let ended = adopted.ended.clone();
            if !self.record.adopted(&self.pod, adopted) {
                continue;
            }
            match ended {
                // What follows from an end is decided as it is for others.
                Some(termination) => self.reports.report(Report::Exited {
                    container,
                    run,
                    termination,
                }),
                None => self.attend(&container, run, true),
            }
        }
    }

    /// Lets go of what nothing of the pod will need any more, once its end is known to all.
    async fn release(&mut self) {
        let phase = self.pod.status.as_ref().and_then(|s| s.phase.as_deref());
        let over = matches!(phase, Some("Succeeded" | "Failed")) && !self.record.is_alive();
        if over && !std::mem::replace(&mut self.released, true) {
            self.runtime.release(self.uid()).await;
        }
    }

    /// Ends what is left of the pod.
    async fn tear_down(&mut self) {
        self.agency.directory.remove(&self.pod);
        self.attendants = Attendants::default();
        self.runtime.tear_down(self.uid()).await;
        let volumes = self.agency.volumes.as_ref();
        if let Some(aside) = volumes.and_then(|volumes| volumes.set_aside(self.uid())) {
            // There may be a great deal in them.
            let removed = tokio::task::spawn_blocking(move || folder::remove_all(&aside)).await;
            if let Ok(Err(error)) = removed {
                tracing::warn!(%error, pod = self.name(), "cannot remove the volumes of a pod");
            }
        }
    }

    fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    fn now(&self) -> Timestamp {
        self.environment.clock.now()
    }

    /// Takes over what the API server says, unless it is older than what is known already.
    fn desire(&mut self, pod: Pod, sources: Sources) {
        if version(&pod) >= version(&self.pod) {
            self.pod = Arc::new(pod);
            self.agency.directory.put(&self.pod);
        }
        self.sources = sources;
        self.record.reconsider(self.now());
        self.refresh_volumes();
    }

    /// Does what is to be done, reports it, and says what to wait for.
    async fn advance(&mut self) -> Wait {
        if self.deleted || self.runtime.is_draining() {
            return Wait::News;
        }
        if self.agency.faults.is_silent() {
            return Wait::Silence;
        }
        self.refresh_tokens().await;
        let plan = self.act().await;
        let mut outcome = self.report().await;
        if outcome.is_ok() && plan.actions.contains(&Action::Delete) {
            outcome = self.delete().await;
        }
        if let Err(error) = outcome {
            let wait = RETRY
                .0
                .saturating_mul(2_u32.saturating_pow(self.failures))
                .min(RETRY.1);
            self.failures = self.failures.saturating_add(1);
            tracing::warn!(%error, pod = self.name(), "cannot report on a pod; will try again");
            return Wait::Due(Instant::now() + wait, "report");
        }
        self.failures = 0;
        self.release().await;
        let now = self.now();
        let at = |time: Timestamp| {
            Instant::now() + Duration::try_from(time.duration_since(now)).unwrap_or_default()
        };
        let refresh_at = self.tokens.values().map(|token| token.refresh_at).min();
        let refresh_at = refresh_at.filter(|_| self.record.is_alive());
        let retry_at = plan.retry_at.into_iter().chain(refresh_at).min();
        match (plan.restart_at, retry_at) {
            (Some(restart), Some(retry)) if retry < restart => Wait::Retry(at(retry)),
            (Some(restart), _) => Wait::Due(at(restart), "restart"),
            (None, Some(retry)) => Wait::Retry(at(retry)),
            (None, None) => Wait::News,
        }
    }

    /// Carries out the plan, and the one that follows from it, until there is nothing to do now.
    async fn act(&mut self) -> Plan {
        loop {
            let plan = plan(&self.pod, &self.record, self.now());
            if plan.actions.iter().all(|action| *action == Action::Delete) {
                return plan;
            }
            for action in plan.actions {
                match action {
                    Action::Start(container) => self.start(&container).await,
                    Action::Stop {
                        container,
                        grace,
                        cause,
                    } => {
                        self.stop(&container, grace, cause).await;
                    }
                    Action::Delete => {}
                }
            }
        }
    }

    async fn start(&mut self, name: &str) {
        let Some(container) = self.container(name).cloned() else {
            return;
        };
        let run = self
            .record
            .starting(name, container.image.as_deref().unwrap_or_default());
        match self.launch(container, run).await {
            Ok(launch) => self.runtime.start(launch, self.reports.clone()),
            Err(obstacle) => self.refuse(name, obstacle.refusal, obstacle.message).await,
        }
    }

    async fn stop(&mut self, container: &str, grace: Duration, cause: StopCause) {
        let killed_at = self.now().checked_add(grace).unwrap_or(Timestamp::MAX);
        self.record.stopping(container, killed_at);
        match self.target(container) {
            Some(target) => {
                let reports = self.reports.clone();
                self.attendants.stop(target, grace, reports);
            }
            None => self.runtime.stop(self.uid(), container, grace),
        }
        let why = match cause {
            StopCause::PodEnds => format!("Stopping container {container}"),
            StopCause::Unhealthy(message) => {
                format!("Container {container} is unhealthy and will be restarted: {message}")
            }
            StopCause::ImageChanged => {
                format!("Container {container} has another image and will be restarted")
            }
        };
        self.tell(&Note::normal("Killing", why)).await;
    }

    fn container(&self, name: &str) -> Option<&Container> {
        let spec = self.pod.spec.as_ref()?;
        let init = spec.init_containers.iter().flatten();
        init.chain(&spec.containers)
            .find(|container| container.name == name)
    }

    /// Writes the pod's status, if it is not what the API server says already.
    async fn report(&mut self) -> kube::Result<()> {
        let wanted = status(
            &self.pod,
            &self.record,
            &self.agency.identity.host_ip,
            self.now(),
        );
        if is_reported(&self.pod, &wanted) {
            return Ok(());
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            // The uid makes sure that it is not another pod of the same name.
            "metadata": {"name": self.name(), "uid": self.uid()},
            "status": wanted,
        });
        let params = PatchParams::apply(MANAGER).force();
        match self
            .api
            .patch_status(self.name(), &params, &Patch::Apply(body))
            .await
        {
            Ok(pod) => {
                self.pod = Arc::new(pod);
                self.agency.directory.put(&self.pod);
                Ok(())
            }
            Err(error) => self.unless_gone(error),
        }
    }

    /// Removes the object: nothing of the pod is left here.
    async fn delete(&mut self) -> kube::Result<()> {
        let uid = Some(self.uid().to_owned());
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid,
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.api.delete(self.name(), &params).await {
            Ok(_) => {
                self.deleted = true;
                Ok(())
            }
            Err(error) => self.unless_gone(error),
        }
    }

    /// An object that is gone needs nothing more; its absence will be heard of.
    fn unless_gone(&mut self, error: kube::Error) -> kube::Result<()> {
        match &error {
            kube::Error::Api(status) if status.code == 404 => {
                self.deleted = true;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Tells people; best effort.
    async fn tell(&self, note: &Note) {
        if self.agency.faults.is_silent() {
            return;
        }
        let event = event(&self.pod, &self.agency.identity, note, &self.environment);
        if let Err(error) = self.events.create(&PostParams::default(), &event).await {
            tracing::debug!(%error, pod = self.name(), reason = note.reason, "cannot write an event");
        }
    }
}

pub(super) fn later(at: Timestamp, wait: Duration) -> Timestamp {
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// The next mail, or none when the time comes first.
async fn next(
    inbox: &mut UnboundedReceiver<(Mail, BusyGuard)>,
    at: Instant,
) -> Option<(Mail, BusyGuard)> {
    tokio::select! {
        biased;
        mail = inbox.recv() => mail,
        () = tokio::time::sleep_until(at) => None,
    }
}

/// The version of an object, as a number; resource versions of one server can be compared.
fn version(pod: &Pod) -> u64 {
    let version = pod.metadata.resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

//! What the worker of a pod makes of what the runtime reports.

use jiff::Timestamp;

use super::{Worker, attend};
use crate::handler::Target;
use crate::hook::HookError;
use crate::pod::{Health, Refusal, Termination};
use crate::probe;
use crate::runtime::{Note, Report, Runtime};

impl<R: Runtime> Worker<R> {
    /// Takes over what the runtime says.
    pub(super) async fn hear(&mut self, report: Report) {
        // While the node is being stopped, containers end because of that; the next life of the
        // node finds out.
        if self.runtime.is_draining() {
            return;
        }
        match report {
            Report::Started {
                container,
                id,
                image_id,
                health,
                at,
            } => {
                self.started(&container, id, image_id, health, at).await;
            }
            Report::Refused {
                container,
                refusal,
                message,
            } => {
                self.refuse(&container, refusal, message).await;
            }
            Report::Hooked {
                container,
                run,
                outcome,
            } => self.hooked(&container, run, outcome).await,
            Report::Probed {
                container,
                run,
                health,
            } => {
                self.record.probed(&container, run, health);
            }
            Report::Exited {
                container,
                run,
                termination,
            } => self.exited(&container, run, termination).await,
            Report::Evicted(eviction) => self.record.eviction = Some(eviction),
            Report::Note(note) => self.tell(&note).await,
        }
    }

    async fn started(
        &mut self,
        name: &str,
        id: String,
        image_id: String,
        health: Option<Health>,
        at: Timestamp,
    ) {
        let Some(container) = self.container(name) else {
            return;
        };
        let hook = health.is_none() && attend::post_start(container).is_some();
        let known = health.is_some();
        let health = health.unwrap_or_else(|| probe::at_start(container));
        self.record.started(name, id, image_id, health, hook, at);
        self.tell(&Note::normal(
            "Started",
            format!("Started container {name}"),
        ))
        .await;
        let run = self.record.container(name).restarts;
        if !known && self.record.container(name).is_alive() {
            self.attend(name, run, false);
        }
    }

    pub(super) fn attend(&mut self, name: &str, run: i32, adopted: bool) {
        if let Some(target) = self.target(name) {
            let reports = self.reports.clone();
            self.attendants.watch(target, run, adopted, reports);
        }
    }

    pub(super) fn target(&self, name: &str) -> Option<Target<R>> {
        Some(Target {
            runtime: self.runtime.clone(),
            uid: self.uid().to_owned(),
            container: self.container(name)?.clone(),
            address: self.record.address?,
        })
    }

    async fn hooked(&mut self, container: &str, run: i32, outcome: Result<(), HookError>) {
        let Err(error) = outcome else {
            self.record.hooked(container, run);
            return;
        };
        let message = format!("PostStartHook of container {container} failed: {error}");
        self.tell(&Note::warning("FailedPostStartHook", message.clone()))
            .await;
        // It is stopped as one that is not healthy is.
        let health = Health {
            unhealthy: Some(message),
            ..Health::default()
        };
        self.record.probed(container, run, health);
    }

    async fn exited(&mut self, name: &str, run: i32, mut termination: Termination) {
        if self.record.container(name).restarts == run {
            self.attendants.ended(name);
        }
        self.add_last_message(name, run, &mut termination).await;
        if !self.record.exited(name, run, termination) {
            return;
        }
        if let Some(wait) = self.record.back_off(&self.pod, name) {
            let message = format!(
                "Back-off restarting failed container {name} in pod {}_{}({})",
                self.name(),
                self.pod.metadata.namespace.as_deref().unwrap_or_default(),
                self.uid()
            );
            tracing::debug!(pod = self.name(), container = name, ?wait, "back-off");
            self.tell(&Note::warning("BackOff", message)).await;
        }
    }

    pub(super) async fn refuse(&mut self, container: &str, refusal: Refusal, message: String) {
        let (reason, said) = match refusal {
            Refusal::Volume => ("FailedMount", message.clone()),
            Refusal::Sandbox => (
                "FailedCreatePodSandBox",
                format!("Failed to create pod sandbox: {message}"),
            ),
            Refusal::Image | Refusal::Configuration => ("Failed", format!("Error: {message}")),
        };
        let news = self.record.refused(container, refusal, message, self.now());
        if news {
            self.tell(&Note::warning(reason, said)).await;
        }
    }
}

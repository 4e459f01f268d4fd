//! What the runtime has reported about the containers of one pod.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};

use super::RestartPolicy;
use super::container::{Health, Refusal, Run, State, Termination};
use crate::backoff::{self, Backoff};

/// The record of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When the node first saw it.
    pub start_time: Timestamp,
    /// Its address.
    pub address: Option<IpAddr>,
    /// Why the node put an end to it, if it did.
    pub eviction: Option<Eviction>,
    containers: BTreeMap<String, ContainerRecord>,
}

/// Why a node puts an end to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// One word, such as `Evicted`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// The record of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRecord {
    /// Where it is in its life.
    pub state: State,
    /// How the run before the present one ended.
    pub last: Option<Termination>,
    /// How often it was started after the first time; also the number of its present run.
    pub restarts: i32,
    /// The image of its present or last run, as the pod named it.
    pub image: String,
    /// What really ran for that image.
    pub image_id: String,
    /// The runtime's name for the present or last run.
    pub id: Option<String>,
    /// How often in a row it could not be started.
    refusals: u32,
    /// Why it last could not be.
    refusal: Option<String>,
    backoff: Backoff,
}

impl ContainerRecord {
    const FRESH: Self = Self {
        state: State::Fresh,
        last: None,
        restarts: 0,
        image: String::new(),
        image_id: String::new(),
        id: None,
        refusals: 0,
        refusal: None,
        backoff: Backoff::NONE,
    };

    /// Whether a process may exist for it.
    pub fn is_alive(&self) -> bool {
        matches!(self.state, State::Starting | State::Running(_))
    }

    /// How its present state ended, if it did.
    pub fn termination(&self) -> Option<&Termination> {
        match &self.state {
            State::Exited { termination, .. } => Some(termination),
            _ => None,
        }
    }
}

impl Record {
    /// The record of a pod this node sees for the first time. What its status says of an earlier
    /// life of the node is kept: a container that was running then is lost and counts as ended.
    pub fn of(pod: &Pod, now: Timestamp) -> Self {
        let status = pod.status.as_ref();
        let start_time = status
            .and_then(|status| status.start_time.as_ref())
            .map_or(now, |t| t.0);
        let init = status.and_then(|status| status.init_container_statuses.as_deref());
        let own = status.and_then(|status| status.container_statuses.as_deref());
        let statuses = [init.unwrap_or_default(), own.unwrap_or_default()];
        let containers = statuses
            .into_iter()
            .flatten()
            .map(|status| (status.name.clone(), former(status, now)))
            .collect();
        Self {
            start_time,
            address: None,
            eviction: None,
            containers,
        }
    }

    /// The record of a container; one never heard of is fresh.
    pub fn container(&self, name: &str) -> &ContainerRecord {
        self.containers
            .get(name)
            .unwrap_or(const { &ContainerRecord::FRESH })
    }

    pub(super) fn entry(&mut self, name: &str) -> &mut ContainerRecord {
        self.containers
            .entry(name.to_owned())
            .or_insert(ContainerRecord::FRESH)
    }

    /// Whether a process may exist for any of the pod's containers.
    pub fn is_alive(&self) -> bool {
        self.containers.values().any(ContainerRecord::is_alive)
    }

    /// Notes that the runtime is asked to start a container, and returns the number of the run.
    pub fn starting(&mut self, name: &str, image: &str) -> i32 {
        let container = self.entry(name);
        if let State::Exited { termination, .. } =
            std::mem::replace(&mut container.state, State::Starting)
        {
            container.restarts += 1;
            container.last = Some(termination);
        }
        image.clone_into(&mut container.image);
        container.restarts
    }

    /// Notes that a container runs; `hooking` while something is done right after its start.
    pub fn started(
        &mut self,
        name: &str,
        id: String,
        image_id: String,
        health: Health,
        hooking: bool,
        at: Timestamp,
    ) {
        let container = self.entry(name);
        container.id = Some(id);
        container.image_id = image_id;
        container.refusals = 0;
        container.refusal = None;
        // It may have ended, and said so, before this was heard.
        if container.state == State::Starting {
            container.state = State::Running(Run {
                started_at: at,
                health,
                hooking,
                killed_at: None,
            });
        }
    }

    /// Notes that what was to be done right after the start of run `run` is done.
    pub fn hooked(&mut self, name: &str, run: i32) {
        let container = self.entry(name);
        if let State::Running(present) = &mut container.state
            && container.restarts == run
        {
            present.hooking = false;
        }
    }

    /// Notes that a container could not be started; returns whether the reason is another than the
    /// last time.
    pub fn refused(
        &mut self,
        name: &str,
        refusal: Refusal,
        message: String,
        at: Timestamp,
    ) -> bool {
        let container = self.entry(name);
        container.refusals += 1;
        let attempts = container.refusals;
        let wait = match refusal {
            Refusal::Image => backoff::retry_after(attempts),
            Refusal::Configuration => backoff::retry_after(1),
            Refusal::Volume | Refusal::Sandbox => backoff::prepare_after(attempts),
        };
        let news = container.refusal.as_ref() != Some(&message);
        container.refusal = Some(message.clone());
        let retry_at = later(at, wait);
        container.state = State::Refused {
            refusal,
            message,
            attempts,
            retry_at,
        };
        news
    }

    /// How long a container that has ended waits before it is started again, if it is and must.
    pub fn back_off(&self, pod: &Pod, name: &str) -> Option<Duration> {
        let State::Exited {
            termination,
            restart_at,
        } = &self.container(name).state
        else {
            return None;
        };
        let policy = RestartPolicy::of_container(pod, name)?;
        let wait = restart_at.duration_since(termination.finished_at);
        let wait = Duration::try_from(wait).ok().filter(|wait| !wait.is_zero());
        let ends = super::has_ended(pod, self) || pod.metadata.deletion_timestamp.is_some();
        wait.filter(|_| policy.restarts(termination.exit_code) && !ends)
    }

    /// Lets containers whose configuration was missing try again: it may have changed.
    pub fn reconsider(&mut self, now: Timestamp) {
        for container in self.containers.values_mut() {
            if let State::Refused {
                refusal: Refusal::Configuration | Refusal::Volume,
                retry_at,
                ..
            } = &mut container.state
            {
                *retry_at = now;
            }
        }
    }

    /// Notes what the probes say of run `run` of a container; returns whether that is news.
    pub fn probed(&mut self, name: &str, run: i32, health: Health) -> bool {
        let container = self.entry(name);
        match &mut container.state {
            State::Running(present) if container.restarts == run && present.health != health => {
                present.health = health;
                true
            }
            _ => false,
        }
    }

    /// Notes that a container has been asked to end.
    pub fn stopping(&mut self, name: &str, killed_at: Timestamp) {
        if let State::Running(run) = &mut self.entry(name).state {
            run.killed_at = Some(killed_at);
        }
    }

    /// Notes the end of run `run` of a container; returns whether that is news.
    pub fn exited(&mut self, name: &str, run: i32, mut termination: Termination) -> bool {
        let container = self.entry(name);
        if container.restarts != run || !container.is_alive() {
            return false;
        }
        let started = termination.started_at.unwrap_or(termination.finished_at);
        let ran = termination.finished_at.duration_since(started);
        let wait = container.backoff.exited(ran.try_into().unwrap_or_default());
        let restart_at = later(termination.finished_at, wait);
        if termination.id.is_none() {
            termination.id.clone_from(&container.id);
        }
        container.state = State::Exited {
            termination,
            restart_at,
        };
        true
    }
}

fn later(at: Timestamp, wait: Duration) -> Timestamp {
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// What the status written by an earlier life of the node says about a container.
fn former(status: &ContainerStatus, now: Timestamp) -> ContainerRecord {
    let terminated = |state: &Option<ContainerState>| {
        state
            .as_ref()
            .and_then(|state| state.terminated.as_ref())
            .map(ended)
    };
    let last = terminated(&status.last_state);
    let running = status
        .state
        .as_ref()
        .and_then(|state| state.running.as_ref());
    let (termination, last) = match (terminated(&status.state), running) {
        (Some(termination), _) => (Some(termination), last),
        (None, Some(running)) => {
            let since = running.started_at.as_ref().map(|time| time.0);
            (Some(Termination::lost(since, now)), last)
        }
        // It was waiting: the last state, if any, is the one it waited to be restarted from.
        (None, None) => (last, None),
    };
    ContainerRecord {
        state: termination.map_or(State::Fresh, |termination| State::Exited {
            termination,
            restart_at: now,
        }),
        last,
        restarts: status.restart_count,
        image: status.image.clone(),
        image_id: status.image_id.clone(),
        id: status.container_id.clone(),
        refusals: 0,
        refusal: None,
        backoff: Backoff::NONE,
    }
}

pub(super) fn ended(state: &ContainerStateTerminated) -> Termination {
    Termination {
        exit_code: state.exit_code,
        reason: state.reason.clone().unwrap_or_default(),
        message: state.message.clone(),
        started_at: state.started_at.as_ref().map(|time| time.0),
        finished_at: state
            .finished_at
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        id: state.container_id.clone(),
    }
}

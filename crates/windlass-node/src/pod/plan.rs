//! What to do about a pod now, and when to look again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::container::State;
use super::record::Record;
use super::{RestartPolicy, containers, has_ended, init_containers, is_sidecar};

/// Kubernetes' own default for `terminationGracePeriodSeconds`.
const DEFAULT_GRACE: i64 = 30;

/// What a sidecar gets at least, however long the others took.
const LEAST: Duration = Duration::from_secs(2);

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start this container.
    Start(String),
    /// Ask this container to end, and kill it when it has not after a while.
    Stop {
        /// Its name.
        container: String,
        /// How long it may take.
        grace: Duration,
        /// Why.
        cause: StopCause,
    },
    /// Nothing of the pod is left: remove the object.
    Delete,
}

/// Why a container is asked to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopCause {
    /// Its pod is being deleted, or has ended.
    PodEnds,
    /// A probe failed for good, with this message.
    Unhealthy(String),
    /// Its image was changed.
    ImageChanged,
}

/// What to do now, and when to look again if nothing is heard before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// The earliest time at which a refused container is tried again.
    pub retry_at: Option<Timestamp>,
    /// The earliest time at which a container that ended is started again.
    pub restart_at: Option<Timestamp>,
}

/// Decides what to do about a pod.
pub fn plan(pod: &Pod, record: &Record, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if pod.metadata.deletion_timestamp.is_some() {
        let grace = seconds(
            pod.metadata
                .deletion_grace_period_seconds
                .unwrap_or(DEFAULT_GRACE),
        );
        plan.stop_all(pod, record, grace, now);
        if !record.is_alive() {
            plan.actions.push(Action::Delete);
        }
    } else if has_ended(pod, record) {
        plan.stop_all(pod, record, grace_of(pod), now);
    } else if plan.initialize(pod, record, now) {
        let mut all_done = true;
        for container in containers(pod) {
            let policy = RestartPolicy::of(pod, container);
            all_done &= plan.step(pod, container, record, policy, now) != Step::Active;
        }
        if all_done {
            plan.stop_all(pod, record, grace_of(pod), now);
        }
    }
    plan
}

/// Where a container is with regard to its policy.
#[derive(PartialEq, Eq)]
enum Step {
    /// It runs, or will run again.
    Active,
    /// It ended for good, well.
    Succeeded,
    /// It ended for good, badly.
    Failed,
}

impl Plan {
    /// Runs the init containers in order; returns whether the pod's own may run.
    fn initialize(&mut self, pod: &Pod, record: &Record, now: Timestamp) -> bool {
        // Once one of the pod's own containers has been started, the init containers have done
        // their work, and a sidecar that dies later delays nobody.
        let initialized = containers(pod)
            .iter()
            .any(|c| record.container(&c.name).state != State::Fresh);
        for container in init_containers(pod) {
            let sidecar = is_sidecar(container);
            if initialized && !sidecar {
                continue;
            }
            let policy = RestartPolicy::of_init(pod, container);
            let step = self.step(pod, container, record, policy, now);
            let passed = match &record.container(&container.name).state {
                State::Running(run) if sidecar => run.health.started,
                _ => step == Step::Succeeded,
            };
            if !passed && !initialized {
                return false;
            }
        }
        true
    }

    /// Plans one container by its policy.
    fn step(
        &mut self,
        pod: &Pod,
        container: &Container,
        record: &Record,
        policy: RestartPolicy<'_>,
        now: Timestamp,
    ) -> Step {
        let known = record.container(&container.name);
        let image_changed = known.state != State::Fresh
            && container.image.as_deref().unwrap_or_default() != known.image;
        match &known.state {
            State::Fresh => self.start(container),
            State::Refused { retry_at, .. } => {
                if *retry_at <= now || image_changed {
                    self.start(container);
                } else {
                    earliest(&mut self.retry_at, *retry_at);
                }
            }
            State::Running(run) if run.killed_at.is_none() => {
                let cause = match &run.health.unhealthy {
                    Some(message) => Some(StopCause::Unhealthy(message.clone())),
                    None => image_changed.then_some(StopCause::ImageChanged),
                };
                if let Some(cause) = cause {
                    let grace = match &cause {
                        StopCause::Unhealthy(why) => probe_grace(container, why).map(seconds),
                        _ => None,
                    };
                    self.actions.push(Action::Stop {
                        container: container.name.clone(),
                        grace: grace.unwrap_or_else(|| grace_of(pod)),
                        cause,
                    });
                }
            }
            State::Starting | State::Running(_) => {}
            State::Exited {
                termination,
                restart_at,
            } => {
                if image_changed || (policy.restarts(termination.exit_code) && *restart_at <= now) {
                    self.start(container);
                } else if policy.restarts(termination.exit_code) {
                    earliest(&mut self.restart_at, *restart_at);
                } else if termination.exit_code == 0 {
                    return Step::Succeeded;
                } else {
                    return Step::Failed;
                }
            }
        }
        Step::Active
    }

    fn start(&mut self, container: &Container) {
        self.actions.push(Action::Start(container.name.clone()));
    }

    /// Asks everything that runs to end: the pod's own containers first, then the sidecars, the
    /// last that was started first. A shorter grace period than the one granted before is granted
    /// anew.
    fn stop_all(&mut self, pod: &Pod, record: &Record, grace: Duration, now: Timestamp) {
        let alive = |container: &Container| record.container(&container.name).is_alive();
        let mut waiting = containers(pod).iter().any(alive);
        for container in containers(pod) {
            self.stop_one(container, record, grace, now);
        }
        for container in init_containers(pod).iter().rev() {
            if !is_sidecar(container) {
                self.stop_one(container, record, grace, now);
            } else if !waiting || grace.is_zero() {
                let left = match &pod.metadata.deletion_timestamp {
                    Some(deadline) => {
                        let left = Duration::try_from(deadline.0.duration_since(now));
                        left.unwrap_or_default().max(LEAST).min(grace)
                    }
                    None => grace,
                };
                self.stop_one(container, record, left, now);
            }
            waiting |= alive(container);
        }
    }

    fn stop_one(
        &mut self,
        container: &Container,
        record: &Record,
        grace: Duration,
        now: Timestamp,
    ) {
        let killed_at = now.checked_add(grace).unwrap_or(Timestamp::MAX);
        if let State::Running(run) = &record.container(&container.name).state
            && run.killed_at.is_none_or(|granted| granted > killed_at)
        {
            self.actions.push(Action::Stop {
                container: container.name.clone(),
                grace,
                cause: StopCause::PodEnds,
            });
        }
    }
}

fn earliest(slot: &mut Option<Timestamp>, at: Timestamp) {
    *slot = Some(slot.map_or(at, |before| before.min(at)));
}

fn grace_of(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref();
    seconds(
        spec.and_then(|spec| spec.termination_grace_period_seconds)
            .unwrap_or(DEFAULT_GRACE),
    )
}

/// The grace period of the probe that failed, if it has one of its own.
fn probe_grace(container: &Container, why: &str) -> Option<i64> {
    let probe = if why.starts_with("Startup") {
        &container.startup_probe
    } else if why.starts_with("Liveness") {
        &container.liveness_probe
    } else {
        return None;
    };
    probe.as_ref()?.termination_grace_period_seconds
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}

//! The life of a pod on a node, as pure functions.
//!
//! ```text
//!            start refused (image, configuration)
//!           ┌───────────► Refused ──┐ retry
//!           │                       ▼
//! Fresh ─────────► Starting ─► Running ─► Exited ──► (policy says no) done
//!                     ▲                      │
//!                     └──── after back-off ──┘
//! ```
//!
//! A [`Record`] holds what the runtime has reported about the containers of one pod. [`plan`] turns
//! a pod and its record into what to do now and when to look again; [`status`] turns the same two
//! into what the API server should say. Neither touches anything, so every rule of kubelet that is
//! kept here (restart policies, back-off, init containers in order, sidecars, deletion in two
//! steps, phases and conditions) is tested without a process and shared by the node that runs
//! programs and the simulated one.

mod conditions;
mod container;
mod plan;
mod record;
mod status;

pub use container::{Health, Refusal, Run, State, Termination};
pub use plan::{Action, Plan, StopCause, plan};
pub use record::{ContainerRecord, Eviction, Record};
pub use status::{is_reported, status};

use k8s_openapi::api::core::v1::{Container, Pod};

/// When a container is started again after it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    /// The policy of the pod's own containers.
    fn of(pod: &Pod) -> Self {
        match pod
            .spec
            .as_ref()
            .and_then(|spec| spec.restart_policy.as_deref())
        {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// The policy of an init container: it runs until it succeeds once, unless the pod is one that
    /// never starts anything twice; a sidecar always runs.
    fn of_init(pod: &Pod, container: &Container) -> Self {
        match Self::of(pod) {
            _ if is_sidecar(container) => Self::Always,
            Self::Never => Self::Never,
            Self::Always | Self::OnFailure => Self::OnFailure,
        }
    }

    fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// Whether an init container stays beside the pod's own containers.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn init_containers(pod: &Pod) -> &[Container] {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_deref())
        .unwrap_or_default()
}

fn containers(pod: &Pod) -> &[Container] {
    pod.spec
        .as_ref()
        .map(|spec| spec.containers.as_slice())
        .unwrap_or_default()
}

/// Whether the pod has ended for good, by what the API server says or by eviction; nothing is
/// started again then.
fn has_ended(pod: &Pod, record: &Record) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed")) || record.eviction.is_some()
}

#[cfg(test)]
mod tests;

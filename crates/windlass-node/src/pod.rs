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

mod adoption;
mod conditions;
mod container;
mod plan;
mod record;
mod status;

pub use container::{Health, Refusal, Run, State, Termination};
pub use plan::{Action, Plan, StopCause, plan};
pub use record::{ContainerRecord, Eviction, Record};
pub use status::{is_reported, status};

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, Pod};

/// When a container is started again after it ended: by its own rules, or by its policy.
#[derive(Debug, Clone, Copy)]
struct RestartPolicy<'a> {
    rules: &'a [ContainerRestartRule],
    otherwise: Restart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    fn named(name: Option<&str>) -> Self {
        match name {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        Self::named(spec.and_then(|spec| spec.restart_policy.as_deref()))
    }
}

impl<'a> RestartPolicy<'a> {
    /// The policy of one of the pod's own containers: its own, or the pod's.
    fn of(pod: &Pod, container: &'a Container) -> Self {
        let own = container.restart_policy.as_deref();
        Self {
            rules: container
                .restart_policy_rules
                .as_deref()
                .unwrap_or_default(),
            otherwise: own.map_or_else(|| Restart::of(pod), |own| Restart::named(Some(own))),
        }
    }

    /// The policy of an init container: it runs until it succeeds once, unless the pod is one that
    /// never starts anything twice; a sidecar always runs.
    fn of_init(pod: &Pod, container: &'a Container) -> Self {
        let own = container.restart_policy.as_deref();
        let wanted = own.map_or_else(|| Restart::of(pod), |own| Restart::named(Some(own)));
        Self {
            rules: container
                .restart_policy_rules
                .as_deref()
                .unwrap_or_default(),
            otherwise: match wanted {
                _ if is_sidecar(container) => Restart::Always,
                Restart::Never => Restart::Never,
                Restart::Always | Restart::OnFailure => Restart::OnFailure,
            },
        }
    }

    /// The policy of a container of the pod, whichever it is.
    fn of_container(pod: &'a Pod, name: &str) -> Option<Self> {
        let named = |container: &&Container| container.name == name;
        let init = init_containers(pod).iter().find(named);
        let own = containers(pod).iter().find(named);
        init.map(|container| Self::of_init(pod, container))
            .or_else(|| own.map(|container| Self::of(pod, container)))
    }

    fn restarts(self, exit_code: i32) -> bool {
        let applies = |rule: &&ContainerRestartRule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let values = codes.values.as_deref().unwrap_or_default();
                values.contains(&exit_code) == (codes.operator == "In")
            })
        };
        if let Some(rule) = self.rules.iter().find(applies) {
            return rule.action == "Restart";
        }
        match self.otherwise {
            Restart::Always => true,
            Restart::OnFailure => exit_code != 0,
            Restart::Never => false,
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

/// The name the containers of a pod find themselves on.
pub(crate) fn hostname(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    let asked = spec.and_then(|spec| {
        let host_override = spec.hostname_override.as_deref();
        host_override.or(spec.hostname.as_deref())
    });
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let name = asked.filter(|name| !name.is_empty()).unwrap_or(name);
    // Linux takes no more than 63 bytes.
    name[..name.floor_char_boundary(63)].trim_end_matches(['-', '.'])
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

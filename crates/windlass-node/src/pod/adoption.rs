//! What a record makes of containers that have outlived a former life of the node.
//!
//! The status that life wrote last may be behind: a container may have begun, or ended, just before
//! the node went away. The runtime knows better what runs; the status knows what the probes last
//! said, and which ends have been reported already.

use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod};

use super::container::{Health, Run, State, Termination};
use super::record::{Record, ended};
use crate::probe;
use crate::runtime::Adopted;

impl Record {
    /// Notes that a container ran on, whatever was thought of it; returns whether that is news.
    pub(crate) fn adopted(&mut self, pod: &Pod, adopted: Adopted) -> bool {
        let before = status_of(pod, &adopted.container);
        if before.is_some_and(|status| has_ended(status, &adopted.id)) {
            return false;
        }
        let spec = spec_of(pod, &adopted.container);
        let last = before.and_then(|status| {
            // A run that nobody knew of yet comes after the one that is known.
            let known = status.state.as_ref();
            let known = known.filter(|_| status.restart_count != adopted.run);
            known
                .and_then(end_of)
                .or_else(|| end_of(status.last_state.as_ref()?))
        });
        // What its probes last said holds until they say something else.
        let before = before.filter(|status| is_running(status, &adopted.id));
        let health = match (before, spec) {
            (Some(status), _) => Health {
                started: status.started == Some(true),
                ready: status.ready,
                unhealthy: None,
            },
            (None, Some(container)) => probe::at_start(container),
            (None, None) => Health::default(),
        };
        let image = before.map(|status| &status.image);
        let image = image.or_else(|| spec.and_then(|container| container.image.as_ref()));
        let container = self.entry(&adopted.container);
        container.restarts = adopted.run;
        container.last = last;
        container.image = image.cloned().unwrap_or_default();
        container.image_id = adopted.image_id;
        container.id = Some(adopted.id);
        container.state = State::Running(Run {
            started_at: adopted.at,
            health,
            hooking: false,
            killed_at: None,
        });
        true
    }
}

/// Whether the end of that run has been reported.
fn has_ended(status: &ContainerStatus, id: &str) -> bool {
    let known = [status.state.as_ref(), status.last_state.as_ref()];
    let mut ends = known
        .into_iter()
        .flatten()
        .filter_map(|state| state.terminated.as_ref());
    ends.any(|end| end.container_id.as_deref() == Some(id))
}

fn end_of(state: &ContainerState) -> Option<Termination> {
    state.terminated.as_ref().map(ended)
}

/// Whether that run has been reported to go on.
fn is_running(status: &ContainerStatus, id: &str) -> bool {
    let state = status.state.as_ref();
    state.is_some_and(|state| state.running.is_some()) && status.container_id.as_deref() == Some(id)
}

fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find(|status| status.name == container)
}

fn spec_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|spec| spec.name == container)
}

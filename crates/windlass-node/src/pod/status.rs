//! What the API server should say about a pod.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::conditions::conditions;
use super::container::{Refusal, State, Termination};
use super::record::{ContainerRecord, Record};
use super::{RestartPolicy, containers, init_containers, is_sidecar};

/// What the node says about a pod: the fields that are the node's to write, and no others.
pub fn status(pod: &Pod, record: &Record, host_ip: &str, now: Timestamp) -> PodStatus {
    let initialized = is_initialized(pod, record);
    let phase = phase(pod, record, initialized);
    let over = pod.metadata.deletion_timestamp.is_some() || matches!(phase, "Succeeded" | "Failed");
    let own: Vec<ContainerStatus> = containers(pod)
        .iter()
        .map(|c| {
            let policy = RestartPolicy::of(pod, c);
            container_status(pod, c, record, policy, initialized, over)
        })
        .collect();
    let init: Vec<ContainerStatus> = init_containers(pod)
        .iter()
        .map(|c| {
            let policy = RestartPolicy::of_init(pod, c);
            container_status(pod, c, record, policy, initialized, over)
        })
        .collect();
    let address = record.address.map(|address| address.to_string());
    PodStatus {
        conditions: Some(conditions(
            pod,
            phase,
            initialized,
            &init,
            &own,
            record,
            now,
        )),
        container_statuses: Some(own),
        init_container_statuses: (!init.is_empty()).then_some(init),
        host_ip: Some(host_ip.to_owned()),
        host_ips: Some(vec![HostIP {
            ip: host_ip.to_owned(),
        }]),
        observed_generation: pod.metadata.generation,
        phase: Some(phase.to_owned()),
        reason: record
            .eviction
            .as_ref()
            .map(|eviction| eviction.reason.clone()),
        message: record
            .eviction
            .as_ref()
            .map(|eviction| eviction.message.clone()),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        start_time: Some(time(record.start_time)),
        ..PodStatus::default()
    }
}

/// Whether the pod, as the API server has it, already says what the node would say; what others
/// wrote beside it does not matter.
pub fn is_reported(pod: &Pod, wanted: &PodStatus) -> bool {
    let Some(present) = &pod.status else {
        return false;
    };
    let conditions = present.conditions.as_deref().unwrap_or_default();
    let all_conditions = wanted
        .conditions
        .iter()
        .flatten()
        .all(|condition| conditions.contains(condition));
    let rest = PodStatus {
        conditions: present.conditions.clone(),
        container_statuses: wanted.container_statuses.clone(),
        init_container_statuses: wanted.init_container_statuses.clone(),
        host_ip: wanted.host_ip.clone(),
        host_ips: wanted.host_ips.clone(),
        observed_generation: wanted.observed_generation,
        phase: wanted.phase.clone(),
        reason: wanted.reason.clone().or_else(|| present.reason.clone()),
        message: wanted.message.clone().or_else(|| present.message.clone()),
        pod_ip: wanted.pod_ip.clone(),
        pod_ips: wanted.pod_ips.clone(),
        start_time: wanted.start_time.clone(),
        ..present.clone()
    };
    all_conditions && rest == *present
}

/// A time as the API has it: in whole seconds.
pub(super) fn time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

/// Whether every init container has done its work, and every sidecar has started.
fn is_initialized(pod: &Pod, record: &Record) -> bool {
    let begun = containers(pod)
        .iter()
        .any(|c| record.container(&c.name).state != State::Fresh);
    begun
        || init_containers(pod).iter().all(|container| {
            match &record.container(&container.name).state {
                State::Running(run) => is_sidecar(container) && run.health.started,
                State::Exited { termination, .. } => {
                    !is_sidecar(container) && termination.exit_code == 0
                }
                _ => false,
            }
        })
}

/// Pending until every container has started once, Running while any runs or will run again, then
/// Succeeded or Failed by how they ended.
fn phase(pod: &Pod, record: &Record, initialized: bool) -> &'static str {
    match pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
    {
        Some("Succeeded") => return "Succeeded",
        Some("Failed") => return "Failed",
        _ if record.eviction.is_some() => return "Failed",
        _ => {}
    }
    let deleted = pod.metadata.deletion_timestamp.is_some();
    let ends = |known: &ContainerRecord, policy: RestartPolicy<'_>| {
        let exit_code = known.termination().map(|termination| termination.exit_code);
        exit_code.filter(|code| deleted || !policy.restarts(*code))
    };
    if !initialized {
        let failed = init_containers(pod).iter().any(|container| {
            let policy = RestartPolicy::of_init(pod, container);
            ends(record.container(&container.name), policy).is_some_and(|code| code != 0)
        });
        return if failed { "Failed" } else { "Pending" };
    }
    let (mut over, mut failed) = (true, false);
    for container in containers(pod) {
        let policy = RestartPolicy::of(pod, container);
        let known = record.container(&container.name);
        match &known.state {
            State::Fresh | State::Refused { .. } | State::Starting if known.last.is_none() => {
                return "Pending";
            }
            State::Running(run) if run.hooking && known.last.is_none() => return "Pending",
            _ => {}
        }
        match ends(known, policy) {
            Some(code) => failed |= code != 0,
            None => over = false,
        }
    }
    match (over, failed) {
        (false, _) => "Running",
        (true, false) => "Succeeded",
        (true, true) => "Failed",
    }
}

fn container_status(
    pod: &Pod,
    container: &Container,
    record: &Record,
    policy: RestartPolicy<'_>,
    initialized: bool,
    over: bool,
) -> ContainerStatus {
    let known = record.container(&container.name);
    let waiting = |reason: &str, message: Option<String>| ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        }),
        ..ContainerState::default()
    };
    let ended = |termination: &Termination| ContainerState {
        terminated: Some(terminated(termination)),
        ..ContainerState::default()
    };
    let mut last = known.last.as_ref().map(ended);
    let is_init = init_containers(pod)
        .iter()
        .any(|init| init.name == container.name);
    let state = match &known.state {
        // With init containers a pod's containers wait for them, and the later ones for the first.
        State::Fresh
        | State::Refused {
            refusal: Refusal::Volume | Refusal::Sandbox,
            ..
        } if !init_containers(pod).is_empty() && (!initialized || is_init) => {
            waiting("PodInitializing", None)
        }
        State::Fresh
        | State::Starting
        | State::Refused {
            refusal: Refusal::Volume | Refusal::Sandbox,
            ..
        } => waiting("ContainerCreating", None),
        State::Running(run) if run.hooking => waiting("ContainerCreating", None),
        State::Refused {
            refusal: Refusal::Configuration,
            message,
            ..
        } => waiting("CreateContainerConfigError", Some(message.clone())),
        State::Refused {
            refusal: Refusal::Image,
            message,
            attempts: 1,
            ..
        } => waiting("ErrImagePull", Some(message.clone())),
        State::Refused {
            refusal: Refusal::Image,
            message,
            ..
        } => {
            let image = container.image.as_deref().unwrap_or_default();
            let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {message}");
            waiting("ImagePullBackOff", Some(message))
        }
        State::Running(run) => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(time(run.started_at)),
            }),
            ..ContainerState::default()
        },
        State::Exited {
            termination,
            restart_at,
        } if policy.restarts(termination.exit_code) && !over => {
            last = Some(ended(termination));
            let wait = restart_at.duration_since(termination.finished_at).as_secs();
            waiting(
                "CrashLoopBackOff",
                Some(back_off_message(pod, container, wait)),
            )
        }
        State::Exited { termination, .. } => ended(termination),
    };
    let run = match &known.state {
        State::Running(run) if !run.hooking => Some(run),
        _ => None,
    };
    let succeeded = known
        .termination()
        .is_some_and(|termination| termination.exit_code == 0);
    ContainerStatus {
        name: container.name.clone(),
        // What runs or ran, which after a change of the image is for a while not what is wanted.
        image: if known.image.is_empty() {
            container.image.clone().unwrap_or_default()
        } else {
            known.image.clone()
        },
        image_id: known.image_id.clone(),
        container_id: known.id.clone(),
        // An init container is ready once it has done its work.
        ready: match run {
            Some(run) => run.health.ready && (!is_init || is_sidecar(container)),
            None => is_init && !is_sidecar(container) && succeeded,
        },
        started: Some(run.is_some_and(|run| run.health.started)),
        restart_count: known.restarts,
        state: Some(state),
        // Empty rather than absent: that is how the API server gives it back.
        last_state: Some(last.unwrap_or_default()),
        ..ContainerStatus::default()
    }
}

fn back_off_message(pod: &Pod, container: &Container, seconds: i64) -> String {
    let metadata = &pod.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let wait = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    };
    format!(
        "back-off {wait} restarting failed container={} pod={}_{}({})",
        container.name,
        part(&metadata.name),
        part(&metadata.namespace),
        part(&metadata.uid)
    )
}

fn terminated(termination: &Termination) -> ContainerStateTerminated {
    ContainerStateTerminated {
        container_id: termination.id.clone(),
        exit_code: termination.exit_code,
        started_at: Some(time(
            termination.started_at.unwrap_or(Timestamp::UNIX_EPOCH),
        )),
        finished_at: Some(time(termination.finished_at)),
        message: termination.message.clone(),
        reason: Some(termination.reason.clone()),
        signal: None,
    }
}

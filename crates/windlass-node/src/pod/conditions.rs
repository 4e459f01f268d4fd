//! The conditions of a pod that its node is responsible for.
//!
//! In kubelet's order and with its reasons; a transition time moves only when the status does, and
//! those of others (readiness gates) are only read.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::is_sidecar;
use super::record::Record;
use super::status::time;

/// A condition before its transition time is known: false comes with a reason.
struct Verdict {
    type_: &'static str,
    reason: Option<(&'static str, Option<String>)>,
    holds: bool,
}

pub(super) fn conditions(
    pod: &Pod,
    phase: &str,
    initialized: bool,
    init: &[ContainerStatus],
    own: &[ContainerStatus],
    record: &Record,
    now: Timestamp,
) -> Vec<PodCondition> {
    let before: &[PodCondition] = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let containers_ready = containers_ready(pod, phase, init, own);
    let ready = ready(pod, before, &containers_ready);
    let verdicts = [
        Verdict {
            type_: "PodReadyToStartContainers",
            holds: record.address.is_some() && !matches!(phase, "Succeeded" | "Failed"),
            reason: None,
        },
        initialized_verdict(phase, initialized, init),
        ready,
        containers_ready,
        Verdict {
            type_: "PodScheduled",
            holds: true,
            reason: None,
        },
    ];
    verdicts
        .into_iter()
        .map(|verdict| condition(verdict, before, pod.metadata.generation, now))
        .collect()
}

fn condition(
    verdict: Verdict,
    before: &[PodCondition],
    generation: Option<i64>,
    now: Timestamp,
) -> PodCondition {
    let former = before
        .iter()
        .find(|condition| condition.type_ == verdict.type_);
    let status = if verdict.holds { "True" } else { "False" };
    let since = former
        .filter(|former| former.status == status)
        .and_then(|former| former.last_transition_time.clone());
    let (reason, message) = verdict.reason.unzip();
    PodCondition {
        type_: verdict.type_.to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(since.unwrap_or_else(|| time(now))),
        reason: reason.map(str::to_owned),
        message: message.flatten(),
        observed_generation: generation,
        ..PodCondition::default()
    }
}

fn initialized_verdict(phase: &str, initialized: bool, init: &[ContainerStatus]) -> Verdict {
    let done = initialized || phase == "Succeeded";
    let waiting = init.iter().filter(|status| !status.ready);
    let reason = match phase {
        "Succeeded" => Some(("PodCompleted", None)),
        _ if done => None,
        _ => Some((
            "ContainersNotInitialized",
            Some(format!(
                "containers with incomplete status: [{}]",
                names(waiting)
            )),
        )),
    };
    Verdict {
        type_: "Initialized",
        holds: done,
        reason,
    }
}

fn containers_ready(
    pod: &Pod,
    phase: &str,
    init: &[ContainerStatus],
    own: &[ContainerStatus],
) -> Verdict {
    let sidecars = init.iter().filter(|status| {
        super::init_containers(pod)
            .iter()
            .any(|c| c.name == status.name && is_sidecar(c))
    });
    let unready = names(sidecars.chain(own).filter(|status| !status.ready));
    let reason = match phase {
        "Succeeded" => Some(("PodCompleted", None)),
        "Failed" => Some(("PodFailed", None)),
        _ if unready.is_empty() => None,
        _ => Some((
            "ContainersNotReady",
            Some(format!("containers with unready status: [{unready}]")),
        )),
    };
    Verdict {
        type_: "ContainersReady",
        holds: reason.is_none(),
        reason,
    }
}

/// A pod is ready when its containers are and every readiness gate's condition is true.
fn ready(pod: &Pod, before: &[PodCondition], containers: &Verdict) -> Verdict {
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.readiness_gates.as_deref());
    let closed = gates.unwrap_or_default().iter().find_map(|gate| {
        let type_ = &gate.condition_type;
        match before.iter().find(|condition| condition.type_ == *type_) {
            Some(condition) if condition.status == "True" => None,
            Some(condition) => Some(format!(
                "the status of pod readiness gate \"{type_}\" is not \"True\", but {}",
                condition.status
            )),
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{type_}\" does not exist."
            )),
        }
    });
    let reason = match (&containers.reason, closed) {
        (Some(reason), _) => Some(reason.clone()),
        (None, Some(message)) => Some(("ReadinessGatesNotReady", Some(message))),
        (None, None) => None,
    };
    Verdict {
        type_: "Ready",
        holds: reason.is_none(),
        reason,
    }
}

fn names<'a>(statuses: impl Iterator<Item = &'a ContainerStatus>) -> String {
    statuses
        .map(|status| status.name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

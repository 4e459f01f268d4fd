//! What the controllers ask about a pod.
//!
//! A pod is **active** while it can still do work: it has neither ended nor been asked to go.
//! It is **ready** when its node says so, and **available** once it has been ready for
//! `minReadySeconds` without interruption.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

/// Whether the pod can still do work: not ended, not terminating.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

/// Whether every container of the pod has ended for good.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod has been asked to go.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// The pod's phase; a pod without one has not been looked at by a node and counts as pending.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}

/// The node the pod is bound to, if any.
pub(crate) fn node_name(pod: &Pod) -> Option<&str> {
    let name = pod.spec.as_ref()?.node_name.as_deref()?;
    (!name.is_empty()).then_some(name)
}

/// The pod's condition of one type.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    pod.status
        .as_ref()?
        .conditions
        .as_ref()?
        .iter()
        .find(|condition| condition.type_ == type_)
}

/// Whether the pod's node calls it ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when the pod has been ready; `None` when it is not, or when nobody recorded the time.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// When a ready pod becomes, or became, available. `None` while that cannot be known.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    let wait = SignedDuration::from_secs(i64::from(min_ready_seconds));
    ready_since(pod)?.checked_add(wait).ok()
}

/// Whether the pod has been ready for `min_ready_seconds`.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    if min_ready_seconds == 0 {
        return is_ready(pod);
    }
    available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Pods as tests need them: a name and the few facts a decision looks at.

    use super::{Pod, PodCondition, Timestamp};
    use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

    /// A moment after the epoch, in seconds.
    pub(crate) fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// A pending pod on no node.
    pub(crate) fn pod(name: &str) -> Pod {
        Pod {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some("default".to_owned()),
                uid: Some(format!("uid-{name}")),
                creation_timestamp: Some(Time(at(0))),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec::default()),
            status: Some(PodStatus {
                phase: Some("Pending".to_owned()),
                ..PodStatus::default()
            }),
        }
    }

    /// The pod, bound to a node.
    pub(crate) fn bound(mut pod: Pod, node: &str) -> Pod {
        pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
        pod
    }

    /// The pod in another phase.
    pub(crate) fn in_phase(mut pod: Pod, phase: &str) -> Pod {
        pod.status.get_or_insert_default().phase = Some(phase.to_owned());
        pod
    }

    /// The pod, running and ready since `seconds`.
    pub(crate) fn ready(pod: Pod, seconds: i64) -> Pod {
        let mut pod = in_phase(pod, "Running");
        pod.status.get_or_insert_default().conditions = Some(vec![PodCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(Time(at(seconds))),
            ..PodCondition::default()
        }]);
        pod
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{at, bound, in_phase, pod, ready};
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn ended_and_terminating_pods_are_not_active() {
        assert!(is_active(&pod("a")));
        assert!(!is_active(&in_phase(pod("a"), "Failed")));
        assert!(!is_active(&in_phase(pod("a"), "Succeeded")));
        let mut going = pod("a");
        going.metadata.deletion_timestamp = Some(Time(at(1)));
        assert!(!is_active(&going));
    }

    #[test]
    fn available_only_after_min_ready_seconds() {
        let pod = ready(bound(pod("a"), "n"), 100);
        assert!(is_available(&pod, 0, at(100)));
        assert!(!is_available(&pod, 10, at(109)));
        assert!(is_available(&pod, 10, at(110)));
        assert!(!is_available(
            &in_phase(super::testing::pod("b"), "Running"),
            0,
            at(500)
        ));
    }
}

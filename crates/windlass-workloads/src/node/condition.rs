//! What is known of a node that may have stopped talking.
//!
//! A node renews its Lease as long as it is alive. One that has not for a while is not known to be
//! anything: its conditions become Unknown.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How long a node may be silent.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_secs(50);

/// The conditions that a node reports.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// When a node was last heard of, as we saw it with our own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    renewed: Timestamp,
    at: Timestamp,
}

impl Heard {
    /// After a look at the Lease; `None` for a node without one, which is taken at its word.
    pub(crate) fn after(
        before: Option<Self>,
        lease: Option<&Lease>,
        now: Timestamp,
    ) -> Option<Self> {
        let renewed = lease?.spec.as_ref()?.renew_time.as_ref()?.0;
        Some(match before {
            Some(before) if before.renewed == renewed => before,
            _ => Self { renewed, at: now },
        })
    }

    /// When the node has been silent for too long.
    pub(crate) fn silent_at(self) -> Timestamp {
        self.at.checked_add(GRACE).unwrap_or(Timestamp::MAX)
    }
}

/// The value of a condition.
pub(crate) fn value<'a>(node: &'a Node, type_: &str) -> Option<&'a str> {
    let conditions = node.status.as_ref()?.conditions.as_deref()?;
    let condition = conditions
        .iter()
        .find(|condition| condition.type_ == type_)?;
    Some(condition.status.as_str())
}

/// The status of a node of which nothing is known any more, if that is news.
pub(crate) fn unknown(node: &Node, now: Timestamp) -> Option<NodeStatus> {
    let mut status = node.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    let mut changed = false;
    for type_ in REPORTED {
        let told = |reason: &str, message: &str| NodeCondition {
            type_: type_.to_owned(),
            status: "Unknown".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(Time(now)),
            last_heartbeat_time: None,
        };
        match conditions
            .iter_mut()
            .find(|condition| condition.type_ == type_)
        {
            Some(known) if known.status == "Unknown" => {}
            Some(known) => {
                let mut silent = told("NodeStatusUnknown", "Kubelet stopped posting node status.");
                silent.last_heartbeat_time = known.last_heartbeat_time.take();
                *known = silent;
                changed = true;
            }
            None => {
                let mut never = told(
                    "NodeStatusNeverUpdated",
                    "Kubelet never posted node status.",
                );
                never
                    .last_heartbeat_time
                    .clone_from(&node.metadata.creation_timestamp);
                conditions.push(never);
                changed = true;
            }
        }
    }
    changed.then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;
    use serde_json::json;

    fn lease(renewed: i64) -> Lease {
        serde_json::from_value(json!({"spec": {"renewTime": at(renewed).to_string()}})).unwrap()
    }

    #[test]
    fn a_node_is_heard_when_its_lease_changes() {
        let heard = Heard::after(None, Some(&lease(1)), at(100)).unwrap();
        assert_eq!(heard.silent_at(), at(150));
        let same = Heard::after(Some(heard), Some(&lease(1)), at(120)).unwrap();
        assert_eq!(same.silent_at(), at(150));
        let again = Heard::after(Some(heard), Some(&lease(2)), at(120)).unwrap();
        assert_eq!(again.silent_at(), at(170));
        assert_eq!(Heard::after(Some(heard), None, at(120)), None);
    }

    #[test]
    fn silence_makes_everything_unknown_once() {
        let mut node: Node = serde_json::from_value(json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady"},
        ]}}))
        .unwrap();
        let status = unknown(&node, at(5)).unwrap();
        let conditions = status.conditions.as_ref().unwrap();
        assert_eq!(conditions.len(), 4);
        assert_eq!(conditions[0].reason.as_deref(), Some("NodeStatusUnknown"));
        assert_eq!(
            conditions[1].reason.as_deref(),
            Some("NodeStatusNeverUpdated")
        );
        node.status = Some(status);
        assert_eq!(value(&node, "Ready"), Some("Unknown"));
        assert_eq!(unknown(&node, at(6)), None);
    }
}

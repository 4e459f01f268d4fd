//! A member that has joined: from now on its pod starts etcd only on the member's data.
//!
//! Kubelet starts a container again by itself, on whatever is in the folder. A folder that is empty
//! then must neither begin a second cluster nor join again under the id of a member that has voted.
//! The operator takes that right from the pod, and waits until the node has seen it, before anything
//! depends on the member.

use super::{Decision, SOON, Step, step};
use crate::view::{OnEmpty, View};

/// What is to be done until the pod of a member cannot start without data any more.
pub(super) fn require_data(view: &View<'_>, name: &str) -> Option<Decision> {
    let pod = view.pods.get(name)?;
    if !pod.ours || pod.terminating {
        return None;
    }
    match pod.on_empty {
        OnEmpty::Refused => None,
        OnEmpty::Starts => Some(step(
            Step::RequireData {
                member: name.to_owned(),
            },
            "MemberJoined",
            format!("member {name} has joined; from now on its pod starts only with its data"),
        )),
        OnEmpty::RefusedSoon => Some(step(
            Step::Await(SOON),
            "MemberJoined",
            format!(
                "member {name} has joined; waiting for its node to see that its pod starts only with its data"
            ),
        )),
    }
}

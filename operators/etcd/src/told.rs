//! What people are told: an event for every step, and one when something goes wrong.

use windlass::Event;

use crate::{
    decision::{Decision, Step},
    kind::EtcdClusterStatus,
    status::known_trouble,
};

/// The event about a decision, if it is news.
pub(crate) fn event(
    decision: &Decision,
    before: &EtcdClusterStatus,
    now: &EtcdClusterStatus,
) -> Option<Event> {
    let message = &decision.message;
    let trouble = known_trouble(now);
    let news = trouble != known_trouble(before);
    let action = match &decision.step {
        Step::Record(_) => "Record",
        Step::Forget => "Finish",
        Step::CreateClaim { .. } => "CreateVolume",
        Step::CreatePod { .. } => "CreatePod",
        Step::AddMember { .. } => "AddMember",
        Step::PromoteMember { .. } => "PromoteMember",
        Step::MoveLeader { .. } => "MoveLeader",
        Step::RemoveMember { .. } => "RemoveMember",
        Step::DeletePod { .. } => "DeletePod",
        Step::DeleteClaim { .. } => "DeleteVolume",
        Step::Stop if news => return Some(Event::warning(decision.reason, message).action("Stop")),
        Step::Wait | Step::Await(_) if news && trouble.is_some() => {
            return Some(Event::warning(decision.reason, message).action("Wait"));
        }
        Step::Rest if before.phase != now.phase => {
            return Some(Event::normal("ClusterReady", message).action("Rest"));
        }
        Step::Stop | Step::Wait | Step::Await(_) | Step::Rest => return None,
    };
    // Asked again and again until it has caught up.
    let told = |kind: &str| {
        before
            .conditions
            .iter()
            .any(|one| one.type_ == kind && one.message == *message)
    };
    if matches!(decision.step, Step::PromoteMember { .. }) && told("Progressing") {
        return None;
    }
    Some(Event::normal(decision.reason, message).action(action))
}

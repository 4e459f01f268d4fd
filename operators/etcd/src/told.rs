//! What people are told: an event for every step, and one when something goes wrong.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use windlass::Event;

use crate::{
    decision::{Decision, Step},
    kind::EtcdClusterStatus,
    status::known_trouble,
};

/// What this process has told of clusters that it does nothing for any more, by the uid of each.
///
/// The status is written before anybody is told, and an operator may die in between: who comes after
/// it finds nothing new, and tells it once all the same.
#[derive(Debug, Default)]
pub(crate) struct Alarms(Mutex<BTreeMap<String, &'static str>>);

impl Alarms {
    /// Whether a decision to stop has not been told yet; it is from now on.
    fn is_new(&self, uid: &str, decision: &Decision) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if decision.step == Step::Stop {
            told.insert(uid.to_owned(), decision.reason) != Some(decision.reason)
        } else {
            told.remove(uid);
            false
        }
    }
}

/// The event about a decision, if it is news.
pub(crate) fn event(
    alarms: &Alarms,
    uid: &str,
    decision: &Decision,
    before: &EtcdClusterStatus,
    now: &EtcdClusterStatus,
) -> Option<Event> {
    let message = &decision.message;
    let trouble = known_trouble(now);
    let alarm = alarms.is_new(uid, decision);
    let news = alarm || trouble != known_trouble(before);
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

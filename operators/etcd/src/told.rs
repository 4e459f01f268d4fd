//! What people are told: an event for every step, and one when something goes wrong.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use windlass::{Event, Key};

use crate::{
    decision::{Decision, Step},
    kind::EtcdClusterStatus,
    member::Names,
    status::known_trouble,
};

/// What this process has told of clusters that it does nothing for any more: of which, and why.
///
/// The status is written before anybody is told, and an operator may die in between: who comes after
/// it finds nothing new, and tells it once all the same.
#[derive(Debug, Default)]
pub(crate) struct Alarms(Mutex<BTreeMap<Key, Alarm>>);

#[derive(Debug, PartialEq, Eq)]
struct Alarm {
    uid: String,
    reason: &'static str,
}

impl Alarms {
    /// Whether a decision to stop has not been told yet; it is from now on.
    fn is_new(&self, names: Names<'_>, decision: &Decision) -> bool {
        let key = Key::namespaced(names.namespace, names.cluster);
        if decision.step != Step::Stop {
            self.forget(&key);
            return false;
        }
        let alarm = Alarm {
            uid: names.uid.to_owned(),
            reason: decision.reason,
        };
        let mut told = self.lock();
        if told.get(&key) == Some(&alarm) {
            return false;
        }
        told.insert(key, alarm);
        true
    }

    /// A cluster is gone, or is cared for again.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Alarm>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The event about a decision, if it is news.
pub(crate) fn event(
    alarms: &Alarms,
    names: Names<'_>,
    decision: &Decision,
    before: &EtcdClusterStatus,
    now: &EtcdClusterStatus,
) -> Option<Event> {
    let message = &decision.message;
    let trouble = known_trouble(now);
    let alarm = alarms.is_new(names, decision);
    let news = alarm || trouble != known_trouble(before);
    let action = match &decision.step {
        Step::Record(_) => "Record",
        Step::Forget => "Finish",
        Step::Reincarnate(_) => "Restore",
        Step::CreateClaim { .. } => "CreateVolume",
        Step::CreatePod { .. } | Step::CreateSeed(_) => "CreatePod",
        Step::RequireData { .. } => "PatchPod",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_told_once_and_a_cluster_that_is_gone_is_forgotten() {
        let alarms = Alarms::default();
        let names = |uid| Names {
            cluster: "c",
            namespace: "n",
            uid,
        };
        let stop = |reason| Decision {
            step: Step::Stop,
            reason,
            message: String::new(),
        };
        assert!(alarms.is_new(names("1"), &stop("QuorumLost")));
        assert!(!alarms.is_new(names("1"), &stop("QuorumLost")));
        assert!(alarms.is_new(names("1"), &stop("Other")));
        assert!(alarms.is_new(names("2"), &stop("Other")));
        alarms.forget(&Key::namespaced("n", "c"));
        assert!(alarms.lock().is_empty());
    }
}

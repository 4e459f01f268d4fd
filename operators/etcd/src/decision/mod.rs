//! The decision: which one step is next.
//!
//! A pure function of what is asked for, what was recorded, what etcd and its members say, and what
//! pods and claims there are ([`View`]). It is made anew from scratch each time; nothing is
//! remembered but what the status records. The rules, in the order in which they are looked at:
//!
//! 1. A paused cluster is left alone.
//! 2. Two clusters where one should be: nothing is done, a person is called ([`alarm`]).
//! 3. A cluster that has not begun begins with one member ([`bootstrap`]). Once its cluster id is
//!    recorded, no member is ever started as a new cluster again.
//! 4. With a majority that answers, the intent that was recorded is finished ([`intent`]); then what
//!    is broken is healed, then the size is followed, one member at a time ([`care`]).
//! 5. Without one, pods are put back on the volumes of recorded members, and nothing else is done
//!    ([`silence`]).
//!
//! What changes the membership is recorded before it is done, with the member's name, so whoever
//! comes after a crash goes on with that member: none is added twice, and none is forgotten.
//!
//! A member whose data is gone is never started again under its id: it would have forgotten what it
//! voted for. It is removed, and another takes its place. That holds for restarts of its container
//! too, which kubelet does by itself: before a member counts (before the first one's cluster is
//! recorded, before another gets its vote), its pod is made to start only with its data ([`joined`]).

mod alarm;
mod bootstrap;
mod care;
mod intent;
mod joined;
mod restore;
mod silence;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::time::Duration;

use crate::{
    etcd::Member,
    kind::{Action, GRACE, Intent},
    member::hex,
    refusal,
    restore::Plan,
    view::View,
};

/// How soon something that is under way is looked at again.
pub const SOON: Duration = Duration::from_secs(2);
/// How often a cluster is looked at that only etcd itself tells about.
pub const LATER: Duration = Duration::from_secs(15);

/// The next step, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is done.
    pub step: Step,
    /// Why, in CamelCase.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// What is about to be done is written down.
    Record(Intent),
    /// What was written down is done.
    Forget,
    /// The cluster begins again from a backup, as another incarnation.
    Reincarnate(Box<Plan>),
    /// The pod of a seed.
    CreateSeed(Box<Plan>),
    /// A volume for a member.
    CreateClaim {
        /// The member.
        member: String,
    },
    /// The pod of a member.
    CreatePod {
        /// The member.
        member: String,
        /// Whether it begins a cluster or belongs to one.
        start: Start,
        /// The members it is told of, by name.
        peers: Vec<String>,
    },
    /// From now on a pod starts etcd only on the data of its member.
    RequireData {
        /// The member.
        member: String,
    },
    /// Etcd is told of a new member, which has no vote yet.
    AddMember {
        /// The member.
        member: String,
    },
    /// A member that has caught up gets its vote.
    PromoteMember {
        /// The member.
        member: String,
        /// Its id.
        id: u64,
    },
    /// Another member leads, because the leader is about to go.
    MoveLeader {
        /// The leader.
        from: String,
        /// Who leads next.
        to: String,
        /// Its id.
        id: u64,
    },
    /// Etcd is told that a member is gone for good.
    RemoveMember {
        /// The member.
        member: String,
        /// Its id.
        id: u64,
    },
    /// A pod is deleted.
    DeletePod {
        /// The member.
        member: String,
    },
    /// A volume is deleted.
    DeleteClaim {
        /// The member.
        member: String,
    },
    /// Something has to happen first, and will: it is looked at again after this time.
    Await(Duration),
    /// Something has to happen first, and may not: it is looked at now and then.
    Wait,
    /// A person has to act; nothing is done before.
    Stop,
    /// Everything is as asked for.
    Rest,
}

/// How a member starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As the first of a new cluster, in an empty folder.
    New,
    /// As a new member of a cluster that exists, in an empty folder.
    Join,
    /// As the member whose data is in its folder, and not without it.
    Rejoin,
}

/// The next step.
pub fn decide(view: &View<'_>) -> Decision {
    if view.spec.paused {
        return wait(
            "Paused",
            "spec.paused is true: nothing is done until it is false",
        );
    }
    if let Some(plan) = &view.plan
        && plan.incarnation > view.recorded.incarnation
    {
        return restore::next(view, plan);
    }
    if let Some(alarm) = alarm::raised(view) {
        return alarm;
    }
    let begun = view.recorded.cluster_id.is_some();
    if let Some(told) = &view.membership {
        let members = listed(view, &told.members);
        return match &view.recorded.intent {
            Some(intent) => intent::pursue(view, &members, intent),
            None => care::next(view, &members),
        };
    }
    if begun {
        return silence::next(view);
    }
    match (refusal::of(view), &view.recorded.intent) {
        (Some(refusal), None) => refusal,
        _ => bootstrap::next(view),
    }
}

/// A member of the list that etcd tells, with the name it has here.
#[derive(Clone, Debug)]
struct Listed<'a> {
    /// Its name; none if somebody else added it.
    name: Option<String>,
    member: &'a Member,
}

impl Listed<'_> {
    /// The name to tell people.
    fn known_as(&self) -> String {
        self.name.clone().unwrap_or_else(|| hex(self.member.id))
    }

    fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Whether it has ever started.
    fn started(&self) -> bool {
        !self.member.name.is_empty()
    }
}

/// The members in the order in which they came: those recorded first, then as etcd lists them.
fn listed<'a>(view: &View<'_>, members: &'a [Member]) -> Vec<Listed<'a>> {
    let mut listed: Vec<Listed<'a>> = members
        .iter()
        .map(|member| Listed {
            name: view.names.of(member),
            member,
        })
        .collect();
    let roster = &view.recorded.roster;
    listed.sort_by_key(|one| {
        let place = roster.iter().position(|record| one.is(&record.name));
        (place.unwrap_or(roster.len()), one.member.id)
    });
    listed
}

/// How many voters must answer.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// Whether a majority answers once a member is gone; one without a vote is never missed.
fn safe_without(view: &View<'_>, members: &[Listed<'_>], gone: &Listed<'_>) -> bool {
    let rest = || {
        members
            .iter()
            .filter(|one| !one.member.learner && one.member.id != gone.member.id)
    };
    let healthy = rest().filter(|one| one.name.as_deref().is_some_and(|name| view.healthy(name)));
    let voters = rest().count();
    gone.member.learner || (voters > 0 && healthy.count() >= quorum(voters))
}

/// How long a member may be silent.
fn grace(view: &View<'_>) -> i64 {
    view.spec.replace_after_seconds.unwrap_or(GRACE)
}

fn record(view: &View<'_>, action: Action, member: &str, id: Option<u64>, why: String) -> Decision {
    let reason = match action {
        Action::Bootstrap => "Bootstrapping",
        Action::Add => "AddingMember",
        Action::Remove => "RemovingMember",
    };
    let intent = Intent {
        action,
        member: member.to_owned(),
        id: id.map(hex),
        reason: why.clone(),
        start_time: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            view.now,
        )),
    };
    step(Step::Record(intent), reason, why)
}

fn step(step: Step, reason: &'static str, message: impl Into<String>) -> Decision {
    Decision {
        step,
        reason,
        message: message.into(),
    }
}

fn wait(reason: &'static str, message: impl Into<String>) -> Decision {
    step(Step::Wait, reason, message)
}

fn stop(reason: &'static str, message: impl Into<String>) -> Decision {
    step(Step::Stop, reason, message)
}

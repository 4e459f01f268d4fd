//! What was recorded is finished, or given up where it is not needed any more.

use super::{
    Decision, Listed, SOON, Start, Step, care, grace, joined, record, safe_without, step, wait,
};
use crate::{
    kind::{Action, Intent},
    member::hex,
    view::View,
};

pub(super) fn pursue(view: &View<'_>, members: &[Listed<'_>], intent: &Intent) -> Decision {
    match intent.action {
        Action::Bootstrap => bootstrapped(view, &intent.member),
        Action::Add => add(view, members, intent),
        Action::Remove => remove(view, members, intent),
    }
}

/// The first member answers. The cluster has begun once that member cannot begin it again.
fn bootstrapped(view: &View<'_>, first: &str) -> Decision {
    joined::require_data(view, first).unwrap_or_else(|| {
        step(
            Step::Forget,
            "Bootstrapped",
            format!("the cluster has begun with member {first}"),
        )
    })
}

fn add(view: &View<'_>, members: &[Listed<'_>], intent: &Intent) -> Decision {
    let name = &intent.member;
    let Some(listed) = members.iter().find(|one| one.is(name)) else {
        if view.pods.contains_key(name) || view.claims.contains_key(name) {
            let why = format!("{name} has a pod or a volume but is no member: somebody removed it");
            return record(view, Action::Remove, name, None, why);
        }
        if members.len() >= size(view) + seeds(view, members) {
            let message = format!("{name} is not needed any more: the size was changed");
            return step(Step::Forget, "NotNeeded", message);
        }
        let message =
            format!("etcd is told of member {name}, which gets its vote when it has caught up");
        return step(
            Step::AddMember {
                member: name.clone(),
            },
            "AddingMember",
            message,
        );
    };
    match care::body(view, listed, name, members) {
        care::Body::Missing(next) => return *next,
        care::Body::Lost(why) | care::Body::Dead(why) => {
            return record(view, Action::Remove, name, Some(listed.member.id), why);
        }
        care::Body::Going => {
            return step(
                Step::Await(SOON),
                "AddingMember",
                format!("the pod of {name} is going; it is made again then"),
            );
        }
        care::Body::There => {}
    }
    let answer = view.answers.get(name);
    if let Some(next) = answer.and_then(|_| joined::require_data(view, name)) {
        return next;
    }
    if !listed.member.learner && answer.is_some_and(|answer| answer.leader.is_some()) {
        return step(
            Step::Forget,
            "MemberAdded",
            format!("member {name} has joined and has its vote"),
        );
    }
    if listed.member.learner && answer.is_some() {
        let message = format!("member {name} gets its vote");
        return step(
            Step::PromoteMember {
                member: name.clone(),
                id: listed.member.id,
            },
            "PromotingMember",
            message,
        );
    }
    let pod = view.pods.get(name);
    match pod.and_then(|pod| pod.trouble.as_ref()) {
        Some(trouble) => wait(
            "MemberNotStarting",
            format!(
                "member {name} does not start: {trouble}; it is replaced if it has not within {} s",
                grace(view)
            ),
        ),
        None => wait("AddingMember", format!("member {name} is starting")),
    }
}

fn remove(view: &View<'_>, members: &[Listed<'_>], intent: &Intent) -> Decision {
    let name = &intent.member;
    let listed = members.iter().find(|one| {
        one.is(name)
            || intent
                .id
                .as_ref()
                .is_some_and(|id| *id == hex(one.member.id))
    });
    let Some(listed) = listed else {
        return clear_away(view, name);
    };
    let too_many = members.len() > size(view);
    let healthy = view.healthy(name);
    if healthy && !too_many && !listed.member.learner {
        return step(
            Step::Forget,
            "MemberBack",
            format!("member {name} stays: it is healthy and needed"),
        );
    }
    if healthy && !safe_without(view, members, listed) {
        return step(
            Step::Forget,
            "NoSafeRemoval",
            format!(
                "member {name} stays for now: without it too few of the others would be left that answer"
            ),
        );
    }
    if !safe_without(view, members, listed) {
        return wait(
            "NoSafeRemoval",
            format!(
                "member {name} is to be removed ({}), but without it too few of the others would be left that answer; it is removed when they do",
                intent.reason
            ),
        );
    }
    let leads = view
        .answers
        .values()
        .any(|answer| answer.leader == Some(listed.member.id));
    let heir = members.iter().find(|one| {
        !one.member.learner
            && one.member.id != listed.member.id
            && one.name.as_deref().is_some_and(|name| view.healthy(name))
    });
    if let (true, true, Some(heir)) = (leads, healthy, heir) {
        let message = format!(
            "{} is to lead, because the leader {name} is about to be removed",
            heir.known_as()
        );
        let to = Step::MoveLeader {
            from: name.clone(),
            to: heir.known_as(),
            id: heir.member.id,
        };
        return step(to, "MovingLeader", message);
    }
    step(
        Step::RemoveMember {
            member: name.clone(),
            id: listed.member.id,
        },
        "RemovingMember",
        format!("etcd is told that member {name} is gone: {}", intent.reason),
    )
}

/// The pod and the volume of what is no member any more.
fn clear_away(view: &View<'_>, name: &str) -> Decision {
    if let Some(pod) = view.pods.get(name).filter(|pod| pod.ours) {
        if pod.terminating {
            return step(
                Step::Await(SOON),
                "RemovingMember",
                format!("the pod of {name} is going"),
            );
        }
        let delete = Step::DeletePod {
            member: name.to_owned(),
        };
        return step(
            delete,
            "RemovingMember",
            format!("{name} is no member any more: its pod goes"),
        );
    }
    if let Some(claim) = view.claims.get(name).filter(|claim| claim.ours) {
        if claim.terminating {
            return step(
                Step::Await(SOON),
                "RemovingMember",
                format!("the volume of {name} is going"),
            );
        }
        let delete = Step::DeleteClaim {
            member: name.to_owned(),
        };
        return step(
            delete,
            "RemovingMember",
            format!("{name} is no member any more: its volume goes"),
        );
    }
    step(
        Step::Forget,
        "MemberRemoved",
        format!("member {name} is gone"),
    )
}

/// The pod of a listed member: one that has been started before needs its data.
pub(super) fn existing(members: &[Listed<'_>], listed: &Listed<'_>, name: &str) -> Step {
    let mut peers: Vec<String> = members.iter().filter_map(|one| one.name.clone()).collect();
    peers.sort_unstable();
    let start = if listed.started() {
        Start::Rejoin
    } else {
        Start::Join
    };
    Step::CreatePod {
        member: name.to_owned(),
        start,
        peers,
    }
}

/// How many of the members are to be replaced by others: the seed, once the cluster has grown.
pub(super) fn seeds(view: &View<'_>, members: &[Listed<'_>]) -> usize {
    let is_seed = |one: &&Listed<'_>| one.name.as_deref().is_some_and(|name| view.is_seed(name));
    members.iter().filter(is_seed).count()
}

pub(super) fn size(view: &View<'_>) -> usize {
    usize::try_from(view.spec.size).unwrap_or(0)
}

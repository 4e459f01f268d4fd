//! A cluster with a majority and nothing under way: heal first, then follow the size.

use super::{
    Decision, Listed, SOON, Step, grace,
    intent::{existing, seeds, size},
    joined, record, safe_without, step, stop, wait,
};
use crate::{kind::Action, refusal, view::View};

/// What there is of a member in the cluster.
pub(super) enum Body {
    /// Its pod is there.
    There,
    /// Its pod is being deleted.
    Going,
    /// Something is missing that can be made, by this step.
    Missing(Box<Decision>),
    /// Its data is gone.
    Lost(String),
    /// Its pod is there, but has not worked for too long.
    Dead(String),
}

pub(super) fn next(view: &View<'_>, members: &[Listed<'_>]) -> Decision {
    let mut unwell = None;
    for listed in members {
        let Some(name) = &listed.name else { continue };
        if !listed.started() || listed.member.learner {
            let why = format!("member {name} was added and has not joined yet");
            return record(view, Action::Add, name, Some(listed.member.id), why);
        }
        let why = match body(view, listed, name, members) {
            Body::There | Body::Going if view.healthy(name) => {
                match joined::require_data(view, name) {
                    Some(next) if matches!(next.step, Step::RequireData { .. }) => return next,
                    Some(next) => {
                        unwell.get_or_insert(next);
                    }
                    None => {}
                }
                continue;
            }
            Body::There => {
                let pod = view.pods.get(name);
                let trouble = pod.and_then(|pod| pod.trouble.clone());
                let trouble = trouble.unwrap_or_else(|| "it does not answer".to_owned());
                let message = format!(
                    "member {name} is unwell: {trouble}; it is replaced if it is not back within {} s",
                    grace(view)
                );
                unwell.get_or_insert(patience(view, name, "MemberUnready", message));
                continue;
            }
            Body::Going => {
                let message = format!("the pod of member {name} is being deleted");
                unwell.get_or_insert(step(Step::Await(SOON), "MemberUnready", message));
                continue;
            }
            Body::Missing(next) => return *next,
            Body::Lost(why) | Body::Dead(why) => why,
        };
        if safe_without(view, members, listed) {
            return record(view, Action::Remove, name, Some(listed.member.id), why);
        }
        let message = format!(
            "{why}; it is not removed now, because too few of the others answer: it is when they do"
        );
        unwell.get_or_insert(wait("NoSafeRemoval", message));
    }
    if let Some(stray) = stray(view, members) {
        return stray;
    }
    if let Some(unwell) = unwell {
        return unwell;
    }
    if let Some(foreign) = members.iter().find(|one| one.name.is_none()) {
        return stop(
            "UnknownMember",
            format!(
                "etcd lists member {} at {}, which this operator did not add; the size is not followed until it is removed (etcdctl member remove {0})",
                foreign.known_as(),
                foreign.member.peer_urls.join(", ")
            ),
        );
    }
    follow_size(view, members)
}

/// The size is followed only by a cluster that is well.
fn follow_size(view: &View<'_>, members: &[Listed<'_>]) -> Decision {
    let size = size(view);
    let seeds = seeds(view, members);
    if members.len() < size + seeds {
        let (_, name) = view.next_member();
        let why = format!("the cluster has {} of {size} members", members.len());
        return record(view, Action::Add, &name, None, why);
    }
    let seed = members
        .iter()
        .find(|one| view.recorded.seed.as_ref().is_some_and(|seed| one.is(seed)));
    if let Some(seed) = seed.filter(|seed| safe_without(view, members, seed)) {
        let why = format!("{} other members have the backup's data", members.len() - 1);
        return record(
            view,
            Action::Remove,
            &seed.known_as(),
            Some(seed.member.id),
            why,
        );
    }
    if let (true, Some(last)) = (members.len() > size + seeds, members.last()) {
        let why = format!(
            "the cluster has {} members, and {size} are asked for",
            members.len()
        );
        if !safe_without(view, members, last) {
            return wait(
                "NoSafeRemoval",
                format!("{why}; none is removed while too few answer"),
            );
        }
        return record(
            view,
            Action::Remove,
            &last.known_as(),
            Some(last.member.id),
            why,
        );
    }
    if let Some(unready) = members
        .iter()
        .filter_map(|one| one.name.as_ref())
        .find(|name| !view.pods.get(*name).is_some_and(|pod| pod.ready))
    {
        return wait(
            "MemberStarting",
            format!("member {unready} answers, and its pod is not ready yet"),
        );
    }
    match refusal::of(view) {
        // What runs is cared for as it is.
        Some(refusal) => refusal,
        None => step(
            Step::Rest,
            "AsExpected",
            format!("{} of {size} members are well", members.len()),
        ),
    }
}

/// A pod or a volume of ours that belongs to no member.
fn stray(view: &View<'_>, members: &[Listed<'_>]) -> Option<Decision> {
    let pods = view
        .pods
        .iter()
        .filter(|(_, pod)| pod.ours)
        .map(|(name, _)| name);
    let claims = view
        .claims
        .iter()
        .filter(|(_, claim)| claim.ours)
        .map(|(name, _)| name);
    let name = pods
        .chain(claims)
        .find(|name| !members.iter().any(|one| one.is(name)))?;
    // Etcd ends when it is removed. One that goes on and has a leader belongs to some other list.
    let alive = view
        .answers
        .get(name)
        .is_some_and(|answer| answer.leader.is_some());
    if alive {
        let message = format!(
            "{name} is no member, and yet it follows a leader; nothing is changed until a person has looked: compare etcdctl member list of each pod"
        );
        return Some(stop("TwoClusters", message));
    }
    let why = format!("{name} is no member: what is left of it goes");
    Some(record(view, Action::Remove, name, None, why))
}

/// What there is of a member.
pub(super) fn body(
    view: &View<'_>,
    listed: &Listed<'_>,
    name: &str,
    members: &[Listed<'_>],
) -> Body {
    let kept = view.data(name).is_some();
    let asked = view.spec.storage.is_some();
    let reason = if listed.started() {
        "RecoveringMember"
    } else {
        "AddingMember"
    };
    let Some(pod) = view.pods.get(name) else {
        return match (listed.started(), kept) {
            (_, true) => {
                let message = format!("member {name} gets a pod on its volume");
                Body::Missing(Box::new(step(
                    existing(members, listed, name),
                    reason,
                    message,
                )))
            }
            (false, false) if asked && view.claims.contains_key(name) => Body::Going,
            (false, false) if asked => {
                let message = format!("member {name} gets its volume");
                Body::Missing(Box::new(step(
                    Step::CreateClaim {
                        member: name.to_owned(),
                    },
                    reason,
                    message,
                )))
            }
            (false, false) => {
                let message = format!("member {name} gets its pod");
                Body::Missing(Box::new(step(
                    existing(members, listed, name),
                    reason,
                    message,
                )))
            }
            (true, false) => Body::Lost(format!(
                "member {name} has lost its pod and its data; another takes its place"
            )),
        };
    };
    if view.healthy(name) {
        return Body::There;
    }
    let silent = view.now.duration_since(pod.since).as_secs();
    let overdue = silent >= grace(view);
    if pod.terminating {
        return if overdue && !pod.ready {
            Body::Dead(format!(
                "the pod of member {name} has been going for {silent} s; another takes its place"
            ))
        } else {
            Body::Going
        };
    }
    if pod.ended {
        return if kept || !listed.started() {
            let message =
                format!("the pod of member {name} has ended; it is made again on its volume");
            Body::Missing(Box::new(step(
                Step::DeletePod {
                    member: name.to_owned(),
                },
                reason,
                message,
            )))
        } else {
            Body::Lost(format!(
                "the pod of member {name} has ended and its data with it; another takes its place"
            ))
        };
    }
    if view.lost_data(name) {
        return Body::Lost(format!(
            "the data folder of member {name} is empty, and it is not started without its data; another takes its place"
        ));
    }
    if pod.ready {
        return Body::There;
    }
    if listed.started() && !listed.member.learner && pod.crashes() {
        let trouble = pod.trouble.clone().unwrap_or_default();
        return Body::Dead(format!(
            "etcd of member {name} has failed {} times ({trouble}); another takes its place",
            pod.restarts
        ));
    }
    if overdue {
        return Body::Dead(format!(
            "member {name} has not worked for {silent} s; another takes its place"
        ));
    }
    Body::There
}

/// Waiting for a member that may come back: its time is known.
fn patience(view: &View<'_>, name: &str, reason: &'static str, message: String) -> Decision {
    let Some(pod) = view.pods.get(name).filter(|pod| !pod.ready) else {
        return wait(reason, message);
    };
    let silent = view.now.duration_since(pod.since).as_secs();
    let left = u64::try_from(grace(view) - silent).unwrap_or(0).max(1);
    step(
        Step::Await(std::time::Duration::from_secs(left).min(super::LATER)),
        reason,
        message,
    )
}

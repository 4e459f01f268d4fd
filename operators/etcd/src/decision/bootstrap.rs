//! A cluster that has not begun: one member starts it, as `new`.
//!
//! The member is recorded first. Until etcd has told the cluster's id, clients are not let in (the
//! client Service selects nothing before that), so a first member that is lost before holds nothing of anybody.

use super::{Decision, LATER, SOON, Start, Step, record, step, stop, wait};
use crate::{kind::Action, view::View};

pub(super) fn next(view: &View<'_>) -> Decision {
    let Some(intent) = &view.recorded.intent else {
        return begin(view);
    };
    let member = &intent.member;
    let pod = view.pods.get(member);
    if let Some(pod) = pod {
        if !pod.ours {
            return taken(member);
        }
        if pod.terminating {
            return step(
                Step::Await(SOON),
                "Bootstrapping",
                format!("the pod of the first member {member} is going; it is made again then"),
            );
        }
        if pod.ended {
            let message =
                format!("the first member {member} has ended before it began; it is made again");
            return step(
                Step::DeletePod {
                    member: member.clone(),
                },
                "Bootstrapping",
                message,
            );
        }
        let mut message = format!("the first member {member} is starting");
        if let Some(trouble) = &pod.trouble {
            message = format!("{message}: {trouble}; it is tried again until it starts");
            return wait("MemberNotStarting", message);
        }
        if let Some(answer) = view.answers.get(member)
            && answer.leader.is_some()
        {
            return step(Step::Await(SOON), "Bootstrapping", message);
        }
        return wait(
            "Bootstrapping",
            format!("{message}; looked at again in {LATER:?} at the latest"),
        );
    }
    if view.spec.storage.is_some() {
        match view.claims.get(member) {
            Some(claim) if !claim.ours => return taken(member),
            Some(claim) if claim.terminating => {
                let message = format!(
                    "the volume of the first member {member} is going; it is made again then"
                );
                return step(Step::Await(SOON), "Bootstrapping", message);
            }
            Some(_) => {}
            None => {
                let message = format!("the first member {member} gets its volume");
                return step(
                    Step::CreateClaim {
                        member: member.clone(),
                    },
                    "Bootstrapping",
                    message,
                );
            }
        }
    }
    let create = Step::CreatePod {
        member: member.clone(),
        start: Start::New,
        peers: vec![member.clone()],
    };
    step(
        create,
        "Bootstrapping",
        format!("the first member {member} is started as a new cluster"),
    )
}

/// Nothing is recorded: a cluster begins only where nothing of one is left.
fn begin(view: &View<'_>) -> Decision {
    let pods = view
        .pods
        .iter()
        .map(|(name, pod)| (format!("pod {name}"), pod.terminating));
    let claims = view
        .claims
        .iter()
        .map(|(name, claim)| (format!("volume {name}"), claim.terminating));
    let left: Vec<(String, bool)> = pods.chain(claims).collect();
    if left.is_empty() {
        let (_, member) = view.next_member();
        let why = format!("member {member} is to begin the cluster");
        return record(view, Action::Bootstrap, &member, None, why);
    }
    let names: Vec<&str> = left.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    if left.iter().all(|(_, going)| *going) {
        return wait(
            "LeftoversGoing",
            format!(
                "what an earlier cluster of this name left is going: {names}; the cluster begins then"
            ),
        );
    }
    if view.pods.values().any(|pod| pod.ours && !pod.ended) {
        return wait(
            "NoAnswer",
            format!(
                "there are members of which nothing is recorded, and none of them answers: {names}; they are asked again"
            ),
        );
    }
    stop(
        "DataExists",
        format!(
            "an earlier cluster of this name left {names}, and no cluster is begun over its data; delete them, or the EtcdCluster, if they are not needed"
        ),
    )
}

fn taken(member: &str) -> Decision {
    stop(
        "NotOurs",
        format!(
            "a pod or volume named {member} belongs to somebody else; delete it, and the operator goes on"
        ),
    )
}

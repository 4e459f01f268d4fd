//! A cluster that has not begun: one member starts it, as `new`.
//!
//! The member is recorded first. Until the cluster's id is recorded, no other member is added and
//! clients are not let in (the client Service selects nothing before that), so a first member that
//! is lost before holds nothing of anybody. The id is recorded once the member's pod cannot begin a
//! cluster again.

use super::{Decision, SOON, Start, Step, grace, record, step, stop, wait};
use crate::{
    kind::Action,
    member::CLIENT_PORT,
    view::{PodView, View},
};

pub(super) fn next(view: &View<'_>) -> Decision {
    let Some(intent) = &view.recorded.intent else {
        return begin(view);
    };
    let member = &intent.member;
    if let Some(pod) = view.pods.get(member) {
        return started(view, member, pod);
    }
    if view.is_seed(member) {
        return seed(view, member);
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

/// A seed has its data from the backup of the plan.
fn seed(view: &View<'_>, member: &str) -> Decision {
    let plan = view.plan.as_ref();
    match plan.filter(|plan| plan.incarnation == view.recorded.incarnation) {
        Some(plan) => step(
            Step::CreateSeed(Box::new(plan.clone())),
            "Restoring",
            format!("the seed {member} is made from {}", plan.source.key),
        ),
        None => stop(
            "RestorePlanMissing",
            format!(
                "the cluster is to begin with {member}, and the annotation that says from which backup is gone; make another EtcdRestore"
            ),
        ),
    }
}

/// The first member has a pod: it is waited for, and made again where that helps.
fn started(view: &View<'_>, member: &str, pod: &PodView) -> Decision {
    if !pod.ours {
        return taken(member);
    }
    if pod.terminating {
        let message =
            format!("the pod of the first member {member} is going; it is made again then");
        return step(Step::Await(SOON), "Bootstrapping", message);
    }
    let claim = view.claims.get(member);
    let overdue = view.now.duration_since(pod.since).as_secs() >= grace(view);
    let answers = view.answers.contains_key(member);
    let silent = overdue && !answers && !pod.ready;
    let again = if pod.ended {
        Some("has ended before it began")
    } else if pod.image != view.image() {
        Some("was made with another image")
    } else if view.spec.storage.is_some() && !view.is_seed(member) && view.data(member).is_none() {
        Some("has lost its volume")
    } else if view.lost_data(member) {
        Some("has lost its data before it began")
    } else if silent && pod.restarts > 0 && claim.is_some() {
        // What is on the volume is nobody's yet, and may be what keeps it from starting.
        let message = format!("the first member {member} does not start; it gets another volume");
        let delete = Step::DeleteClaim {
            member: member.to_owned(),
        };
        return step(delete, "Bootstrapping", message);
    } else if silent && (pod.restarts > 0 || pod.trouble.is_none()) {
        Some("has not begun for too long")
    } else {
        None
    };
    if let Some(why) = again {
        let delete = Step::DeletePod {
            member: member.to_owned(),
        };
        return step(
            delete,
            "Bootstrapping",
            format!("the first member {member} {why}; it is made again"),
        );
    }
    let message = format!("the first member {member} is starting");
    match &pod.trouble {
        Some(trouble) => wait(
            "MemberNotStarting",
            format!(
                "{message}: {trouble}; it is tried again, and made again when spec.version or spec.repository is changed"
            ),
        ),
        None if answers => step(Step::Await(SOON), "Bootstrapping", message),
        None if pod.ready => wait(
            "MemberUnreachable",
            format!(
                "the first member {member} is ready, but the operator cannot reach it ({}); allow the operator to connect to port {CLIENT_PORT} of the pods of the cluster",
                view.silence
            ),
        ),
        None => wait("Bootstrapping", message),
    }
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

//! A cluster of which no majority answers.
//!
//! Nothing about the membership can be changed, and nothing new is started. Members that were
//! recorded get their pods back where their volumes are. Where the data of a majority is gone for
//! good there is nothing left to heal: a person decides.

use super::{Decision, LATER, SOON, Start, Step, grace, quorum, step, stop, wait};
use crate::{
    kind::{Action, Intent, MemberRecord},
    view::{PodView, View},
};

pub(super) fn next(view: &View<'_>) -> Decision {
    let roster = &view.recorded.roster;
    for MemberRecord { name, .. } in roster {
        let kept = view.data(name).is_some();
        match view.pods.get(name) {
            None if kept => {
                let message = format!("member {name} gets its pod back, on its own volume");
                return step(on_its_volume(name), "RecoveringMember", message);
            }
            Some(pod) if kept && pod.ours && pod.ended && !pod.terminating => {
                let message =
                    format!("the pod of member {name} has ended; it is made again on its volume");
                return step(
                    Step::DeletePod {
                        member: name.clone(),
                    },
                    "RecoveringMember",
                    message,
                );
            }
            Some(pod) if kept && hangs(view, name, pod) => {
                let message = format!(
                    "member {name} has not answered for {} s; its pod is made again on its volume",
                    grace(view)
                );
                let delete = Step::DeletePod {
                    member: name.clone(),
                };
                return step(delete, "RecoveringMember", message);
            }
            _ => {}
        }
    }
    let voters: Vec<&str> = roster
        .iter()
        .filter(|one| !one.learner)
        .map(|one| one.name.as_str())
        .collect();
    let readings = readings(view, &voters);
    let kept = |voters: &[&str]| voters.iter().filter(|name| has_data(view, name)).count();
    let lost = |voters: &Vec<&str>| kept(voters) < quorum(voters.len());
    let (kept, all) = (kept(&voters), voters.len());
    if readings.iter().all(lost) {
        return stop(
            "QuorumLost",
            format!(
                "the data of {} of {all} members is gone, and {} are needed for a majority: the cluster cannot come back by itself, and no empty one is started in its place; restore it from a backup into a new EtcdCluster, then delete this one",
                all - kept,
                quorum(all)
            ),
        );
    }
    let troubles = voters.iter().filter_map(|name| {
        let trouble = view.pods.get(*name)?.trouble.as_ref()?;
        Some(format!("{name}: {trouble}"))
    });
    let mut reasons: Vec<String> = troubles.collect();
    reasons.push(view.silence.clone());
    let message = format!(
        "no majority of the {all} members answers ({}); the data of {kept} of them is still there, and they are asked again every {LATER:?}",
        reasons.join("; ")
    );
    let going = voters
        .iter()
        .any(|name| view.pods.get(*name).is_some_and(|pod| pod.terminating));
    if going {
        return step(Step::Await(SOON), "NoQuorum", message);
    }
    wait("NoQuorum", message)
}

/// Who may have a vote: as recorded, or as it is if what was about to be done was done after that.
fn readings<'a>(view: &'a View<'_>, voters: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut readings = vec![voters.to_vec()];
    if let Some(Intent { action, member, .. }) = &view.recorded.intent {
        let mut other = voters.to_vec();
        other.retain(|name| name != member);
        if *action == Action::Add {
            other.push(member);
        }
        readings.push(other);
    }
    readings
}

/// Whether a pod is there in vain. One that answers only misses the others; one that crashes is
/// started again anyway.
fn hangs(view: &View<'_>, name: &str, pod: &PodView) -> bool {
    let silent = view.now.duration_since(pod.since).as_secs() >= grace(view);
    let idle = pod.ours && !pod.ready && !pod.terminating && !pod.crashes();
    idle && silent && !view.answers.contains_key(name) && !view.lost_data(name)
}

/// Whether the data of a member may still be there: on its volume, or in a pod that has not ended.
fn has_data(view: &View<'_>, name: &str) -> bool {
    let pod = view.pods.get(name);
    if view.lost_data(name) {
        return false;
    }
    view.data(name).is_some() || pod.is_some_and(|pod| pod.ours && !pod.ended && !pod.terminating)
}

fn on_its_volume(name: &str) -> Step {
    Step::CreatePod {
        member: name.to_owned(),
        start: Start::Rejoin,
        peers: Vec::new(),
    }
}

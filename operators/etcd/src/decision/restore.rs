//! A cluster that is to begin again from a backup.
//!
//! Nothing is cared for any more. Its pods are taken away, and its volumes stay. When no pod is
//! left, the new incarnation is recorded: another token, and no members. From then on it begins as
//! a new cluster does, with a seed as its first member.

use super::{Decision, SOON, Step, step};
use crate::{restore::Plan, view::View};

pub(super) fn next(view: &View<'_>, plan: &Plan) -> Decision {
    let ours = view.pods.iter().filter(|(_, pod)| pod.ours);
    let reason = "Restoring";
    if let Some((name, _)) = ours.clone().find(|(_, pod)| !pod.terminating) {
        let delete = Step::DeletePod {
            member: name.clone(),
        };
        let message = format!("member {name} goes: the cluster begins again from a backup");
        return step(delete, reason, message);
    }
    if let Some((name, _)) = ours.clone().next() {
        let message = format!("the pod of member {name} is going");
        return step(Step::Await(SOON), reason, message);
    }
    let message = format!(
        "no member is left of before; incarnation {} begins from {}",
        plan.incarnation, plan.source.key
    );
    step(Step::Reincarnate(Box::new(plan.clone())), reason, message)
}

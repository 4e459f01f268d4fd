//! Two clusters where one should be.
//!
//! Members that do not belong together, a first member that found the data of another cluster on its
//! volume, or a leader whose log is shorter than it once was, hold different data. Which of them is
//! right is not for a program to say.

use super::{Decision, stop};
use crate::{
    kind::{Action, Intent},
    member::hex,
    view::View,
};

/// The alarm, if there is one.
pub(super) fn raised(view: &View<'_>) -> Option<Decision> {
    let next = "nothing is changed until a person has looked: delete the pod (and claim) of the member that does not belong here";
    let mut known = expected(view);
    let longest = view.answers.values().map(|answer| answer.raft_index).max();
    let longest = longest.map(|longest| i64::try_from(longest).unwrap_or(i64::MAX));
    for (member, answer) in &view.answers {
        let id = hex(answer.cluster_id);
        match &known {
            Some(known) if *known != id => {
                let message = format!(
                    "member {member} belongs to cluster {id}, not to cluster {known}; {next}"
                );
                return Some(stop("TwoClusters", message));
            }
            _ => known = Some(id),
        }
        let leads = answer.leader == Some(answer.member_id);
        // Right after an election the leader itself may know of fewer than others do.
        if let Some(longest) =
            longest.filter(|longest| leads && *longest < view.recorded.raft_index)
        {
            let message = format!(
                "member {member} leads, and no log has more than {longest} entries, where each had {} before: \
                 its data was lost or replaced by older data; {next}",
                view.recorded.raft_index
            );
            return Some(stop("TwoClusters", message));
        }
    }
    let told = view.membership.as_ref().map(|told| hex(told.cluster_id));
    match (told, known) {
        (Some(told), Some(known)) if told != known => {
            let message = format!("etcd tells of cluster {told}, not of cluster {known}; {next}");
            Some(stop("TwoClusters", message))
        }
        _ => None,
    }
}

/// The cluster that members have to belong to, as far as it is known.
fn expected(view: &View<'_>) -> Option<String> {
    let begins = |intent: &&Intent| intent.action == Action::Bootstrap;
    let first = view.recorded.intent.as_ref().filter(begins);
    let recorded = view.recorded.cluster_id.clone();
    recorded.or_else(|| Some(hex(view.names.cluster_id(&first?.member))))
}

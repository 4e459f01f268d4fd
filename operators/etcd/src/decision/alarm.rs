//! Two clusters where one should be.
//!
//! Members that do not belong together, or a leader whose log is shorter than it once was (its data
//! folder was emptied, and it has begun anew under the old ids), hold different data. Which of them
//! is right is not for a program to say.

use super::{Decision, stop};
use crate::{member::hex, view::View};

/// The alarm, if there is one.
pub(super) fn raised(view: &View<'_>) -> Option<Decision> {
    let next = "nothing is changed until a person has looked: delete the pod (and claim) of the member that does not belong here";
    let mut known = view.recorded.cluster_id.clone();
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
        let length = i64::try_from(answer.raft_index).unwrap_or(i64::MAX);
        if leads && length < view.recorded.raft_index {
            let message = format!(
                "member {member} leads with {length} entries in its log, and there were {} before: \
                 it has lost its data and begun anew; {next}",
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

//! The kinds of apps.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;
pub(crate) mod validation;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "controllerrevisions" => &controller_revision::ControllerRevision,
        "daemonsets" => &daemon_set::DaemonSet,
        "deployments" => &deployment::Deployment,
        "replicasets" => &replica_set::ReplicaSet,
        "statefulsets" => &stateful_set::StatefulSet,
        _ => return None,
    })
}

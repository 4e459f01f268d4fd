//! What a cluster consists of in Kubernetes: Services, a budget, and per member a pod and a volume.
//!
//! Each is a pure function of the cluster.

mod budget;
mod claim;
mod pod;
mod seed;
mod service;

use std::collections::BTreeMap;

use crate::member::Names;

pub(crate) use self::{
    budget::budget,
    claim::claim,
    pod::{INITIAL_CLUSTER, pod, require_data},
    seed::seed,
    service::{client_name, clients, peers},
};

/// The label whose value is the cluster's name.
pub const CLUSTER: &str = "etcd_cluster";
/// The label whose value is the uid of the cluster's object: a cluster that had the same name before
/// has another.
pub const CLUSTER_UID: &str = "etcd_cluster_uid";
/// The label whose value is the member's name.
pub const MEMBER: &str = "etcd_node";

/// The labels of everything that belongs to clusters of this name.
pub(crate) fn labels(cluster: &str) -> BTreeMap<String, String> {
    windlass::labels([("app", "etcd"), (CLUSTER, cluster)])
}

/// What selects the members of a cluster, and those of none that had the same name before.
fn selector(names: Names<'_>) -> BTreeMap<String, String> {
    let mut labels = labels(names.cluster);
    labels.insert(CLUSTER_UID.to_owned(), names.uid.to_owned());
    labels
}

/// The labels of what belongs to one member.
fn labels_of_member(names: Names<'_>, member: &str) -> BTreeMap<String, String> {
    let mut labels = selector(names);
    labels.insert(MEMBER.to_owned(), member.to_owned());
    labels
}

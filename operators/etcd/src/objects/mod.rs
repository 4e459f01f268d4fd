//! What a cluster consists of in Kubernetes: Services, a budget, and per member a pod and a volume.
//!
//! Each is a pure function of the cluster.

mod budget;
mod claim;
mod pod;
mod service;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(crate) use self::{
    budget::budget,
    claim::claim,
    pod::pod,
    service::{client_name, clients, peers},
};

/// The label whose value is the cluster's name.
pub const CLUSTER: &str = "etcd_cluster";
/// The label whose value is the member's name.
pub const MEMBER: &str = "etcd_node";

/// The labels of everything that belongs to a cluster, and of nothing else.
pub(crate) fn labels(cluster: &str) -> BTreeMap<String, String> {
    [("app", "etcd"), (CLUSTER, cluster)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The labels of what belongs to one member.
fn labels_of_member(cluster: &str, member: &str) -> BTreeMap<String, String> {
    let mut labels = labels(cluster);
    labels.insert(MEMBER.to_owned(), member.to_owned());
    labels
}

fn metadata(cluster: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels(cluster)),
        ..ObjectMeta::default()
    }
}

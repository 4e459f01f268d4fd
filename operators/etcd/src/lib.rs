//! Builds, scales and heals etcd clusters from `EtcdCluster` custom resources.
//!
//! | step | where |
//! | --- | --- |
//! | the kind: what is asked for, what there is, what is under way | [`kind`] |
//! | what is asked of etcd | [`etcd`] |
//! | names and URLs of members | [`member`] |
//! | what is known when the next step is decided | [`view`] |
//! | which one step is next, and why | [`decision`], [`refusal`] |
//! | what a cluster consists of in Kubernetes | [`objects`] |
//! | what a person is told | [`status`], [`told`] |
//! | the shell that looks, decides, writes down and acts | [`reconciler`] |
//!
//! Everything but the last is pure functions; etcd itself is behind a trait, so that tests can put a
//! simulation in its place.

pub mod decision;
pub mod etcd;
mod kind;
pub mod member;
mod objects;
mod reconciler;
mod refusal;
mod review;
mod status;
mod told;
pub mod view;

use std::sync::Arc;

use windlass::{Controller, Operator, Webhook};

use self::{etcd::Etcd, reconciler::Caretaker};
pub use self::{
    kind::{
        Action, EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, Intent, MemberRecord,
        MembersStatus, PodPolicy, Storage,
    },
    objects::{CLUSTER, CLUSTER_UID, MEMBER},
};

/// The operator's name.
const NAME: &str = "etcd-operator";

/// How many clusters are looked at at once. Most of the time of a look is spent waiting for etcd, so
/// a cluster that is slow to answer takes nothing from another.
const AT_ONCE: usize = 256;

/// The operator.
pub fn operator() -> Operator {
    operator_with(Arc::new(etcd::EtcdClient::default()))
}

/// The operator, with another way to etcd.
pub fn operator_with(etcd: Arc<dyn Etcd>) -> Operator {
    Operator::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<EtcdCluster>()
                .concurrency(AT_ONCE)
                .reconciler(move |declare| Caretaker::declare(declare, Arc::clone(&etcd))),
        )
        .webhook(Webhook::of::<EtcdCluster>().validating(review::judge))
        .sample(&EtcdCluster::new(
            "example-etcd-cluster",
            EtcdClusterSpec {
                size: 3,
                version: kind::VERSION.to_owned(),
                ..EtcdClusterSpec::default()
            },
        ))
}

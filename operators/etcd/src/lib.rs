//! Builds, scales and heals etcd clusters from `EtcdCluster` custom resources.

pub mod etcd;
mod kind;

use windlass::{Controller, Operator};

pub use self::kind::{
    Action, EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, Intent, MemberRecord, MembersStatus,
    PodPolicy, Storage,
};

/// The operator.
pub fn operator() -> Operator {
    Operator::new("etcd-operator").controller(Controller::of::<EtcdCluster>().status(
        |_: &EtcdCluster, _: &windlass::Observed| EtcdClusterStatus::default(),
    ))
}

//! The controllers a cluster needs, written as one windlass operator.
//!
//! They behave as Kubernetes' own do, and are ordinary users of the framework: one cache, one
//! identity, declared permissions. Each folder is one controller: pure functions decide, and the
//! reconciler in its `mod.rs` reads and writes.
//!
//! | controller | what it does |
//! | --- | --- |
//! | `deployment` | rolls pods from one template to the next by way of ReplicaSets |
//! | `replicaset` | keeps as many pods as asked for |
//! | `statefulset` | keeps pods with names and storage of their own, in order |
//! | `job` | runs pods to their end |
//! | `cronjob` | starts Jobs when a schedule says so |
//! | `daemonset` | keeps a pod on every node that wants one |
//! | `disruption` | says how many pods of a budget may go |
//! | `quota` | says how much of a quota is used |
//! | `endpoints` | says which pods stand behind a Service |
//! | `garbage` | deletes what nobody owns any more |
//! | `namespace` | empties namespaces that are going |
//! | `serviceaccount` | gives every namespace its default account |
//! | `rootca` | gives every namespace the API server's certificate |
//! | `node` | marks nodes that are not well, and takes pods off them |
//! | `scheduler` | binds pods to nodes |
//! | `volume` | finds or makes volumes for claims, and takes them back |
//! | `protection` | keeps claims and volumes that are in use |
#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "json! makes values")
)]

mod affinity;
mod cause;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod garbage;
mod history;
mod job;
mod namespace;
mod node;
mod owner;
mod pending;
mod pod;
mod protection;
mod quantity;
mod quota;
mod replicaset;
mod resource;
mod rootca;
mod scheduler;
mod serviceaccount;
mod statefulset;
mod toleration;
mod volume;

use windlass::Operator;

pub use self::volume::LocalVolumes;

/// What the workload controllers have to be told about their cluster.
#[derive(Clone, Debug, Default)]
pub struct WorkloadsConfig {
    /// The certificate (PEM) by which pods know the API server; it is published in every namespace
    /// as the ConfigMap `kube-root-ca.crt`. Nothing is published without one.
    pub root_ca: Option<String>,
    /// Where volumes are made for claims that name no class. Without, nobody makes any.
    pub local_volumes: Option<LocalVolumes>,
}

/// What removes objects alone: the garbage collector, and the controller that empties namespaces.
pub fn removal_operator() -> Operator {
    let operator = Operator::new("windlass-removal")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(namespace::controller());
    garbage::add_to(operator)
}

/// The workload controllers, the garbage collector and the scheduler, as one operator.
pub fn operator(config: WorkloadsConfig) -> Operator {
    let operator = Operator::new("windlass-workloads")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(deployment::controller())
        .controller(replicaset::controller())
        .controller(statefulset::controller())
        .controller(daemonset::controller())
        .controller(cronjob::controller())
        .controller(quota::controller())
        .controller(namespace::controller())
        .controller(serviceaccount::controller())
        .controller(scheduler::controller());
    let operator = match config.root_ca {
        Some(root_ca) => operator.controller(rootca::controller(root_ca)),
        None => operator,
    };
    let operator = volume::add_to(operator, config.local_volumes);
    [
        job::add_to,
        node::add_to,
        disruption::add_to,
        endpoints::add_to,
        protection::add_to,
        garbage::add_to,
    ]
    .into_iter()
    .fold(operator, |operator, add_to| add_to(operator))
}

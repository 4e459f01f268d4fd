//! A cluster on this machine: API server, workload controllers and a node, put together.
//!
//! [`Cluster`] is the real thing behind `windlass up`: HTTPS on a port, pods as processes.
//! [`TestCluster`] is the same API server, the same controllers and the same operators in one
//! process, under virtual time, with a simulated node: a test of hour-long behaviour takes
//! milliseconds, and a failure replays from its seed.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use windlass::{Controller, Operator};
//! use windlass_cluster::{TestCluster, hours};
//!
//! /// Every secret has a map of its name.
//! fn operator() -> Operator {
//!     let map = |secret: &Secret| {
//!         let mut map = ConfigMap::default();
//!         map.metadata.name.clone_from(&secret.metadata.name);
//!         map
//!     };
//!     Operator::new("maps").controller(Controller::of_existing::<Secret>().dependent(map))
//! }
//!
//! #[windlass_cluster::test]
//! async fn a_map_comes_back(cluster: TestCluster) {
//!     cluster.start(operator()).await;
//!     let mut secret = Secret::default();
//!     secret.metadata.name = Some("one".to_owned());
//!     cluster.create(secret).await;
//!     cluster.settle().await; // until nobody has anything left to do: no polling
//!     cluster.delete::<ConfigMap>("one").await;
//!     cluster.advance(hours(1)).await; // milliseconds
//!     assert!(cluster.find::<ConfigMap>("one").await.is_some());
//! }
//! # // The attribute makes a test of it; this runs it here.
//! # windlass_cluster::private::run(|cluster| async move {
//! #     cluster.start(operator()).await;
//! #     let mut secret = Secret::default();
//! #     secret.metadata.name = Some("one".to_owned());
//! #     cluster.create(secret).await;
//! #     cluster.settle().await;
//! #     assert!(cluster.find::<ConfigMap>("one").await.is_some());
//! # });
//! ```
//!
//! Tests allocate as much as operators do: with [`windlass::run::Allocator`] in the test program a fifth
//! more of them run in a second.
//!
//! Both give out a plain `kube::Client`, so operators written without the framework can use them
//! too. Neither is a Kubernetes for production.

mod bare;
mod cluster;
mod credentials;
mod folder;
mod kubeconfig;
mod node;
mod operators;
mod runtime;
mod testing;
mod webhooks;

pub use bare::{BareServer, BareServerConfig, BareServerError};
pub use cluster::{Cluster, ClusterConfig, ClusterError, NodeSettings, clean_up};
pub use folder::{FolderError, FolderLock};
pub use runtime::{Choice, Runtime, RuntimeError};
pub use testing::{
    Exploration, Failure, Fate, Finding, Outside, OutsideCall, Replica, Report, Request, Stage,
    TestCluster, Wrong, answered, hours, manifests_are_current, minutes, seconds,
};
pub use windlass_apiserver::http::Verb;
pub use windlass_apiserver::{ServiceRange, kubernetes_version};
pub use windlass_cluster_macros::test;
pub use windlass_explore::race::Race;
pub use windlass_node::image::{Addition, ImageTable, Program};
pub use windlass_node::shim;
pub use windlass_node::simulated::{
    Delays, SimulatedNode, SimulatedNodeConfig, operator as simulated_node,
};

/// What the test attribute's expansion calls.
#[doc(hidden)]
pub mod private {
    pub use crate::testing::{disturb, play, run};
}

/// Makes each scenario, an `async fn(Stage)`, two tests of its own name: played once, and disturbed
/// in every way there is. Those that need no running pod can be played on a real control plane too.
///
/// ```text
/// windlass_cluster::scenarios! {
///     operator,
///     anywhere: [a_negative_size_is_refused],
///     with_pods: [created_gives_as_many_nodes_as_asked_for],
/// }
/// ```
#[macro_export]
macro_rules! scenarios {
    (
        $operator:path,
        anywhere: [$($anywhere:ident),* $(,)?],
        with_pods: [$($with_pods:ident),* $(,)?] $(,)?
    ) => {
        mod undisturbed {
            $(#[test]
            fn $anywhere() {
                $crate::private::play($operator, false, super::$anywhere);
            })*
            $(#[test]
            fn $with_pods() {
                $crate::private::play($operator, true, super::$with_pods);
            })*
        }
        mod disturbed {
            $(#[test]
            fn $anywhere() {
                $crate::private::disturb($operator, super::$anywhere);
            })*
            $(#[test]
            fn $with_pods() {
                $crate::private::disturb($operator, super::$with_pods);
            })*
        }
    };
}

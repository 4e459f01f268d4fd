//! The cluster's name server: Services and pods by the names Kubernetes gives them.
//!
//! [`zone`] says what a name stands for, [`server`] speaks the protocol (hickory's server with a
//! handler of our own, since what is served changes with every endpoint). Nothing is forwarded:
//! every other name does not exist.

mod server;
pub mod zone;

pub(crate) use server::address;
pub use server::serve;

/// The domain of the cluster.
pub const CLUSTER_DOMAIN: &str = "cluster.local";

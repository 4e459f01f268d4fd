//! An embedded Kubernetes API server.
//!
//! It serves what operators and `kubectl` touch of kube-apiserver: built-in kinds and custom
//! resources, with watches, server-side apply, finalizers and discovery, over TLS on a port or in
//! process as a [`tower::Service`]. It is for developing and testing; it is not a second Kubernetes
//! for production.
//!
//! How a request goes through the files: [`http`] reads path, query and caller; `verbs` does what
//! is asked, one file per verb; `decode` reads the object, and `verbs::pipeline` lists the stages that
//! every write passes, in which `apply`, `admission`, `webhook`, `defaults`, `validation` and `policy`
//! have their parts; [`windlass_store`] keeps it and wakes the watches. What differs between kinds is
//! in the table of `registry::facts` and, a file each, in `kinds`, nowhere else.

mod admission;
mod apply;
mod auth;
mod crd;
mod decode;
mod defaults;
mod discovery;
pub mod hooks;
pub mod http;
mod kinds;
mod node;
mod openapi;
mod patch;
pub mod pki;
mod policy;
mod registry;
mod server;
mod status;
mod system_fields;
mod table;
#[cfg(test)]
mod tests;
mod validation;
mod verbs;
pub mod webhook;

pub use auth::{Identity, SigningKey};
use windlass_apimachinery::{
    clock, equality, findings, go, json, names, object, object_meta, place, quantity, random,
    steps, timestamp,
};

use windlass_cel as cel;
use windlass_store as store;

pub use clock::Clock;
pub use kinds::core::service::allocation::ServiceRange;
pub use node::NodeClient;
pub use random::Random;
pub use server::{ApiServer, Config, InProcess, Snapshot};
pub use store::StorageError;

/// The version of Kubernetes that the server behaves as: `v1.36.3`.
pub fn kubernetes_version() -> &'static str {
    &registry::facts::get().version
}

//! Runs pods on this machine, and a simulated node for tests.
//!
//! Three nodes, each a `windlass::Operator`: [`process`] runs containers as plain processes,
//! [`sandbox`] in namespaces of their own, [`simulated`] only pretends to, in virtual time. They
//! share everything that is a decision, and the first two also how pods are held by shims
//! (`containment`, [`shim`]). How a pod goes through the files:
//!
//! 1. `agent` is the controller of the pods bound to the node; it hands each to the pod's worker
//!    (`agent/worker`), with the ConfigMaps and Secrets its environment is made from ([`env`](mod@env)).
//! 2. The worker asks [`pod`] what to do. It is pure: a pod and the record of what happened to its
//!    containers give the next actions, the status, and the time to look again ([`backoff`]).
//! 3. The worker lets a runtime do it: [`image`] says which program stands for an image, [`probe`]
//!    when a container is healthy, [`log`] keeps what it writes. The runtime reports back to the
//!    worker, which asks [`pod`] again and writes the status when it has changed.
//! 4. `registration` makes the node itself known.
#![allow(
    clippy::doc_markdown,
    reason = "the names of Kubernetes' kinds are words here"
)]

mod agent;
pub mod backoff;
mod containment;
pub mod dns;
mod downward;
pub mod env;
pub mod fault;
mod folder;
mod handler;
mod hook;
pub mod image;
pub mod log;
mod machine;
pub mod network;
mod node;
pub mod pod;
pub mod probe;
pub mod process;
mod program;
mod quantity;
mod registration;
mod runtime;
pub mod sandbox;
#[cfg(test)]
mod scratch;
mod server;
pub mod shim;
pub mod simulated;
mod store;
mod terminal;
mod volume;

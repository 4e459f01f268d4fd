//! The pod shim: a small process per pod that outlives the node's.
//!
//! It is this same program, started again as `windlass pod-shim <folder>` inside new mount, IPC,
//! UTS and (unless the pod shares the host's) network namespaces. It holds those for the pod, so
//! nothing of them is visible on the host and all of it is gone when the pod is; it has the OCI
//! runtime start the containers, is their parent, writes their logs and knows how they ended.
//!
//! The node talks to it over a socket in the pod's folder, one JSON value per line. The first
//! thing a shim says is what runs ([`Event::Hello`]): a node that was killed and started again
//! takes the pod over as it is. Pid and start time of the shim are in `shim.json`, so that a process
//! number used anew is never taken for it.

pub(crate) mod attach;
mod client;
mod container;
mod protocol;
mod serve;
mod stream;

pub(crate) use client::{Shim, end_by_force, find, spawn};
pub(crate) use protocol::{Config, Event, Held, Request, Start};
pub use serve::{hold_processes, main};

/// The hidden subcommand by which a program becomes a shim.
pub const SUBCOMMAND: &str = "pod-shim";
/// The hidden subcommand by which it becomes the first process of a pod's shared PID namespace.
pub const HOLDER: &str = "pod-holder";

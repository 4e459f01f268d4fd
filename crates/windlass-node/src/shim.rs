//! The pod shim: a small process per pod that outlives the node's.
//!
//! It is this same program, started again as `windlass pod-shim <folder>`. It is the parent of the
//! pod's containers and gets whatever they leave behind, writes their logs and knows how they
//! ended. Containers are its own children (`plain`), or the OCI runtime starts them (`oci`): then the
//! shim is inside new mount, IPC, UTS and (unless the pod shares the host's) network namespaces and
//! holds those for the pod, so nothing of them is visible on the host and all of it is gone when
//! the pod is.
//!
//! The node talks to it over a socket in the pod's folder, one JSON value per line. The first
//! thing a shim says is what runs ([`Event::Hello`]): a node that was killed and started again
//! takes the pod over as it is. Pid and start time of the shim are in `shim.json`, so that a process
//! number used anew is never taken for it.

pub(crate) mod attach;
mod client;
mod console;
mod container;
mod holder;
mod oci;
mod part;
mod plain;
mod protocol;
mod serve;
mod stream;

pub(crate) use client::{Shim, end_by_force, find, spawn};
pub use holder::hold_processes;
pub(crate) use oci::{complaint, delete};
pub(crate) use protocol::{Config, Event, Held, Request, Sandbox, Start};
pub use serve::main;
pub(crate) use stream::Ends;

/// The hidden subcommand by which a program becomes a shim.
pub const SUBCOMMAND: &str = "pod-shim";
/// The hidden subcommand by which it becomes the first process of a pod's shared PID namespace.
pub const HOLDER: &str = "pod-holder";

//! Hostile pods: containers with root in them that try to read and change what is not theirs, and
//! to take the cluster down.
//!
//! In a sandbox they try everything; as plain processes, which nothing keeps apart by design, what
//! the node does on a pod's behalf: links in volumes, messages, logs, deletion. Around each test
//! lies a prepared tree of the host ([`host::Host`]) that must be the same afterwards, and the API
//! server is asked all the while ([`host::Asking`]).

mod host;
mod images;
mod network;
mod process;
mod reading;
mod resources;
mod volumes;

//! An embedded Kubernetes API server.
//!
//! It serves what operators and `kubectl` touch of kube-apiserver: built-in kinds and custom
//! resources, with watches, server-side apply, finalizers and discovery, over TLS on a port or in
//! process as a [`tower::Service`]. It is for developing and testing; it is not a second Kubernetes
//! for production.
//!
//! How a request goes through the files: [`http`] reads path, query and caller; `verbs` does what
//! is asked, one file per verb; on the way `decode`, `defaults`, `apply`, `admission`, `policy`, `webhook`, `strategy`
//! and `validation` shape the object; `store` keeps it and wakes the watches. What differs between
//! kinds is in the table of `facts` and in `registry`, nowhere else.

mod admission;
mod apply;
mod auth;
mod autoscaler;
mod bootstrap;
mod cel;
mod clock;
mod crd;
mod custom;
mod decode;
mod defaults;
mod derived;
mod discovery;
mod equality;
mod event;
mod facts;
mod findings;
mod go;
pub mod http;
mod json;
mod metadata;
mod names;
mod node;
mod object;
mod openapi;
mod patch;
mod pending_claim;
pub mod pki;
mod place;
mod pods;
mod policy;
mod quantity;
mod random;
mod regexp;
mod registry;
mod resource;
mod restore;
mod selector;
mod server;
mod services;
mod snapshot;
mod status;
mod steps;
mod store;
mod strategy;
mod table;
mod timestamp;
mod types;
mod validation;
mod verbs;
mod warnings;
pub mod webhook;

pub use auth::{Identity, SigningKey};
pub use clock::Clock;
pub use node::NodeClient;
pub use random::Random;
pub use server::{ApiServer, Config, Hooks, InProcess, Outcome, Verdict};
pub use services::ServiceRange;
pub use snapshot::Snapshot;
pub use store::StorageError;

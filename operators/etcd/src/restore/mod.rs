//! `EtcdRestore`: a cluster gets the data of a backup.
//!
//! | step | where |
//! | --- | --- |
//! | the kind | [`kind`] |
//! | what the cluster controller is asked to do | [`plan`] |
//! | which step is next | [`decision`] |
//! | from the store into a pod | [`fetch`] |
//! | the shell around it | [`reconciler`] |
//!
//! The backup is read and checked as a whole before anything is done to the cluster. Then the
//! restore controller writes a [`Plan`] into an annotation of the `EtcdCluster`, and the cluster
//! controller carries it out: it takes its pods away, keeps their volumes, and begins a new
//! incarnation of the cluster, with a token of its own, from a **seed**: a member whose pod fetches
//! the backup into an empty folder. Ordinary members join it, the seed is removed, and only then
//! does the Service let clients in.

pub(crate) mod decision;
pub mod fetch;
mod kind;
mod plan;
mod reconciler;

pub(crate) use self::reconciler::Restorer;
pub use self::{
    kind::{EtcdRestore, EtcdRestoreSpec, RestoreStatus, SnapshotFacts},
    plan::{PLAN, Plan, Source},
};

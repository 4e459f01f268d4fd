//! `EtcdBackup`: snapshots of a cluster in an object store, once or again and again.
//!
//! | step | where |
//! | --- | --- |
//! | the kind | [`kind`] |
//! | which step is next | [`decision`] |
//! | when the next backup is due | [`due`] |
//! | what is known about a backup beside its data | [`manifest`] |
//! | which backups go | [`retention`] |
//! | from a member into the store | [`transfer`] |
//! | the shell around it | [`reconciler`] |
//!
//! A backup counts from the moment in which its manifest is there. Before that, its data has been
//! hashed on its way into the store, compared with the hash that etcd sends after it, and read back.

pub(crate) mod decision;
pub(crate) mod due;
mod kind;
pub(crate) mod manifest;
pub(crate) mod members;
mod reconciler;
pub(crate) mod retention;
pub(crate) mod transfer;

pub use self::kind::{
    BackupPolicy, BackupRun, BackupStatus, ClusterReference, EtcdBackup, EtcdBackupSpec, LastBackup,
};
pub(crate) use self::reconciler::{BackupKeeper, read_small, secret_data};
pub use manifest::Manifest;

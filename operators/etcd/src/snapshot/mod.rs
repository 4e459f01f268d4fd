//! Snapshots of etcd: whether one is whole, and what is in it.
//!
//! A snapshot is a bbolt file, followed by the SHA-256 of all of it. Nothing but that hash shows
//! that it is whole: [`Check`] computes it from the stream, [`facts`] reads the rest from a few
//! pages of the file.

mod bolt;
mod check;

pub use self::{
    bolt::{BoltError, Facts, ReadAt, facts},
    check::{Check, Checked, NotWhole},
};

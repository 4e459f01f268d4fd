//! [`Declare`]: what a controller owns, reads and writes, said once.
//!
//! From the declaration come the handles the reconciler works with, the watches that wake it, and
//! the operator's role.

mod access;
mod scope;
mod watch;

use std::marker::PhantomData;

pub use self::{
    access::{Access, Grant, Verb},
    scope::{IntoSelector, Scope, Select},
    watch::{Watch, Watched},
};
pub(crate) use self::{scope::Within, watch::Wakes};
use crate::{
    Kind,
    handle::{Owned, Raw, Reads, Writes},
};

/// Collects what the controller of kind `K` does, and hands out the handles to do it.
pub struct Declare<K> {
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Declare<K> {
    /// The controller creates objects of kind `T` that belong to the reconciled object. Their
    /// changes wake the object that controls them.
    pub fn owns<T: Kind>(&mut self) -> Owned<T> {
        todo!()
    }

    /// The controller reads objects of kind `T`; the [`Watch`] says whom their changes wake.
    pub fn reads<T: Kind>(&mut self, watch: Watch<K, T>) -> Reads<T> {
        todo!()
    }

    /// The controller writes objects of kind `T` that it does not own (or of its own kind).
    pub fn writes<T: Kind>(&mut self, access: Access) -> Writes<T> {
        todo!()
    }

    /// The controller writes the status of its own kind, though the kind is defined by another.
    /// (For kinds that the operator defines itself this goes without saying.)
    pub fn writes_status(&mut self) {
        todo!()
    }

    /// The controller needs the client itself, for these requests.
    pub fn raw(&mut self, grants: impl IntoIterator<Item = Grant>) -> Raw {
        todo!()
    }
}

//! [`Source`]: how far one watch that feeds a store has come.
//!
//! A store of a few namespaces has a watch for each; what one has delivered says nothing about
//! the others.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::Key;

/// One watch of a store.
#[derive(Default)]
pub(super) struct Source {
    /// The namespace it is limited to.
    pub(super) namespace: Option<Box<str>>,
    /// It has delivered everything up to this version.
    pub(super) seen: u64,
    pub(super) lists_started: u64,
    /// The number of the last full list that was completed.
    pub(super) listed: u64,
    /// While a list is under way: what it has shown so far.
    pub(super) listing: Option<Listing>,
    /// When the server last said something, be it that nothing has changed.
    pub(super) heard: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Listing {
    pub(super) shown: BTreeSet<Key>,
    pub(super) newest: u64,
}

impl Source {
    pub(super) fn of(namespace: Option<Box<str>>) -> Self {
        Self {
            namespace,
            ..Self::default()
        }
    }

    pub(super) fn covers(&self, key: &Key) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace()
    }
}

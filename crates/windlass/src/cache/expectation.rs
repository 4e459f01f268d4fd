//! Expectations: writes of our own that the watch has not delivered yet.

use std::sync::Arc;

use crate::Key;

/// Who wrote: the reconcile of one key by one controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) controller: Arc<str>,
    pub(crate) key: Key,
}

/// A write the cache has yet to show.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) key: Key,
    pub(crate) writer: Writer,
    pub(crate) want: Want,
    /// The number of full lists started when the write was made. A later list shows the write or
    /// what became of it.
    pub(crate) lists: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The object, or the cache as a whole, has reached this version.
    Version(u64),
    /// The object of this uid is gone or on its way. It was at this version, or a later one, when
    /// it was deleted: a cache that has not come that far may not even show it yet.
    Gone { uid: Box<str>, version: u64 },
}

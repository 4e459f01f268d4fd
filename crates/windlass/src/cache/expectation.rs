//! Expectations: writes of our own that the watch has not delivered yet.

use std::sync::Arc;

use serde_json::Value;

use super::object::version_of;
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
    /// The object of this uid is gone, and not just on its way: its last finalizer went.
    Removed { uid: Box<str>, version: u64 },
}

impl Want {
    /// What the answer to a write makes us expect.
    pub(crate) fn of(answer: &Value) -> Self {
        let (version, meta) = (version_of(answer), &answer["metadata"]);
        let finalizers = meta["finalizers"].as_array();
        // Whoever takes the last finalizer of what nothing else holds removes it, and is answered
        // with the object as it was before: its version is the one that everybody has seen.
        if meta["deletionGracePeriodSeconds"] == 0 && finalizers.is_none_or(Vec::is_empty) {
            let uid = meta["uid"].as_str().unwrap_or_default().into();
            return Self::Removed { uid, version };
        }
        Self::Version(version)
    }
}

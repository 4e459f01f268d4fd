//! [`Next`]: what should happen after a successful reconcile.

use std::time::Duration;

use jiff::Timestamp;

/// What should happen next, unless something changes before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next(pub(crate) Step);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Settled,
    After(Duration),
    UnderWay(Duration),
    At(Timestamp),
    Waiting { reason: String, message: String },
}

impl Next {
    /// The object is as it should be; nothing happens until something changes.
    pub fn settled() -> Self {
        Self(Step::Settled)
    }

    /// Reconcile again after this time, or when something changes.
    pub fn after(delay: Duration) -> Self {
        Self(Step::After(delay))
    }

    /// Something outside the cluster is under way, and nothing that is watched tells when it is
    /// done: look again after this time, or when something changes. Unlike [`after`](Self::after),
    /// which may go on for ever, this comes to an end: a test that waits until the cluster has
    /// settled waits for it.
    pub fn under_way(look_again: Duration) -> Self {
        Self(Step::UnderWay(look_again))
    }

    /// Reconcile again at this time, or when something changes; at once if it has passed.
    pub fn at(time: Timestamp) -> Self {
        Self(Step::At(time))
    }

    /// Something that is watched has to appear or change first. Not an error: the condition
    /// Degraded says why, nothing is retried, and the change itself wakes the object.
    ///
    /// `reason` is a word in CamelCase for programs, `message` a sentence for people.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Step::Waiting {
            reason: reason.into(),
            message: message.into(),
        })
    }
}

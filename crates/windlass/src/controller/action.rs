//! [`Action`]: what should happen after a reconcile that did not fail.

use std::time::Duration;

use jiff::Timestamp;

/// How a reconcile ended, and when the next one is due if nothing changes before.
///
/// ```
/// use std::time::Duration;
/// use windlass::Action;
///
/// # let certificate_expires: jiff::Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
/// Action::done();                                             // until something changes
/// Action::requeue_after(Duration::from_secs(300));            // at the latest in five minutes
/// Action::requeue_at(certificate_expires);                    // at the latest then
/// Action::in_progress(Duration::from_secs(5));                // not complete: poll again
/// Action::waiting("SecretNotFound", "secret db not found");   // not complete: a change will come
/// ```
///
/// Objects that are no longer applied are pruned at the end of a complete reconcile, so not after
/// [`in_progress`](Self::in_progress) and [`waiting`](Self::waiting).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action(pub(crate) Step);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Done,
    After(Duration),
    InProgress(Duration),
    At(Timestamp),
    Waiting { reason: String, message: String },
}

impl Action {
    /// The object is as it should be; nothing happens until something changes.
    pub fn done() -> Self {
        Self(Step::Done)
    }

    /// Complete, and reconcile again after this time even if nothing changes.
    pub fn requeue_after(delay: Duration) -> Self {
        Self(Step::After(delay))
    }

    /// Complete, and reconcile again at this time even if nothing changes; at once if it has
    /// passed.
    pub fn requeue_at(time: Timestamp) -> Self {
        Self(Step::At(time))
    }

    /// Not complete: something outside the cluster is in progress, and no watch reports its end.
    /// Reconcile again after this time, or when something changes. A test that waits until the
    /// cluster has settled waits for it; it does not wait for a
    /// [`requeue_after`](Self::requeue_after), which may repeat for ever.
    pub fn in_progress(poll_after: Duration) -> Self {
        Self(Step::InProgress(poll_after))
    }

    /// Not complete: something that is watched has to appear or change first. Not an error: the
    /// condition Degraded carries the reason, nothing is retried, and the change itself triggers
    /// the next reconcile.
    ///
    /// `reason` is one word in `CamelCase`, `message` a sentence.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Step::Waiting {
            reason: reason.into(),
            message: message.into(),
        })
    }

    /// Whether everything was applied that should exist.
    pub(crate) fn is_complete(&self) -> bool {
        !matches!(self.0, Step::InProgress(_) | Step::Waiting { .. })
    }

    /// The action of two parts of one reconcile: what is not complete wins, then what is due
    /// first.
    pub(crate) fn and(self, other: Self, now: Timestamp) -> Self {
        let rank = |action: &Self| match &action.0 {
            Step::Waiting { .. } => (0, Duration::ZERO),
            Step::InProgress(delay) => (1, *delay),
            Step::After(delay) => (2, *delay),
            Step::At(time) => (
                2,
                Duration::try_from(time.duration_since(now)).unwrap_or_default(),
            ),
            Step::Done => (3, Duration::ZERO),
        };
        if rank(&other) < rank(&self) {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_actions_combine_to_the_less_complete_then_to_the_earlier() {
        let now = Timestamp::UNIX_EPOCH;
        let seconds = Duration::from_secs;
        let and = |a: Action, b: Action| {
            let (one, other) = (a.clone().and(b.clone(), now), b.and(a, now));
            assert_eq!(one, other);
            one
        };
        let waiting = Action::waiting("Why", "because");
        let at = Action::requeue_at(Timestamp::from_second(5).unwrap());
        assert_eq!(
            and(waiting.clone(), Action::in_progress(seconds(1))),
            waiting
        );
        assert_eq!(
            and(
                Action::in_progress(seconds(9)),
                Action::requeue_after(seconds(1))
            ),
            Action::in_progress(seconds(9))
        );
        assert_eq!(and(at.clone(), Action::requeue_after(seconds(6))), at);
        assert_eq!(
            and(Action::done(), Action::requeue_after(seconds(6))),
            Action::requeue_after(seconds(6))
        );
        assert!(!waiting.is_complete() && at.is_complete());
    }
}

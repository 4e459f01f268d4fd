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
/// Action::done();                                               // until something changes
/// Action::done().requeue_after(Duration::from_secs(300));       // at the latest in five minutes
/// Action::done().requeue_at(certificate_expires);               // at the latest then
/// Action::in_progress(Duration::from_secs(5));                  // not complete: poll again
/// Action::waiting("SecretNotFound", "secret db not found");     // not complete: a change will come
/// ```
///
/// [`done`](Self::done) says that everything was applied that should exist, so what is no longer
/// applied is pruned. A reconcile that returns early because it cannot go on yet is not done: it
/// returns [`waiting`](Self::waiting) or [`in_progress`](Self::in_progress), and nothing is pruned.
/// A timer alone is no action: it is added to one of the three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub(crate) step: Step,
    again: Option<Again>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Done,
    InProgress(Duration),
    Waiting { reason: String, message: String },
}

/// When to reconcile again even if nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    After(Duration),
    At(Timestamp),
}

impl Again {
    fn delay(self, now: Timestamp) -> Duration {
        match self {
            Self::After(delay) => delay,
            Self::At(time) => Duration::try_from(time.duration_since(now)).unwrap_or_default(),
        }
    }
}

impl Action {
    /// The object is as it should be; nothing happens until something changes.
    pub fn done() -> Self {
        Step::Done.into()
    }

    /// Not complete: something outside the cluster is in progress, and no watch reports its end.
    /// Reconcile again after this time, or when something changes. A test that waits until the
    /// cluster has settled waits for it; it does not wait for a
    /// [`requeue_after`](Self::requeue_after), which may repeat for ever.
    pub fn in_progress(poll_after: Duration) -> Self {
        Step::InProgress(poll_after).into()
    }

    /// Not complete: something that is watched has to appear or change first. Not an error: the
    /// condition Degraded carries the reason, nothing is retried, and the change itself triggers
    /// the next reconcile.
    ///
    /// `reason` is one word in `CamelCase`, `message` a sentence.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Step::Waiting { reason, message }.into()
    }

    /// And reconcile again after this time even if nothing changes.
    #[must_use]
    pub fn requeue_after(self, delay: Duration) -> Self {
        let again = Some(Again::After(delay));
        Self { again, ..self }
    }

    /// And reconcile again at this time even if nothing changes; at once if it has passed.
    #[must_use]
    pub fn requeue_at(self, time: Timestamp) -> Self {
        let again = Some(Again::At(time));
        Self { again, ..self }
    }

    /// Whether everything was applied that should exist.
    pub(crate) fn is_complete(&self) -> bool {
        self.step == Step::Done
    }

    /// How long until the next reconcile if nothing changes.
    pub(crate) fn delay(&self, now: Timestamp) -> Option<Duration> {
        let poll = match &self.step {
            Step::InProgress(delay) => Some(*delay),
            Step::Done | Step::Waiting { .. } => None,
        };
        let timer = self.again.map(|again| again.delay(now));
        poll.into_iter().chain(timer).min()
    }

    /// The action of two parts of one reconcile: what is not complete wins, and the timer that is
    /// due first.
    pub(crate) fn and(self, other: Self, now: Timestamp) -> Self {
        let due = |again: &Again| again.delay(now);
        let again = self.again.into_iter().chain(other.again).min_by_key(due);
        let rank = |step: &Step| match step {
            Step::Waiting { .. } => (0, Duration::ZERO),
            Step::InProgress(delay) => (1, *delay),
            Step::Done => (2, Duration::ZERO),
        };
        let step = if rank(&other.step) < rank(&self.step) {
            other.step
        } else {
            self.step
        };
        Self { step, again }
    }
}

impl From<Step> for Action {
    fn from(step: Step) -> Self {
        Self { step, again: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_actions_combine_to_the_less_complete_with_the_earlier_timer() {
        let now = Timestamp::UNIX_EPOCH;
        let seconds = Duration::from_secs;
        let and = |a: Action, b: Action| {
            let (one, other) = (a.clone().and(b.clone(), now), b.and(a, now));
            assert_eq!(one, other);
            one
        };
        let waiting = Action::waiting("Why", "because");
        let at = Action::done().requeue_at(Timestamp::from_second(5).unwrap());
        let after = Action::done().requeue_after(seconds(6));
        let polls = Action::in_progress(seconds(9));
        assert_eq!(and(waiting.clone(), polls.clone()), waiting);
        assert_eq!(and(at.clone(), after.clone()), at);
        assert_eq!(and(Action::done(), after.clone()), after);
        let both = and(polls, after);
        assert_eq!(both.delay(now), Some(seconds(6)));
        assert!(!both.is_complete());
        assert_eq!(and(waiting, at).delay(now), Some(seconds(5)));
    }

    #[test]
    fn a_timer_does_not_make_an_action_complete() {
        let minute = Duration::from_mins(1);
        assert!(Action::done().requeue_after(minute).is_complete());
        let waiting = Action::waiting("Why", "because").requeue_after(minute);
        assert!(!waiting.is_complete());
        assert_eq!(waiting.delay(Timestamp::UNIX_EPOCH), Some(minute));
        let past = Action::done().requeue_at(Timestamp::UNIX_EPOCH);
        let now = Timestamp::from_second(1).unwrap();
        assert_eq!(past.delay(now), Some(Duration::ZERO));
    }
}

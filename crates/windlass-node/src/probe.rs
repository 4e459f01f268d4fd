//! Probes: what a container's health is, seen from outside.
//!
//! A [`Tally`] counts the outcomes of one probe and says when its verdict changes: after
//! `failureThreshold` failures or `successThreshold` successes in a row. The startup probe runs
//! alone until it succeeds; readiness and liveness follow.

mod check;
mod watch;

pub use check::Outcome;
pub(crate) use check::check;
pub(crate) use watch::{at_start, watch};

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;

/// When a probe runs, and how many outcomes make a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Before the first run, from the start of the container.
    pub initial_delay: Duration,
    /// Between runs.
    pub period: Duration,
    /// After which a run has failed.
    pub timeout: Duration,
    success_threshold: u32,
    failure_threshold: u32,
}

impl Schedule {
    /// The schedule of a probe, with Kubernetes' defaults for what it leaves out.
    pub fn of(probe: &Probe) -> Self {
        let positive = |value: Option<i32>, default: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|v| *v > 0)
                .unwrap_or(default)
        };
        let seconds = |count: u32| Duration::from_secs(u64::from(count));
        Self {
            initial_delay: seconds(positive(probe.initial_delay_seconds, 0)),
            period: seconds(positive(probe.period_seconds, 10)),
            timeout: seconds(positive(probe.timeout_seconds, 1)),
            success_threshold: positive(probe.success_threshold, 1),
            failure_threshold: positive(probe.failure_threshold, 3),
        }
    }
}

/// The outcomes of one probe so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    success_threshold: u32,
    failure_threshold: u32,
    /// The outcome of the last run and how often it was the same in a row.
    streak: Option<(bool, u32)>,
    verdict: Option<bool>,
}

impl Tally {
    /// A probe that has not run yet.
    pub fn new(schedule: &Schedule) -> Self {
        Self {
            success_threshold: schedule.success_threshold,
            failure_threshold: schedule.failure_threshold,
            streak: None,
            verdict: None,
        }
    }

    /// Whether a failure now is the first in a row, or one that makes a verdict.
    pub fn is_news(&self) -> bool {
        match self.streak {
            Some((false, length)) => {
                length.saturating_add(1) == self.failure_threshold && self.verdict != Some(false)
            }
            _ => true,
        }
    }

    /// Counts an outcome; returns the verdict when this outcome changed it.
    pub fn count(&mut self, success: bool) -> Option<bool> {
        let length = match self.streak {
            Some((same, length)) if same == success => length.saturating_add(1),
            _ => 1,
        };
        self.streak = Some((success, length));
        let needed = if success {
            self.success_threshold
        } else {
            self.failure_threshold
        };
        if length >= needed && self.verdict != Some(success) {
            self.verdict = Some(success);
            return self.verdict;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally(success: i32, failure: i32) -> Tally {
        Tally::new(&Schedule::of(&Probe {
            success_threshold: Some(success),
            failure_threshold: Some(failure),
            ..Probe::default()
        }))
    }

    #[test]
    fn defaults_are_those_of_kubernetes() {
        let schedule = Schedule::of(&Probe::default());
        assert_eq!(schedule.initial_delay, Duration::ZERO);
        assert_eq!(schedule.period, Duration::from_secs(10));
        assert_eq!(schedule.timeout, Duration::from_secs(1));
        assert_eq!(
            (schedule.success_threshold, schedule.failure_threshold),
            (1, 3)
        );
    }

    #[test]
    fn a_verdict_needs_a_streak() {
        let mut tally = tally(2, 3);
        let outcomes = [
            false, false, true, false, false, false, false, true, true, true, false,
        ];
        let verdicts: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| tally.count(outcome))
            .collect();
        let (n, t, f) = (None, Some(true), Some(false));
        assert_eq!(verdicts, [n, n, n, n, n, f, n, n, t, n, n]);
    }

    proptest! {
        #[test]
        fn verdicts_alternate_and_are_backed_by_a_streak(
            success in 1_i32..4, failure in 1_i32..4,
            outcomes in prop::collection::vec(any::<bool>(), 0..60),
        ) {
            let mut tally = tally(success, failure);
            let mut last = None;
            for (index, outcome) in outcomes.iter().enumerate() {
                if let Some(verdict) = tally.count(*outcome) {
                    prop_assert_ne!(last, Some(verdict));
                    last = Some(verdict);
                    let needed = usize::try_from(if verdict { success } else { failure }).unwrap();
                    prop_assert!(index + 1 >= needed);
                    prop_assert!(outcomes[index + 1 - needed..=index].iter().all(|o| *o == verdict));
                }
            }
        }
    }
}

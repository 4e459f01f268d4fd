//! How a test knows that nothing is left to do.
//!
//! Whoever has work holds a guard: [`Activity::busy`] for work that can be done now (a key ready
//! in a queue, a reconcile under way), [`Activity::due`] for work that a settled cluster would
//! still do at a known time (the backoff of a failed key, a simulated pod about to become ready).
//! Periodic things (resyncs, lease renewals, watch timeouts) hold none: they never end. A
//! reconciler's own [`Action::after`](crate::Action::after) is only [`Activity::planned`]: it keeps
//! nothing from being settled, but a test that lets much time pass has to stop there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

/// What is still to be done by everything that shares this value.
#[derive(Clone, Default)]
pub struct Activity(Arc<Mutex<Pending>>);

#[derive(Default)]
struct Pending {
    next: u64,
    busy: BTreeMap<u64, Box<str>>,
    due: BTreeMap<(Instant, u64), Box<str>>,
    planned: BTreeSet<(Instant, u64)>,
}

impl Activity {
    /// Marks immediate work until the guard is dropped. `what` names it for a person.
    #[must_use = "the work is only pending while the guard lives"]
    pub fn busy(&self, what: impl Into<Box<str>>) -> BusyGuard {
        let mut pending = self.lock();
        pending.next += 1;
        let id = pending.next;
        pending.busy.insert(id, what.into());
        BusyGuard {
            activity: self.clone(),
            id,
        }
    }

    /// Marks work that will be done at `at`, until the guard is dropped.
    #[must_use = "the work is only pending while the guard lives"]
    pub fn due(&self, at: Instant, what: impl Into<Box<str>>) -> DueGuard {
        let mut pending = self.lock();
        pending.next += 1;
        let id = pending.next;
        pending.due.insert((at, id), what.into());
        DueGuard {
            activity: self.clone(),
            at,
            id,
        }
    }

    /// Notes that something is planned for `at`, until the guard is dropped.
    #[must_use = "it is only planned while the guard lives"]
    pub fn planned(&self, at: Instant) -> PlanGuard {
        let mut pending = self.lock();
        pending.next += 1;
        let id = pending.next;
        pending.planned.insert((at, id));
        PlanGuard {
            activity: self.clone(),
            at,
            id,
        }
    }

    /// When the first thing that is planned happens, of those that are still to come.
    pub fn next_planned(&self) -> Option<Instant> {
        let pending = self.lock();
        let to_come = (
            Bound::Excluded((Instant::now(), u64::MAX)),
            Bound::Unbounded,
        );
        pending.planned.range(to_come).next().map(|(at, _)| *at)
    }

    /// True when there is neither immediate nor timed work.
    pub fn is_idle(&self) -> bool {
        let pending = self.lock();
        pending.busy.is_empty() && pending.due.is_empty()
    }

    /// True when there is immediate work.
    pub fn is_busy(&self) -> bool {
        !self.lock().busy.is_empty()
    }

    /// When the first timed work is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.lock().due.keys().next().map(|(at, _)| *at)
    }

    /// What is pending, for a person: immediate work first, then timed work by time.
    pub fn describe(&self) -> Vec<String> {
        let pending = self.lock();
        let now = Instant::now();
        let busy = pending.busy.values().map(ToString::to_string);
        let due = pending
            .due
            .iter()
            .map(|((at, _), what)| format!("{what} (in {:?})", at.saturating_duration_since(now)));
        busy.chain(due).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.describe()).finish()
    }
}

/// Immediate work, pending until this is dropped.
#[derive(Debug)]
pub struct BusyGuard {
    activity: Activity,
    id: u64,
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.activity.lock().busy.remove(&self.id);
    }
}

/// Something planned, until this is dropped.
#[derive(Debug)]
pub struct PlanGuard {
    activity: Activity,
    at: Instant,
    id: u64,
}

impl Drop for PlanGuard {
    fn drop(&mut self) {
        self.activity.lock().planned.remove(&(self.at, self.id));
    }
}

/// Timed work, pending until this is dropped.
#[derive(Debug)]
pub struct DueGuard {
    activity: Activity,
    at: Instant,
    id: u64,
}

impl DueGuard {
    /// When the work is due.
    pub fn at(&self) -> Instant {
        self.at
    }
}

impl Drop for DueGuard {
    fn drop(&mut self) {
        self.activity.lock().due.remove(&(self.at, self.id));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_once_every_guard_is_dropped() {
        let activity = Activity::default();
        assert!(activity.is_idle());
        let busy = activity.busy("reconcile a");
        let later = activity.due(Instant::now() + Duration::from_secs(2), "retry b");
        let sooner = activity.due(Instant::now() + Duration::from_secs(1), "retry c");
        assert_eq!(
            activity.describe(),
            ["reconcile a", "retry c (in 1s)", "retry b (in 2s)"]
        );
        assert_eq!(activity.next_due(), Some(sooner.at()));
        drop((busy, sooner));
        assert!(!activity.is_busy() && !activity.is_idle());
        drop(later);
        assert!(activity.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_is_no_work_and_counts_while_it_is_to_come() {
        let activity = Activity::default();
        let second = Duration::from_secs(1);
        let now = Instant::now();
        let plans = [now, now + second, now + 2 * second].map(|at| activity.planned(at));
        assert!(activity.is_idle());
        assert_eq!(activity.next_planned(), Some(now + second));
        tokio::time::advance(second).await;
        assert_eq!(activity.next_planned(), Some(now + 2 * second));
        drop(plans);
        assert_eq!(activity.next_planned(), None);
    }
}

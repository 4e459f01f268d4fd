//! What the collector still has to look at.
//!
//! A piece of work is in the queue at most once. One that failed comes back after a delay that
//! doubles with each failure. What is in the queue is told to the [`Activity`], so that a test can
//! wait for the end of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use windlass::testing::{Activity, BusyGuard, DueGuard};

use super::graph::Work;

const FIRST_DELAY: Duration = Duration::from_millis(5);
const LONGEST_DELAY: Duration = Duration::from_secs(1000);

/// Work in the order in which it came, and work that failed in the order in which it is due.
pub(crate) struct Queue {
    activity: Activity,
    order: VecDeque<Work>,
    ready: BTreeMap<Work, BusyGuard>,
    delayed: BTreeMap<(Instant, Work), DueGuard>,
    failures: BTreeMap<Work, u32>,
}

impl Queue {
    pub(crate) fn new(activity: Activity) -> Self {
        Self {
            activity,
            order: VecDeque::new(),
            ready: BTreeMap::new(),
            delayed: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Adds work, unless it is there already.
    pub(crate) fn add(&mut self, work: impl IntoIterator<Item = Work>) {
        for work in work {
            if !self.ready.contains_key(&work) {
                let guard = self.activity.busy(describe(&work));
                self.order.push_back(work.clone());
                self.ready.insert(work, guard);
            }
        }
    }

    /// The next piece of work; it counts as pending until the guard is dropped.
    pub(crate) fn pop(&mut self) -> Option<(Work, BusyGuard)> {
        let work = self.order.pop_front()?;
        let guard = self.ready.remove(&work)?;
        Some((work, guard))
    }

    /// Work that is done needs no memory of its failures.
    pub(crate) fn done(&mut self, work: &Work) {
        self.failures.remove(work);
    }

    /// Work that failed comes back later.
    pub(crate) fn retry(&mut self, work: Work) {
        let failures = self.failures.entry(work.clone()).or_default();
        let delay = FIRST_DELAY
            .saturating_mul(1 << (*failures).min(20))
            .min(LONGEST_DELAY);
        *failures += 1;
        let at = Instant::now() + delay;
        let guard = self.activity.due(at, format!("{}, again", describe(&work)));
        self.delayed.insert((at, work), guard);
    }

    /// When the first delayed work is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.delayed.keys().next().map(|(at, _)| *at)
    }

    /// Makes delayed work that is due ready.
    pub(crate) fn promote(&mut self) {
        let now = Instant::now();
        let due: BTreeSet<(Instant, Work)> = self
            .delayed
            .keys()
            .take_while(|(at, _)| *at <= now)
            .cloned()
            .collect();
        for key in due {
            // First into the queue and only then out of the delay, so that it is pending throughout.
            self.add([key.1.clone()]);
            self.delayed.remove(&key);
        }
    }
}

fn describe(work: &Work) -> String {
    match work {
        Work::Check(uid) => format!("garbage collector: check {uid}"),
        Work::Orphan(uid) => format!("garbage collector: orphan the dependents of {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uid: &str) -> Work {
        Work::Check(uid.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_queued_once_and_pending_until_done() {
        let activity = Activity::default();
        let mut queue = Queue::new(activity.clone());
        queue.add([check("a"), check("b"), check("a")]);
        let (first, guard) = queue.pop().unwrap();
        assert_eq!(first, check("a"));
        drop(guard);
        assert!(!activity.is_idle());
        let (second, guard) = queue.pop().unwrap();
        assert_eq!(second, check("b"));
        assert!(queue.pop().is_none());
        assert!(!activity.is_idle());
        drop(guard);
        assert!(activity.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_come_back_later_and_later() {
        let activity = Activity::default();
        let mut queue = Queue::new(activity.clone());
        let mut delays = Vec::new();
        for _ in 0..3 {
            queue.retry(check("a"));
            let due = queue.next_due().unwrap();
            assert_eq!(activity.next_due(), Some(due));
            delays.push(due - Instant::now());
            queue.promote();
            assert!(queue.pop().is_none(), "not before it is due");
            tokio::time::advance(due - Instant::now()).await;
            queue.promote();
            assert_eq!(queue.pop().unwrap().0, check("a"));
        }
        assert_eq!(delays, [5, 10, 20].map(Duration::from_millis));
        queue.done(&check("a"));
        queue.retry(check("a"));
        assert_eq!(queue.next_due().unwrap() - Instant::now(), FIRST_DELAY);
    }
}

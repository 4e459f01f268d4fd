//! The queue's rules as a plain data structure: no locks, no timers, time is an argument.
//!
//! A key is in exactly one stage: idle, ready (with a priority and a place in the line), or
//! running (perhaps to be run again). Beside that it may have one wake-up in the future: a retry
//! after a failure, or the time its reconciler asked for. Whoever starts a key takes its wake-up
//! with it, because the reconcile decides anew what comes next.
//!
//! What changed goes before what was there from the start, but not for ever: after so many of the
//! first one of the second has its turn, so that a flood starves nobody.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{
    cause::{Cause, Causes},
    rate::{Bucket, Rate},
};
use crate::{
    Key,
    environment::{Activity, BusyGuard, DueGuard, PlanGuard},
};

/// The first delay after a failure; doubled by every further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
/// No retry is later than this.
const LAST_BACKOFF: Duration = Duration::from_secs(1000);

/// So many keys of the first line run before one of the second does.
const FAIR: u32 = 16;

/// The line a ready key waits in: what happened goes before what was there from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Something changed.
    High,
    /// Part of the first list, or looked at again without a reason.
    Low,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing more to do.
    Settled,
    /// To be run again after this time.
    After(Duration),
    /// To be run again after a while, and not settled before.
    UnderWay(Duration),
    /// Failed: to be run again with backoff.
    Failed,
}

/// The state of a queue.
pub(crate) struct Core {
    name: Box<str>,
    activity: Activity,
    items: BTreeMap<Key, Item>,
    ready: BTreeMap<(Priority, u64), Key>,
    wakes: BTreeMap<(Instant, u64), Key>,
    tickets: u64,
    rate: Rate,
    bucket: Bucket,
    /// How many of the first line ran in a row while the second waited.
    favoured: u32,
    /// Nobody takes keys yet: that they wait is not work left to do.
    dormant: bool,
}

#[derive(Default)]
struct Item {
    stage: Stage,
    wake: Option<Wake>,
    failures: u32,
    causes: Causes,
    /// Since when it is in its stage.
    since: Option<Instant>,
    /// Held while the key is ready or running.
    busy: Option<BusyGuard>,
}

#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    Ready(Priority, u64),
    Running {
        again: Option<Priority>,
    },
}

struct Wake {
    at: Instant,
    ticket: u64,
    cause: Cause,
    /// Held for retries: a settled cluster would still do them.
    _due: Option<DueGuard>,
    /// Held for what the reconciler asked for.
    _planned: Option<PlanGuard>,
}

/// A key to be run.
pub(crate) struct Taken {
    pub(crate) key: Key,
    pub(crate) causes: Causes,
    pub(crate) waited: Duration,
}

/// How many keys are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) high: usize,
    pub(crate) low: usize,
    pub(crate) delayed: usize,
    /// Keys that run, and for how long.
    pub(crate) running: Vec<(Key, Duration)>,
    /// Keys that failed, and how often in a row.
    pub(crate) failing: Vec<(Key, u32)>,
}

impl Core {
    pub(crate) fn new(name: impl Into<Box<str>>, activity: Activity, rate: Rate) -> Self {
        Self {
            name: name.into(),
            activity,
            items: BTreeMap::new(),
            ready: BTreeMap::new(),
            wakes: BTreeMap::new(),
            tickets: 0,
            rate,
            bucket: Bucket::default(),
            favoured: 0,
            dormant: true,
        }
    }

    /// Says whether somebody takes keys. While nobody does, waiting keys are no activity.
    pub(crate) fn set_dormant(&mut self, dormant: bool) {
        self.dormant = dormant;
        for (key, item) in &mut self.items {
            if dormant {
                item.busy = None;
            } else if item.stage != Stage::Idle && item.busy.is_none() {
                let what = format!("{} has {key} to reconcile", self.name);
                item.busy = Some(self.activity.busy(what));
            }
        }
    }

    /// Adds a key to the line; one that waits already keeps its place or moves to the better line.
    pub(crate) fn add(&mut self, key: Key, priority: Priority, cause: Cause, now: Instant) {
        let ticket = self.ticket();
        let item = self.items.entry(key.clone()).or_default();
        item.causes.push(cause);
        if item.stage == Stage::Idle {
            item.since = Some(now);
        }
        match &mut item.stage {
            Stage::Running { again } => {
                *again = Some(again.map_or(priority, |already| already.min(priority)));
                return;
            }
            Stage::Ready(already, _) if *already <= priority => return,
            Stage::Ready(already, place) => {
                self.ready.remove(&(*already, *place));
            }
            Stage::Idle => {}
        }
        item.stage = Stage::Ready(priority, ticket);
        if item.busy.is_none() && !self.dormant {
            item.busy = Some(
                self.activity
                    .busy(format!("{} has {key} to reconcile", self.name)),
            );
        }
        self.ready.insert((priority, ticket), key);
    }

    /// Takes the next key to run, if there is one. It is not handed out again before
    /// [`finish`](Self::finish).
    pub(crate) fn next(&mut self, now: Instant) -> Option<Taken> {
        self.wake(now);
        let key = self.pick()?;
        let item = self.items.get_mut(&key)?;
        item.stage = Stage::Running { again: None };
        if let Some(wake) = item.wake.take() {
            self.wakes.remove(&(wake.at, wake.ticket));
        }
        let since = item.since.replace(now).unwrap_or(now);
        Some(Taken {
            key,
            causes: std::mem::take(&mut item.causes),
            waited: now.saturating_duration_since(since),
        })
    }

    fn pick(&mut self) -> Option<Key> {
        let second = self.ready.range((Priority::Low, 0)..).next();
        let second = second.map(|(place, _)| *place);
        let first = self.ready.first_key_value().map(|(place, _)| *place)?;
        let place = match second {
            Some(second) if first.0 == Priority::High && self.favoured >= FAIR => second,
            _ => first,
        };
        let waits = place.0 == Priority::High && second.is_some();
        self.favoured = if waits { self.favoured + 1 } else { 0 };
        self.ready.remove(&place)
    }

    /// A run is over; answers how long it took.
    pub(crate) fn finish(&mut self, key: &Key, outcome: Outcome, now: Instant) -> Duration {
        let ticket = self.ticket();
        let Some(item) = self.items.get_mut(key) else {
            return Duration::ZERO;
        };
        let Stage::Running { again } = item.stage else {
            return Duration::ZERO;
        };
        let took = now.saturating_duration_since(item.since.take().unwrap_or(now));
        item.stage = Stage::Idle;
        item.busy = None;
        let wake = match outcome {
            Outcome::Settled => {
                item.failures = 0;
                None
            }
            Outcome::After(delay) | Outcome::UnderWay(delay) => {
                item.failures = 0;
                Some((later(now, delay), Cause::Timer))
            }
            Outcome::Failed => {
                let at = now + backoff(item.failures);
                item.failures = item.failures.saturating_add(1);
                Some((
                    at.max(self.bucket.take(self.rate, now)),
                    Cause::Retry {
                        failures: item.failures,
                    },
                ))
            }
        };
        if let Some((at, cause)) = wake {
            let what = match outcome {
                Outcome::Failed => Some("will try"),
                Outcome::UnderWay(_) => Some("will look at"),
                Outcome::Settled | Outcome::After(_) => None,
            };
            let due = what.map(|what| {
                let note = format!("{} {what} {key} again", self.name);
                self.activity.due(at, note)
            });
            let planned = due.is_none().then(|| self.activity.planned(at));
            item.wake = Some(Wake {
                at,
                ticket,
                cause,
                _due: due,
                _planned: planned,
            });
            self.wakes.insert((at, ticket), key.clone());
        }
        match again {
            Some(priority) => {
                let item_causes = std::mem::take(&mut item.causes);
                self.add_again(key, priority, item_causes, now);
            }
            None if item.wake.is_none() && item.failures == 0 => {
                self.items.remove(key);
            }
            None => {}
        }
        took
    }

    /// What waits and runs, for a person and for metrics.
    pub(crate) fn snapshot(&self, now: Instant) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (priority, _) in self.ready.keys() {
            match priority {
                Priority::High => snapshot.high += 1,
                Priority::Low => snapshot.low += 1,
            }
        }
        snapshot.delayed = self.wakes.len();
        let running = self.items.iter();
        let running = running.filter(|(_, item)| matches!(item.stage, Stage::Running { .. }));
        snapshot.running = running
            .filter_map(|(key, item)| {
                Some((key.clone(), now.saturating_duration_since(item.since?)))
            })
            .collect();
        let failing = self.items.iter().filter(|(_, item)| item.failures > 0);
        snapshot.failing = failing
            .map(|(key, item)| (key.clone(), item.failures))
            .collect();
        snapshot
    }

    /// When the next wake-up is due, if nothing is ready before.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.wakes.keys().next().map(|(at, _)| *at)
    }

    fn add_again(&mut self, key: &Key, priority: Priority, causes: Causes, now: Instant) {
        let mut causes = causes.into_iter();
        if let Some(first) = causes.next() {
            self.add(key.clone(), priority, first, now);
        }
        if let Some(item) = self.items.get_mut(key) {
            item.causes.extend(causes);
        }
    }

    fn wake(&mut self, now: Instant) {
        while let Some(entry) = self
            .wakes
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let key = entry.remove();
            // The guard of a retry is dropped after the key is ready, so that the work is never
            // unaccounted for.
            if let Some(wake) = self.items.get_mut(&key).and_then(|item| item.wake.take()) {
                self.add(key, Priority::High, wake.cause.clone(), now);
            }
        }
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

/// The time after a delay; a delay longer than the clock can hold is one that never ends.
fn later(now: Instant, delay: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_hours(24 * 365 * 30);
    now.checked_add(delay.min(FOREVER)).unwrap_or(now)
}

/// 5 ms, 10 ms, 20 ms, … up to 1000 s.
fn backoff(failures: u32) -> Duration {
    2_u32.checked_pow(failures).map_or(LAST_BACKOFF, |factor| {
        FIRST_BACKOFF.saturating_mul(factor).min(LAST_BACKOFF)
    })
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;

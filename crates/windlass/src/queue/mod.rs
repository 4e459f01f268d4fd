//! The queue: which keys a controller has to reconcile, and when.
//!
//! De-duplicating (a key waits at most once), first in first out within a priority, with delayed
//! keys and a backoff per key that success resets; a key is never handed out twice at once. The
//! rules live in [`core`], a plain data structure; this is the part that waits.

mod cause;
mod core;
mod rate;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::{sync::Notify, time::Instant};

use self::core::Core;
pub(crate) use self::{
    cause::{Cause, Causes},
    core::{Outcome, Priority, Snapshot},
    rate::Rate,
};
use crate::{Key, environment::Activity, metrics::QueueMetrics};

/// A queue of keys, shared by those who add and the controller that takes.
pub(crate) struct Queue {
    core: Mutex<Core>,
    added: Notify,
    metrics: QueueMetrics,
}

impl Queue {
    pub(crate) fn new(name: &str, activity: Activity, rate: Rate, metrics: QueueMetrics) -> Self {
        Self {
            core: Mutex::new(Core::new(name, activity, rate)),
            added: Notify::new(),
            metrics,
        }
    }

    pub(crate) fn add(&self, key: Key, priority: Priority, cause: Cause) {
        self.metrics.adds.inc();
        self.lock().add(key, priority, cause, Instant::now());
        self.added.notify_one();
    }

    /// The next key to run, when there is one. Safe to cancel: a key is taken only on return.
    pub(crate) async fn next(&self) -> (Key, Causes) {
        loop {
            let wake = {
                let mut core = self.lock();
                if let Some(taken) = core.next(Instant::now()) {
                    self.metrics.latency.observe(taken.waited.as_secs_f64());
                    return (taken.key, taken.causes);
                }
                core.next_wake()
            };
            // `notify_one` leaves a permit, so an add between the look and the wait is not lost.
            match wake {
                Some(at) => tokio::select! {
                    biased;
                    () = self.added.notified() => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => self.added.notified().await,
            }
        }
    }

    pub(crate) fn finish(&self, key: &Key, outcome: Outcome) {
        if outcome != Outcome::Settled {
            self.metrics.retries.inc();
        }
        let took = self.lock().finish(key, outcome, Instant::now());
        self.metrics.work.observe(took.as_secs_f64());
        self.added.notify_one();
    }

    /// Says whether somebody takes keys.
    pub(crate) fn set_dormant(&self, dormant: bool) {
        self.lock().set_dormant(dormant);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().snapshot(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

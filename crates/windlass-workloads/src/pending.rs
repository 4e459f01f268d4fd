//! Work that is due at a known time, told to whoever waits for the cluster to settle.
//!
//! A reconciler that asks to be called again later usually just looks again, and nobody should
//! wait for that. Some work, though, belongs to what is under way: a pod about to count as
//! available, a namespace about to be empty. A reconciler says so here, per object.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass::{Action, Context, Key, Kind, testing::DueGuard};

/// The work that is due, by object.
#[derive(Default)]
pub(crate) struct Pending(Mutex<BTreeMap<Key, DueGuard>>);

impl Pending {
    /// Asks to be called again after `delay`, for work that is under way.
    pub(crate) fn after<K: Kind>(&self, ctx: &Context<K>, delay: Duration, what: &str) -> Action {
        let what = format!("{} {}: {what}", K::plural(&()), ctx.key());
        let due = ctx.environment().activity.due(Instant::now() + delay, what);
        self.set(ctx.key(), Some(due));
        Action::done().requeue_after(delay)
    }

    /// Nothing is due for this object (any more).
    pub(crate) fn clear(&self, key: &Key) {
        self.set(key, None);
    }

    fn set(&self, key: &Key, due: Option<DueGuard>) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match due {
            Some(due) => pending.insert(key.clone(), due),
            None => pending.remove(key),
        };
    }
}

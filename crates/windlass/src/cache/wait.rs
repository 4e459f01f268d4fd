//! Waiting: reads see the operator's own writes.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::Instant;
use tracing::warn;

use super::{
    Store,
    expectation::{Expectation, Want, Writer},
};
use crate::{Error, Key, Result};

/// How long a read inside a reconcile waits for a write of our own. Watches deliver in
/// milliseconds; after this time the reconcile is better ended and started again when the watch
/// has caught up.
const PATIENCE: Duration = Duration::from_secs(10);
/// A write that no watch shows in this time never will be shown: it was to an object that our
/// scope does not cover, in a way that we did not foresee.
const RESIGNATION: Duration = Duration::from_mins(5);

impl Store {
    /// Notes a write of our own, so that reads wait for it.
    pub(crate) fn expect(&self, key: &Key, writer: &Writer, want: Want) {
        let mut state = self.lock();
        let lists = state
            .source_of(key)
            .map_or(0, |source| source.lists_started);
        state.expect(Expectation {
            key: key.clone(),
            writer: writer.clone(),
            want,
            lists,
        });
    }

    /// Waits until the cache shows every write to this object.
    pub(crate) async fn shows_writes_to(&self, key: &Key) -> Result<()> {
        self.soon("get", |expectation| expectation.key == *key)
            .await
    }

    /// Waits until the cache shows every write of this writer.
    pub(crate) async fn shows_writes_of(&self, writer: &Writer) -> Result<()> {
        self.soon("list", |expectation| expectation.writer == *writer)
            .await
    }

    /// Whether the cache has yet to show a write of this writer.
    pub(crate) fn owes(&self, writer: &Writer) -> bool {
        self.owed(|expectation| expectation.writer == *writer)
            .is_some()
    }

    /// Waits, as long as it takes, until the cache shows every write of this writer.
    pub(crate) async fn catches_up_with(&self, writer: &Writer) {
        let concerns = |expectation: &Expectation| expectation.writer == *writer;
        if self.owed(concerns).is_none() {
            return;
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let waited = tokio::time::timeout(RESIGNATION, self.caught_up(concerns)).await;
        self.metrics
            .waited("reconcile", waited.is_ok(), begun.elapsed());
        if waited.is_err() {
            let late = self.owed(concerns);
            self.lock().expectations.retain(|one| !concerns(one));
            if let Some(key) = late {
                let kind = &self.kind;
                warn!(%kind, %key, "the watch has not shown our write in {RESIGNATION:?}; going on without");
            }
        }
    }

    fn owed(&self, concerns: impl Fn(&Expectation) -> bool) -> Option<Key> {
        let state = self.lock();
        let mut owed = state.expectations.iter().filter(|one| concerns(one));
        owed.next().map(|one| one.key.clone())
    }

    async fn soon(
        &self,
        operation: &str,
        concerns: impl Fn(&Expectation) -> bool + Send + Sync,
    ) -> Result<()> {
        if self.owed(&concerns).is_none() {
            return Ok(());
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let waited = tokio::time::timeout(PATIENCE, self.caught_up(&concerns)).await;
        self.metrics
            .waited(operation, waited.is_ok(), begun.elapsed());
        // The expectation stays: no later read may see the world before the write either.
        match self.owed(&concerns) {
            Some(key) if waited.is_err() => Err(Error::Stale {
                object: format!("{} {key}", self.kind),
                seconds: PATIENCE.as_secs(),
            }),
            _ => Ok(()),
        }
    }

    async fn caught_up(&self, concerns: impl Fn(&Expectation) -> bool + Send + Sync) {
        loop {
            let changed = self.changed.notified();
            if self.owed(&concerns).is_none() {
                return;
            }
            changed.await;
        }
    }
}

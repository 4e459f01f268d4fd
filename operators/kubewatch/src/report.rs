//! What an engine says of itself: for the status of its watch.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::{HandlerStatus, WatchStatus};

/// What an engine says of itself.
pub(crate) struct Report {
    state: Mutex<State>,
    changed: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    handlers: BTreeMap<&'static str, Option<String>>,
    unwatched: BTreeMap<String, String>,
    dropped: u64,
    why: String,
}

impl Report {
    /// `changed` is called when there is something new to say.
    pub(crate) fn new(
        handlers: impl IntoIterator<Item = &'static str>,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let handlers = handlers.into_iter().map(|name| (name, None)).collect();
        let state = State {
            handlers,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Box::new(changed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message was accepted.
    pub(crate) fn sent(&self, handler: &'static str) {
        if self
            .lock()
            .handlers
            .insert(handler, None)
            .flatten()
            .is_some()
        {
            (self.changed)();
        }
    }

    /// A message was not accepted.
    pub(crate) fn failing(&self, handler: &'static str, error: &str) {
        let was = self.lock().handlers.insert(handler, Some(error.to_owned()));
        if was.flatten().as_deref() != Some(error) {
            (self.changed)();
        }
    }

    /// A message was given up.
    pub(crate) fn dropped(&self, handler: &'static str, why: &str) {
        let mut state = self.lock();
        state.dropped += 1;
        state.why = format!("{handler}: {why}");
        drop(state);
        (self.changed)();
    }

    /// How many messages earlier engines of the watch gave up.
    pub(crate) fn dropped_before(&self, count: u64) {
        self.lock().dropped += count;
    }

    pub(crate) fn dropped_so_far(&self) -> u64 {
        self.lock().dropped
    }

    /// Why the last message was given up.
    pub(crate) fn why(&self) -> String {
        self.lock().why.clone()
    }

    /// A kind cannot be watched, and why; or can again.
    pub(crate) fn unwatched(&self, kind: String, error: Option<&str>) {
        let mut state = self.lock();
        let was = match error {
            Some(error) => state.unwatched.insert(kind, error.to_owned()),
            None => state.unwatched.remove(&kind),
        };
        drop(state);
        if was.as_deref() != error {
            (self.changed)();
        }
    }

    pub(crate) fn status(&self) -> WatchStatus {
        let state = self.lock();
        let handlers = state.handlers.iter();
        let handlers = handlers.map(|(name, failing)| HandlerStatus {
            name: (*name).to_owned(),
            failing: failing.clone(),
        });
        let unwatched = state.unwatched.iter();
        let unwatched = unwatched.map(|(kind, error)| format!("{kind}: {error}"));
        WatchStatus {
            handlers: handlers.collect(),
            unwatched: unwatched.collect(),
            dropped: state.dropped,
            ..WatchStatus::default()
        }
    }
}

//! [`History`]: what happened lately, for a person who asks.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::Serialize;

/// How much is remembered of each sort.
const KEPT: usize = 64;

/// The last reconciles, errors and write loops of an operator.
#[derive(Default)]
pub(crate) struct History(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    reconciles: VecDeque<Reconcile>,
    errors: VecDeque<Reconcile>,
    loops: VecDeque<WriteLoop>,
}

/// A reconcile that is over.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reconcile {
    pub(crate) at: Timestamp,
    pub(crate) controller: String,
    pub(crate) object: String,
    #[serde(rename = "reconcileID")]
    pub(crate) id: String,
    pub(crate) causes: String,
    pub(crate) milliseconds: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The same write, again and again.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WriteLoop {
    pub(crate) at: Timestamp,
    pub(crate) controller: String,
    pub(crate) object: String,
    pub(crate) writes: String,
    pub(crate) times: u32,
}

impl History {
    pub(crate) fn reconciled(&self, reconcile: Reconcile) {
        let mut inner = self.lock();
        if reconcile.error.is_some() {
            push(&mut inner.errors, reconcile.clone());
        }
        push(&mut inner.reconciles, reconcile);
    }

    pub(crate) fn looped(&self, write: WriteLoop) {
        push(&mut self.lock().loops, write);
    }

    /// The last reconciles, errors and write loops, the newest first.
    pub(crate) fn read(&self) -> (Vec<Reconcile>, Vec<Reconcile>, Vec<WriteLoop>) {
        let inner = self.lock();
        let newest = |all: &VecDeque<Reconcile>| all.iter().rev().cloned().collect();
        (
            newest(&inner.reconciles),
            newest(&inner.errors),
            inner.loops.iter().rev().cloned().collect(),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<T>(kept: &mut VecDeque<T>, one: T) {
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(one);
}

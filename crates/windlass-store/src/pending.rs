//! Writes on their way to becoming durable.
//!
//! In a durable store a write takes effect for other writes at once (they are checked against it),
//! and is shown to nobody before it is durable: reads and watches see what is *published*. Each
//! table keeps its unpublished changes, so what is published is the present less those.
//!
//! When the disk fails, everything unpublished is taken back and the requests that wait for it are
//! told. Writes are refused from then on, until the journal could be written again.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::journal::Queued;
use super::{Change, ChangeKind, Inner, Key, Store, Stored, Table, TableName, recording};

/// How many failures are remembered for requests that still wait.
const FAILURES_KEPT: usize = 64;

tokio::task_local! {
    /// The first and the last revision that the request under way has written.
    static WRITTEN: Cell<Option<(u64, u64)>>;
}

/// What the store and its writer share.
#[derive(Debug, Default)]
pub(crate) struct State {
    inner: Mutex<Inner>,
    /// The latest published revision, readable without the lock.
    pub(super) revision: AtomicU64,
    /// The latest revision of which is known what became of it.
    settled: AtomicU64,
    /// Wakes requests that wait for theirs.
    settling: Notify,
    /// Wakes the writer.
    queued: Condvar,
    failing: AtomicBool,
    taken_back: AtomicBool,
}

/// The durable part of [`Inner`].
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Queued>,
    /// Why writes are refused.
    failure: Option<Arc<str>>,
    /// Revisions that were never published: first and last of each run, and why.
    lost: VecDeque<(u64, u64, Arc<str>)>,
    stopping: bool,
}

/// What the writer is to do next.
pub(crate) enum Action {
    Write,
    Nothing,
    Stop,
}

/// A write did not become durable.
#[derive(Debug)]
pub struct Lost(pub Arc<str>);

impl State {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while holding the lock leaves whole objects behind: every write is one insertion.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn published(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Acquire)
    }

    /// Waits until there is something to write, for as long as `patience`.
    pub(crate) fn next(&self, patience: Option<Duration>) -> Action {
        let mut inner = self.lock();
        loop {
            if !inner.pending.queue.is_empty() {
                return Action::Write;
            }
            if inner.pending.stopping {
                return Action::Stop;
            }
            inner = match patience {
                None => self
                    .queued
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let (inner, timeout) = self
                        .queued
                        .wait_timeout(inner, patience)
                        .unwrap_or_else(PoisonError::into_inner);
                    if timeout.timed_out() && inner.pending.queue.is_empty() {
                        return Action::Nothing;
                    }
                    inner
                }
            };
        }
    }

    /// Takes the front of the queue, for as long as `more` wants more.
    pub(crate) fn take(&self, mut more: impl FnMut(&Queued) -> bool) -> Vec<Queued> {
        let queue = std::mem::take(&mut self.lock().pending.queue);
        let mut rest = queue.into_iter();
        let mut batch = Vec::with_capacity(rest.len());
        for queued in rest.by_ref() {
            let go_on = more(&queued);
            batch.push(queued);
            if !go_on {
                break;
            }
        }
        if rest.len() > 0 {
            let mut inner = self.lock();
            for queued in rest.rev() {
                inner.pending.queue.push_front(queued);
            }
        }
        batch
    }

    /// Shows durable changes to everybody.
    pub(crate) fn publish(&self, batch: &[Queued]) {
        let Some(last) = batch.last() else { return };
        let revision = last.change.revision;
        {
            let mut inner = self.lock();
            for Queued { table, change } in batch {
                if let Some(table) = inner.tables.get_mut(table) {
                    table.unpublished.pop_front();
                    table.changes.push(change.clone());
                    table.changed.notify_waiters();
                }
            }
            inner.revision = revision;
            self.revision.store(revision, Ordering::Release);
        }
        self.settle(revision);
    }

    pub(super) fn settle(&self, revision: u64) {
        self.settled.fetch_max(revision, Ordering::AcqRel);
        self.settling.notify_waiters();
    }

    /// Takes back everything that is not published, and refuses writes from now on.
    pub(crate) fn fail(&self, error: &io::Error) {
        let why: Arc<str> = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                format!("the disk of the data folder is full ({error}); writes are accepted again once there is room")
            }
            _ => format!("the data folder cannot be written ({error}); it is tried again every second"),
        }
        .into();
        let latest = {
            let mut inner = self.lock();
            inner.pending.queue.clear();
            inner.pending.failure = Some(why.clone());
            let (published, latest) = (inner.revision, inner.latest);
            for table in inner.tables.values_mut() {
                table.take_back();
            }
            if latest > published {
                inner.pending.lost.push_back((published + 1, latest, why));
                if inner.pending.lost.len() > FAILURES_KEPT {
                    inner.pending.lost.pop_front();
                }
                self.taken_back.store(true, Ordering::Release);
            }
            self.failing.store(true, Ordering::Release);
            latest
        };
        self.settle(latest);
    }

    /// Accepts writes again.
    pub(crate) fn recover(&self) {
        self.lock().pending.failure = None;
        self.failing.store(false, Ordering::Release);
    }

    /// Every published object, for a snapshot.
    pub(crate) fn present(&self) -> Vec<(TableName, Vec<Arc<Stored>>)> {
        let mut names: Vec<TableName> = self.lock().tables.keys().cloned().collect();
        names.sort();
        // Locked table by table: only the writer publishes, and it is the one who asks.
        let objects = |name: &TableName| {
            let inner = self.lock();
            let table = inner.tables.get(name);
            table.map_or_else(Vec::new, |table| {
                table.published(None, None).collect::<Vec<_>>()
            })
        };
        names
            .into_iter()
            .map(|name| {
                let objects = objects(&name);
                (name, objects)
            })
            .collect()
    }

    pub(super) fn stop(&self) {
        self.lock().pending.stopping = true;
        self.queued.notify_all();
    }

    /// What became of the revisions from `first` to `last`, all of them settled.
    fn fate(&self, first: u64, last: u64) -> Result<(), Lost> {
        let inner = self.lock();
        let mut failures = inner.pending.lost.iter();
        match failures.find(|(from, to, _)| *from <= last && first <= *to) {
            Some((_, _, why)) => Err(Lost(why.clone())),
            None => Ok(()),
        }
    }
}

impl Inner {
    /// Why nothing can be written at present.
    pub(super) fn refusal(&self) -> Option<Arc<str>> {
        self.pending.failure.clone()
    }
}

impl Table {
    /// Notes a change that is not durable yet.
    pub(super) fn hold(&mut self, change: Arc<Change>) {
        self.unpublished.push_back(change);
    }

    fn take_back(&mut self) {
        for change in std::mem::take(&mut self.unpublished).into_iter().rev() {
            undo(&mut self.objects, &change);
        }
    }

    /// The published objects of `namespace` (all when none) after `after`, in key order.
    pub(super) fn published(
        &self,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = Arc<Stored>> {
        // What unpublished changes hide: per key, what the first of them found.
        let mut hidden: BTreeMap<&Key, Option<&Arc<Stored>>> = BTreeMap::new();
        for change in self.unpublished.iter().rev() {
            hidden.insert(&change.object.key, change.previous.as_ref());
        }
        let wanted = move |key: &Key| {
            after.is_none_or(|after| key > after)
                && namespace.is_none_or(|namespace| key.namespace() == namespace)
        };
        let mut objects: Vec<Arc<Stored>> = super::range(&self.objects, namespace, after)
            .filter(|object| !hidden.contains_key(&object.key))
            .cloned()
            .collect();
        let visible = objects.len();
        objects.extend(
            hidden
                .into_iter()
                .filter(|(key, _)| wanted(key))
                .filter_map(|(_, previous)| previous.cloned()),
        );
        if objects.len() > visible {
            objects.sort_by(|a, b| a.key.cmp(&b.key));
        }
        objects.into_iter()
    }

    /// One published object.
    pub(super) fn published_one(&self, key: &Key) -> Option<Arc<Stored>> {
        match self
            .unpublished
            .iter()
            .find(|change| change.object.key == *key)
        {
            Some(change) => change.previous.clone(),
            None => self.objects.get(key).cloned(),
        }
    }
}

/// Takes one change back.
pub(super) fn undo(objects: &mut BTreeMap<Key, Arc<Stored>>, change: &Change) {
    let key = change.object.key.clone();
    match &change.previous {
        Some(previous) => objects.insert(key, previous.clone()),
        None => objects.remove(&key),
    };
}

impl Store {
    /// Notes a change that the store has made; it is published at once when nothing is on disk.
    pub(super) fn enter(&self, inner: &mut Inner, table: &TableName, change: Arc<Change>) {
        let revision = change.revision;
        inner.latest = revision;
        recording::note(table, &change);
        let Some(found) = inner.tables.get_mut(table) else {
            return;
        };
        if self.durable {
            found.hold(change.clone());
            let table = table.clone();
            inner.pending.queue.push_back(Queued { table, change });
            let noted = |written: &Cell<Option<(u64, u64)>>| {
                let first = written.get().map_or(revision, |(first, _)| first);
                written.set(Some((first, revision)));
            };
            // Not every write is made for a request.
            let _ = WRITTEN.try_with(noted);
            self.state.queued.notify_one();
        } else {
            found.changes.push(change);
            found.changed.notify_waiters();
            inner.revision = revision;
            self.state.revision.store(revision, Ordering::Release);
        }
    }

    /// Runs a request that may write, and waits until what it wrote, or what its answer rests on,
    /// is durable.
    pub async fn durably<T>(&self, request: impl Future<Output = T>) -> Result<T, Lost> {
        if !self.durable {
            return Ok(request.await);
        }
        let watched = async {
            let output = request.await;
            (output, WRITTEN.with(Cell::get))
        };
        let (output, written) = WRITTEN.scope(Cell::new(None), watched).await;
        let (first, last) = written.unwrap_or_else(|| {
            let inner = self.lock();
            (inner.revision + 1, inner.latest)
        });
        loop {
            // Listened for before it is looked: nothing slips through in between.
            let settling = self.state.settling.notified();
            if self.state.settled.load(Ordering::Acquire) >= last {
                break;
            }
            settling.await;
        }
        if first <= last {
            self.state.fate(first, last)?;
        }
        Ok(output)
    }

    /// Waits, on this very thread, until everything written so far is durable: for starting up.
    pub fn flush(&self) -> Result<(), Lost> {
        let (first, last) = {
            let inner = self.lock();
            (inner.revision + 1, inner.latest)
        };
        while self.durable && self.state.settled.load(Ordering::Acquire) < last {
            std::thread::sleep(Duration::from_micros(200));
        }
        if first <= last && self.durable {
            self.state.fate(first, last)?;
        }
        Ok(())
    }

    /// Whether writes were taken back since this was last asked: what follows from them is to be
    /// worked out again.
    pub fn was_taken_back(&self) -> bool {
        self.state.taken_back.load(Ordering::Relaxed)
            && self.state.taken_back.swap(false, Ordering::AcqRel)
    }
}

/// Whether a change leaves its object there.
pub(super) fn stays(kind: ChangeKind) -> bool {
    kind != ChangeKind::Deleted
}

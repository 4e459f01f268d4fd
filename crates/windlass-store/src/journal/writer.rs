//! Who writes to the journal: one thread, which makes what is queued durable and then known.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::snapshot::Snapshot;
use super::{FRAME_TARGET, Journal, record};
use crate::pending::{Action, State};
use crate::{Change, TableName};

/// How often a journal that failed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked whether a snapshot is finished.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);

/// A change that is to become durable.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) table: TableName,
    pub(crate) change: Arc<Change>,
}

/// Takes changes from the store's queue to the disk.
#[derive(Debug)]
pub(crate) struct Writer {
    state: Arc<State>,
    pub(super) journal: Journal,
    /// A snapshot that is being written beside the log.
    snapshot: Option<JoinHandle<(u64, io::Result<u64>)>>,
}

impl Writer {
    pub(crate) fn new(state: Arc<State>, journal: Journal) -> Self {
        Self {
            state,
            journal,
            snapshot: None,
        }
    }

    /// Runs until the store is dropped; what is queued then is still written.
    pub(crate) fn start(mut self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new()
            .name("windlass-store".to_owned())
            .spawn(move || {
                while self.step(self.patience()) {}
                self.finish_snapshot(true);
            })
    }

    #[cfg(test)]
    pub(crate) fn is_failing(&self) -> bool {
        self.state.is_failing()
    }

    fn patience(&self) -> Option<Duration> {
        if self.state.is_failing() {
            Some(RETRY_INTERVAL)
        } else {
            self.snapshot.as_ref().map(|_| SNAPSHOT_INTERVAL)
        }
    }

    /// Waits for something to do, and does it; false once the store is gone.
    pub(crate) fn step(&mut self, patience: Option<Duration>) -> bool {
        match self.state.next(patience) {
            Action::Stop => return false,
            Action::Nothing if self.state.is_failing() => self.repair(),
            Action::Nothing => {}
            Action::Write => self.write(),
        }
        self.finish_snapshot(false);
        if self.snapshot.is_none() && self.journal.wants_snapshot() {
            self.start_snapshot();
        }
        true
    }

    /// Makes durable what is queued, one frame of it.
    fn write(&mut self) {
        let mut payload = Vec::with_capacity(64 * 1024);
        let mut encoded = Ok(());
        let batch = self.state.take(|queued| {
            let Queued { table, change } = queued;
            encoded = record::push_change(&mut payload, table, change.kind, &change.object);
            encoded.is_ok() && payload.len() < FRAME_TARGET
        });
        match encoded.and_then(|()| self.journal.append(&payload)) {
            Ok(()) => self.state.publish(&batch),
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&self, error: &io::Error) {
        tracing::error!(%error, "the store cannot be written: writes are refused until it can");
        self.state.fail(error);
    }

    fn repair(&mut self) {
        match self.journal.repair(self.state.published()) {
            Ok(()) => {
                tracing::warn!("the store can be written again");
                self.state.recover();
            }
            Err(error) => tracing::debug!(%error, "the store still cannot be written"),
        }
    }

    /// Nobody else publishes, so what is published stands still while this thread looks.
    fn start_snapshot(&mut self) {
        let revision = self.state.published();
        let number = match self.journal.rotate(revision) {
            Ok(number) => number,
            Err(error) => return self.fail(&error),
        };
        let snapshot = Snapshot {
            number,
            revision,
            tables: self.state.present(),
        };
        let files = self.journal.files();
        let write = move || (number, snapshot.write(&*files));
        match thread::Builder::new()
            .name("windlass-snapshot".to_owned())
            .spawn(write)
        {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "cannot start a thread to write a snapshot");
                self.journal.snapshot_failed();
            }
        }
    }

    /// Takes note of a snapshot that is written; waits for it if told to.
    pub(crate) fn finish_snapshot(&mut self, wait: bool) {
        let ready = |thread: &mut JoinHandle<_>| wait || thread.is_finished();
        let Some(thread) = self.snapshot.take_if(ready) else {
            return;
        };
        match thread.join() {
            Ok((number, Ok(length))) => self.journal.snapshot_taken(number, length),
            Ok((_, Err(error))) => {
                tracing::warn!(%error, "cannot write a snapshot: the log grows until the next try");
                self.journal.snapshot_failed();
            }
            Err(_) => {
                tracing::error!("writing a snapshot panicked");
                self.journal.snapshot_failed();
            }
        }
    }
}

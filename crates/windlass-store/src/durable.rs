//! A store that outlives its process.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::compaction::Compaction;
use super::journal::{Disk, Files, Journal, JournalError, Record, Recovered, StorageError, Writer};
use super::pending::{self, State};
use super::{Change, ChangeKind, Inner, Store, Stored, TableName};

/// How often the past is given up unless told otherwise.
const COMPACTION_INTERVAL: Duration = Duration::from_mins(5);

impl Store {
    /// The store kept in `folder`, with everything that was acknowledged.
    pub fn kept_in(folder: &Path, compaction_interval: Duration) -> Result<Self, StorageError> {
        let refused = |reason| StorageError {
            folder: folder.to_owned(),
            reason,
        };
        let disk = Disk::open(folder)
            .map_err(JournalError::io("open", "the folder"))
            .map_err(refused)?;
        let (mut store, writer) = Self::recover(Arc::new(disk)).map_err(refused)?;
        let thread = writer
            .start()
            .map_err(JournalError::io("start", "the writer"))
            .map_err(refused)?;
        store.writer = Some(thread);
        store.compaction = Mutex::new(Compaction::every(compaction_interval));
        Ok(store)
    }

    /// Reads a store back. Nothing becomes durable before the writer runs.
    pub(super) fn recover(files: Arc<dyn Files>) -> Result<(Self, Writer), JournalError> {
        let mut inner = Inner::default();
        let journal = Journal::open(files, &mut |recovered| inner.take_over(recovered))?;
        inner.latest = inner.revision;
        let state = Arc::new(State::with(inner));
        let writer = Writer::new(state.clone(), journal);
        Ok((
            Self {
                state,
                durable: true,
                writer: None,
                compaction: Mutex::new(Compaction::every(COMPACTION_INTERVAL)),
            },
            writer,
        ))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.state.stop();
            // It has nothing to say but that it ended.
            let _ = writer.join();
        }
    }
}

impl Inner {
    fn take_over(&mut self, recovered: Recovered) {
        match recovered {
            Recovered::HistoryFrom(revision) => {
                *self = Self {
                    history_from: revision,
                    revision,
                    ..Self::default()
                };
            }
            Recovered::Record(Record::Present(table, object)) => {
                let key = object.key.clone();
                self.table(&table).objects.insert(key, Arc::new(object));
            }
            Recovered::Record(Record::Change(table, kind, object)) => {
                self.redo(&table, kind, object);
            }
            Recovered::Record(Record::End(_)) => {}
        }
    }

    /// Makes a change once more.
    fn redo(&mut self, table: &TableName, kind: ChangeKind, object: Stored) {
        let revision = object.revision;
        let (key, object) = (object.key.clone(), Arc::new(object));
        let table = self.table(table);
        let previous = if pending::stays(kind) {
            table.objects.insert(key, object.clone())
        } else {
            table.objects.remove(&key)
        };
        table.changes.push(Arc::new(Change {
            revision,
            kind,
            object,
            previous,
        }));
        self.revision = revision;
    }
}

impl State {
    pub(super) fn with(inner: Inner) -> Self {
        let state = Self::default();
        let revision = inner.revision;
        state.revision.store(revision, Ordering::Release);
        state.settle(revision);
        *state.lock() = inner;
        state
    }
}

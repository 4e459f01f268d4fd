//! The durable store: a write-ahead log with snapshots.
//!
//! Every object is in memory anyway, so what is on disk is only ever read at start. There are two
//! kinds of files, numbered together:
//! - `N.log` holds the changes after its base revision. Changes that come while a sync is under
//!   way share the next one (group commit).
//! - `N.snapshot` holds every object at the base revision of `N.log`.
//!
//! Rules:
//! 1. A change is told to anybody only after the sync that made it durable (`writer`).
//! 2. A file gets its name after its content is durable: it is written under another name, synced,
//!    renamed, and the folder is synced. So there are no half-made files, only ends of logs.
//! 3. The end of the last log may be cut off, nothing else (`frame` says how that is known).
//! 4. After an error the end of a log is never written to again: a kernel that failed to sync may
//!    say yes the next time without having written. The next log starts at the last durable
//!    revision, and what the old one has beyond it counts as never written.
//! 5. Two snapshots are kept, and reading starts at the older one: so the changes since then are
//!    known after a restart, and watches go on from where they were. Older files are removed.
//! 6. Damage to what only the past is read from costs the past: where reading from the older
//!    snapshot fails, it starts at the newer one, which holds everything that was acknowledged.

mod error;
mod file;
mod frame;
mod record;
mod recovery;
mod snapshot;
mod writer;

#[cfg(any(test, feature = "test-util"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "only tests of this crate use all of it")
)]
mod forgetful;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

pub(crate) use error::JournalError;
pub use error::StorageError;
pub(crate) use file::{Disk, Files, Growing};
#[cfg(any(test, feature = "test-util"))]
pub(crate) use forgetful::Forgetful;
pub(crate) use record::Record;
pub(crate) use recovery::Recovered;
pub(crate) use writer::{Queued, Writer};

use frame::{FileKind, HEADER_LENGTH, Header};

/// A log is followed by a new one, and a snapshot taken, when the logs since the last snapshot are
/// this long and as long as that snapshot.
const SNAPSHOT_AFTER: u64 = 16 * 1024 * 1024;
/// Or when there are this many of them: each failure starts a log.
const LOGS_KEPT: u64 = 32;
/// How much room there must be for a new log.
const ROOM: usize = 16 * 1024;
/// After a frame's payload reached this size the rest waits for the next frame.
const FRAME_TARGET: usize = 4 * 1024 * 1024;

/// The files, and where the next change goes.
#[derive(Debug)]
pub(crate) struct Journal {
    files: Arc<dyn Files>,
    /// `None` after an error, until there is a new one.
    log: Option<Box<dyn Growing>>,
    /// The number of the last log.
    number: u64,
    /// How much of the last log is durable.
    length: u64,
    logs: BTreeSet<u64>,
    snapshots: BTreeSet<u64>,
    /// How long the logs since the latest snapshot are, the last one aside.
    earlier: u64,
    /// How long they may get, and the last one's number.
    limit: u64,
    number_limit: u64,
    snapshot_after: u64,
}

impl Journal {
    /// Reads everything back, telling it to `sink` in order, and is ready for more.
    pub(crate) fn open(
        files: Arc<dyn Files>,
        sink: &mut dyn FnMut(Recovered),
    ) -> Result<Self, JournalError> {
        let found = recovery::recover(&*files, sink)?;
        let mut journal = Self {
            files,
            log: None,
            number: 0,
            length: 0,
            logs: BTreeSet::new(),
            snapshots: BTreeSet::new(),
            earlier: 0,
            limit: SNAPSHOT_AFTER,
            number_limit: LOGS_KEPT,
            snapshot_after: SNAPSHOT_AFTER,
        };
        let Some(found) = found else {
            let begin = JournalError::io("create", "the first log");
            journal.start_log(1, 0).map_err(begin)?;
            return Ok(journal);
        };
        let name = file_name(FileKind::Log, found.number);
        let reopen = || {
            let mut log = journal.files.open(&name)?;
            if let Some(torn) = found.torn {
                tracing::warn!(
                    file = name,
                    "cutting off {torn} bytes of a write that was not finished when the server ended"
                );
                log.truncate(found.length)?;
            }
            // What a killed server had written but not synced is shown from now on: make it last. It
            // is written again, because its own sync may have failed, and the kernel forgets that.
            log.rewrite(found.last_frame.0, &found.last_frame.1)?;
            log.sync()?;
            journal.files.sync_folder()?;
            Ok(log)
        };
        journal.log = Some(reopen().map_err(JournalError::io("open", &name))?);
        journal.number = found.number;
        journal.length = found.length;
        journal.logs = found.logs;
        journal.snapshots = found.snapshots;
        journal.earlier = found.earlier;
        journal.limit = journal.snapshot_after.max(found.snapshot_length);
        journal.number_limit = journal.latest_snapshot() + LOGS_KEPT;
        journal.remove_old();
        Ok(journal)
    }

    /// Takes snapshots earlier than usual, for tests of what happens then.
    #[cfg(test)]
    pub(crate) fn snapshot_after(&mut self, bytes: u64) {
        self.snapshot_after = bytes;
        self.limit = bytes;
    }

    /// Makes one frame of changes durable.
    pub(crate) fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        let log = self
            .log
            .as_mut()
            .ok_or_else(|| io::Error::other("the log is closed after an error"))?;
        let mut bytes = Vec::with_capacity(payload.len() + 64);
        frame::push_frame(&mut bytes, self.length, payload)?;
        let written = log.append(&bytes).and_then(|()| log.sync());
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            Err(_) => self.log = None,
        }
        written
    }

    /// After an error: goes on in a new log that follows `revision`, the last durable one.
    pub(crate) fn repair(&mut self, revision: u64) -> io::Result<()> {
        // What is left of the failed write may be what fills the disk.
        if let Ok(mut old) = self.files.open(&file_name(FileKind::Log, self.number)) {
            let _ = old.truncate(self.length).and_then(|()| old.sync());
        }
        // A log that never got anything is made anew: a disk that stays full leaves no trail of them.
        let unused = self.length == HEADER_LENGTH as u64;
        let number = self.number + u64::from(!unused);
        self.start_log(number, revision)
    }

    /// Whether it is time for a snapshot.
    pub(crate) fn wants_snapshot(&self) -> bool {
        self.log.is_some()
            && (self.earlier + self.length > self.limit || self.number > self.number_limit)
    }

    fn latest_snapshot(&self) -> u64 {
        self.snapshots.last().copied().unwrap_or(1)
    }

    /// Starts the log that a snapshot of `revision` is to stand before; tells the snapshot's number.
    pub(crate) fn rotate(&mut self, revision: u64) -> io::Result<u64> {
        // Whether the new log has its name by now is not known after an error: the old one must not
        // grow beyond where the new one starts.
        self.log = None;
        self.start_log(self.number + 1, revision)?;
        self.earlier = 0;
        Ok(self.number)
    }

    /// There is a new snapshot: what came before the one before it is no longer needed.
    pub(crate) fn snapshot_taken(&mut self, number: u64, length: u64) {
        self.snapshots.insert(number);
        self.limit = self.snapshot_after.max(length);
        self.number_limit = number + LOGS_KEPT;
        self.remove_old();
    }

    /// There is none; it is tried again after as much again was written.
    pub(crate) fn snapshot_failed(&mut self) {
        self.limit = self.earlier + self.length + self.snapshot_after;
        self.number_limit = self.number + LOGS_KEPT;
    }

    pub(crate) fn files(&self) -> Arc<dyn Files> {
        self.files.clone()
    }

    fn start_log(&mut self, number: u64, base: u64) -> io::Result<()> {
        let kind = FileKind::Log;
        let header = Header { kind, number, base }.encode();
        let name = file_name(kind, number);
        let log = create_durably(&*self.files, &name, |file| {
            // No use in a log that has no room for anything.
            file.append(&header)?;
            file.append(&[0; ROOM])?;
            file.sync()?;
            file.truncate(HEADER_LENGTH as u64)
        })?;
        self.log = Some(log);
        self.number = number;
        self.logs.insert(number);
        self.earlier += self.length;
        self.length = HEADER_LENGTH as u64;
        Ok(())
    }

    /// Removes what reading will not begin with. Not to succeed costs room, nothing else.
    fn remove_old(&mut self) {
        while self.snapshots.len() > 2 {
            if let Some(number) = self.snapshots.pop_first() {
                self.remove(FileKind::Snapshot, number);
            }
        }
        let first = match self.snapshots.len() {
            2 => self.snapshots.first().copied().unwrap_or_default(),
            _ => return,
        };
        while let Some(number) = self.logs.first().copied().filter(|number| *number < first) {
            self.logs.remove(&number);
            self.remove(FileKind::Log, number);
        }
        if let Err(error) = self.files.sync_folder() {
            tracing::warn!(%error, "cannot sync the store's folder after removing old files");
        }
    }

    fn remove(&self, kind: FileKind, number: u64) {
        let name = file_name(kind, number);
        if let Err(error) = self.files.remove(&name) {
            tracing::warn!(%error, file = name, "cannot remove an old file of the store");
        }
    }
}

fn file_name(kind: FileKind, number: u64) -> String {
    format!("{number:08}.{}", kind.noun())
}

/// Makes a file that is there with its whole content, or not at all; it can be written on.
fn create_durably(
    files: &dyn Files,
    name: &str,
    write: impl FnOnce(&mut dyn Growing) -> io::Result<()>,
) -> io::Result<Box<dyn Growing>> {
    let unfinished = format!("{name}{}", recovery::UNFINISHED);
    let make = || {
        let mut file = files.create(&unfinished)?;
        write(&mut *file)?;
        file.sync()?;
        files.rename(&unfinished, name)?;
        files.sync_folder()?;
        Ok(file)
    };
    make().inspect_err(|_| {
        // It takes room that somebody may need.
        let _ = files.remove(&unfinished);
    })
}

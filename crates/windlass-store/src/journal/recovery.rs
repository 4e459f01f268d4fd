//! Reading everything back.

use std::collections::BTreeSet;
use std::ops::Range;

use super::error::JournalError;
use super::file::Files;
use super::file_name;
use super::frame::{self, FileKind, HEADER_LENGTH, Header};
use super::record::{Record, Records};

/// How the name of a file ends that is still being made.
pub(super) const UNFINISHED: &str = ".unfinished";

/// What reading back tells, in order.
#[derive(Debug)]
pub(crate) enum Recovered {
    /// Changes are known after this revision, not before. Comes first, and whatever came before it
    /// is void: reading has begun again from another file.
    HistoryFrom(u64),
    /// An object or a change.
    Record(Record),
}

/// What the folder holds.
pub(super) struct Found {
    /// The last log, and how much of it is good.
    pub(super) number: u64,
    pub(super) length: u64,
    /// Where the last good frame of that log is, and its bytes; none when there is no frame.
    pub(super) last_frame: (u64, Vec<u8>),
    /// How many bytes after that are not.
    pub(super) torn: Option<usize>,
    pub(super) logs: BTreeSet<u64>,
    pub(super) snapshots: BTreeSet<u64>,
    /// How long the logs since the latest snapshot are, the last one aside.
    pub(super) earlier: u64,
    pub(super) snapshot_length: u64,
}

/// Reads the folder. `None` when there is nothing in it.
pub(super) fn recover(
    files: &dyn Files,
    sink: &mut dyn FnMut(Recovered),
) -> Result<Option<Found>, JournalError> {
    let (logs, snapshots) = look(files)?;
    let Some(last) = logs.last().copied() else {
        return match snapshots.last() {
            None => Ok(None),
            Some(number) => Err(JournalError::Missing(file_name(FileKind::Log, *number))),
        };
    };
    if let Some(number) = snapshots.last().filter(|number| **number > last) {
        return Err(JournalError::Missing(file_name(FileKind::Log, *number)));
    }
    // The first log follows nothing, so it needs no snapshot.
    let starts = std::iter::once(1).chain(snapshots.iter().copied());
    let whole = |start: &u64| (*start..=last).all(|number| logs.contains(&number));
    let starts: Vec<u64> = starts.filter(whole).collect();
    let Some((newest, older)) = starts.split_last() else {
        let missing = (1..last).rev().find(|number| !logs.contains(number));
        let name = file_name(FileKind::Log, missing.unwrap_or(1));
        return Err(JournalError::Missing(name));
    };
    let folder = Folder {
        files,
        last,
        logs: &logs,
        snapshots: &snapshots,
    };
    for start in older {
        match folder.read(*start, sink) {
            Ok(found) => return Ok(Some(found)),
            // Only the past is read from there: a later snapshot holds what was acknowledged.
            Err(error) => {
                tracing::warn!(%error, "an older file of the store is damaged; starting from a newer one");
            }
        }
    }
    folder.read(*newest, sink).map(Some)
}

/// The files of a folder.
struct Folder<'a> {
    files: &'a dyn Files,
    /// The number of the last log.
    last: u64,
    logs: &'a BTreeSet<u64>,
    snapshots: &'a BTreeSet<u64>,
}

impl Folder<'_> {
    /// Reads everything from the snapshot or log of this number on.
    fn read(&self, start: u64, sink: &mut dyn FnMut(Recovered)) -> Result<Found, JournalError> {
        let Self {
            files,
            last,
            logs,
            snapshots,
        } = *self;
        let mut revision = 0;
        let mut snapshot_length = 0;
        if snapshots.contains(&start) {
            (revision, snapshot_length) = read_snapshot(files, start, sink)?;
        } else {
            sink(Recovered::HistoryFrom(0));
        }
        let latest = snapshots.last().copied().unwrap_or(start);
        let (mut earlier, mut length, mut torn) = (0, 0, None);
        let mut last_frame = (0, Vec::new());
        let mut next = Some(Log::read(files, start)?);
        for number in start..=last {
            let Some(log) = next.take() else { break };
            if log.header.base != revision {
                return Err(JournalError::Gap {
                    name: log.name,
                    base: log.header.base,
                    revision,
                });
            }
            if number < last {
                let following = Log::read(files, number + 1)?;
                // What a log has beyond the start of the next was told to nobody.
                (revision, _) = log.replay(revision, following.header.base, sink)?;
                next = Some(following);
                if number >= latest {
                    earlier += log.bytes.len() as u64;
                }
            } else {
                let ends;
                (_, ends) = log.replay(revision, u64::MAX, sink)?;
                let good = ends.end;
                if let Some(offset) = frame::frame_after(&log.bytes, good) {
                    tracing::error!(
                        file = log.name,
                        offset,
                        "a whole frame follows a damaged one"
                    );
                    return Err(JournalError::Damaged {
                        name: log.name,
                        offset: good,
                    });
                }
                length = good as u64;
                last_frame = (ends.start as u64, log.bytes[ends].to_vec());
                torn = Some(log.bytes.len() - good).filter(|torn| *torn > 0);
            }
        }
        Ok(Found {
            number: last,
            length,
            last_frame,
            torn,
            logs: logs.clone(),
            snapshots: snapshots.clone(),
            earlier,
            snapshot_length,
        })
    }
}

/// The numbers of the logs and snapshots there are. Files that were never finished are removed.
fn look(files: &dyn Files) -> Result<(BTreeSet<u64>, BTreeSet<u64>), JournalError> {
    let (mut logs, mut snapshots) = (BTreeSet::new(), BTreeSet::new());
    let names = files
        .list()
        .map_err(JournalError::io("list", "the folder"))?;
    for name in names {
        if name.ends_with(UNFINISHED) {
            files
                .remove(&name)
                .map_err(JournalError::io("remove", &name))?;
            continue;
        }
        let parsed = name
            .split_once('.')
            .and_then(|(number, kind)| Some((number.parse::<u64>().ok()?, kind)));
        match parsed {
            Some((number, "log")) => logs.insert(number),
            Some((number, "snapshot")) => snapshots.insert(number),
            // Somebody else's: it is left alone.
            _ => continue,
        };
    }
    Ok((logs, snapshots))
}

fn read_snapshot(
    files: &dyn Files,
    number: u64,
    sink: &mut dyn FnMut(Recovered),
) -> Result<(u64, u64), JournalError> {
    let kind = FileKind::Snapshot;
    let name = file_name(kind, number);
    let bytes = files.read(&name).map_err(JournalError::io("read", &name))?;
    let header = Header::decode(kind, &bytes).map_err(|source| JournalError::Header {
        name: name.clone(),
        source,
    })?;
    sink(Recovered::HistoryFrom(header.base));
    let (mut at, mut objects) = (HEADER_LENGTH, 0);
    let damaged = |offset| JournalError::Damaged {
        name: name.clone(),
        offset,
    };
    loop {
        let (payload, end) = frame::frame_at(&bytes, at).ok_or_else(|| damaged(at))?;
        for record in Records::of(payload) {
            match record {
                Ok(Record::End(count)) if count == objects && end == bytes.len() => {
                    return Ok((header.base, bytes.len() as u64));
                }
                Ok(record @ Record::Present(..)) => {
                    objects += 1;
                    sink(Recovered::Record(record));
                }
                _ => return Err(damaged(at)),
            }
        }
        at = end;
    }
}

/// A log as it was read.
struct Log {
    name: String,
    header: Header,
    bytes: Vec<u8>,
}

impl Log {
    fn read(files: &dyn Files, number: u64) -> Result<Self, JournalError> {
        let kind = FileKind::Log;
        let name = file_name(kind, number);
        let bytes = files.read(&name).map_err(JournalError::io("read", &name))?;
        match Header::decode(kind, &bytes) {
            Ok(header) if header.number == number => Ok(Self {
                name,
                header,
                bytes,
            }),
            Ok(_) => Err(JournalError::Header {
                name,
                source: frame::HeaderError::Damaged,
            }),
            Err(source) => Err(JournalError::Header { name, source }),
        }
    }

    /// Tells the changes after `revision` up to `limit`; returns the last one's revision, and where
    /// the last good frame is.
    fn replay(
        &self,
        mut revision: u64,
        limit: u64,
        sink: &mut dyn FnMut(Recovered),
    ) -> Result<(u64, Range<usize>), JournalError> {
        let (mut start, mut at) = (HEADER_LENGTH, HEADER_LENGTH);
        while let Some((payload, end)) = frame::frame_at(&self.bytes, at) {
            for record in Records::of(payload) {
                match record {
                    Ok(Record::Change(table, kind, object)) if object.revision > revision => {
                        if object.revision > limit {
                            return Ok((revision, start..at));
                        }
                        revision = object.revision;
                        sink(Recovered::Record(Record::Change(table, kind, object)));
                    }
                    _ => {
                        return Err(JournalError::Damaged {
                            name: self.name.clone(),
                            offset: at,
                        });
                    }
                }
            }
            (start, at) = (at, end);
        }
        Ok((revision, start..at))
    }
}

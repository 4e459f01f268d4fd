//! A disk for tests: it forgets what was not synced, tears the last write, fills up, and fails.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file::{Files, Growing};

/// A folder in memory. Clones are the same folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgetful(Arc<Mutex<Disk>>);

/// What is in the folder, and what of it would survive a power cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    contents: BTreeMap<u64, Content>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    next: u64,
    /// Sync calls that do nothing.
    pub(crate) no_sync: bool,
    pub(crate) no_folder_sync: bool,
    /// How many bytes still fit; `None` for any number.
    pub(crate) room: Option<usize>,
    /// How many of the next syncs fail.
    pub(crate) failing_syncs: usize,
    pub(crate) syncs: usize,
    /// What was acknowledged so far, as the test says.
    pub(crate) acknowledged: u64,
    /// The disk as it was at every instant, if asked for.
    moments: Option<Vec<Disk>>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    written: Vec<u8>,
    durable: Vec<u8>,
    /// What a failed sync left behind: it is thought to be written, and never will be.
    poisoned: Vec<Range<usize>>,
    /// What was written once more since the last sync.
    rewritten: Vec<Range<usize>>,
}

/// What a power cut leaves of a write that was not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tear {
    /// Its beginning.
    Prefix,
    /// Its length, with nothing but its beginning in it.
    ZeroedTail,
    /// Its length, with nothing but its end in it.
    ZeroedHead,
}

/// Where the power was cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) tear: Tear,
    /// How many bytes of each unsynced write the tear is away from its start.
    pub(crate) bytes: usize,
    /// Whether creations, renames and removals that were not synced happened.
    pub(crate) names_kept: bool,
}

impl Disk {
    /// The longest write that is not synced.
    pub(crate) fn unsynced(&self) -> usize {
        let unsynced = |content: &Content| content.written.len().abs_diff(content.durable.len());
        self.contents.values().map(unsynced).max().unwrap_or(0)
    }

    /// The folder after a power cut.
    pub(crate) fn after(&self, cut: Cut) -> Forgetful {
        let names = if cut.names_kept {
            self.names.clone()
        } else {
            self.durable_names.clone()
        };
        let contents = self
            .contents
            .iter()
            .map(|(id, content)| (*id, content.after(cut)))
            .collect();
        Forgetful(Arc::new(Mutex::new(Self {
            contents,
            durable_names: names.clone(),
            names,
            next: self.next,
            acknowledged: self.acknowledged,
            ..Self::default()
        })))
    }

    fn note(&mut self) {
        if let Some(mut moments) = self.moments.take() {
            moments.push(self.clone());
            self.moments = Some(moments);
        }
    }

    fn content(&mut self, id: u64) -> &mut Content {
        self.contents.entry(id).or_default()
    }
}

impl Content {
    fn after(&self, cut: Cut) -> Self {
        let mut left = self.durable.clone();
        if self.written.len() < self.durable.len() {
            // Cut off, but not for sure.
            if cut.names_kept {
                left.truncate(self.written.len());
            }
        } else {
            let torn = &self.written[self.durable.len()..];
            let (head, tail) = torn.split_at(cut.bytes.min(torn.len()));
            match cut.tear {
                Tear::Prefix => left.extend_from_slice(head),
                Tear::ZeroedTail => {
                    left.extend_from_slice(head);
                    left.resize(self.written.len(), 0);
                }
                Tear::ZeroedHead => {
                    left.resize(left.len() + head.len(), 0);
                    left.extend_from_slice(tail);
                }
            }
        }
        for range in &self.poisoned {
            let end = range.end.min(left.len());
            left[range.start.min(end)..end].fill(0);
        }
        Self {
            written: left.clone(),
            durable: left,
            ..Self::default()
        }
    }
}

impl Forgetful {
    pub(crate) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the disk as it is at every instant from now on.
    pub(crate) fn remember(&self) {
        self.disk().moments = Some(Vec::new());
    }

    pub(crate) fn moments(&self) -> Vec<Disk> {
        let mut disk = self.disk();
        disk.note();
        disk.moments.take().unwrap_or_default()
    }

    /// Every file, by name.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let disk = self.disk();
        let content = |(name, id): (&String, &u64)| {
            let written = disk.contents.get(id).map(|content| content.written.clone());
            (name.clone(), written.unwrap_or_default())
        };
        disk.names.iter().map(content).collect()
    }

    /// Puts a file there, durably.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let mut disk = self.disk();
        let id = disk.next;
        disk.next += 1;
        let content = disk.content(id);
        content.written = bytes.to_vec();
        content.durable = bytes.to_vec();
        disk.names.insert(name.to_owned(), id);
        disk.durable_names.insert(name.to_owned(), id);
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Files for Forgetful {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.contents().remove(name).ok_or_else(missing)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let mut disk = self.disk();
        if disk.room == Some(0) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let id = disk.next;
        disk.next += 1;
        disk.content(id);
        disk.names.insert(name.to_owned(), id);
        disk.note();
        Ok(Box::new(OnDisk(self.clone(), id)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let id = *self.disk().names.get(name).ok_or_else(missing)?;
        Ok(Box::new(OnDisk(self.clone(), id)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        let id = disk.names.remove(from).ok_or_else(missing)?;
        disk.names.insert(to.to_owned(), id);
        disk.note();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.names.remove(name).ok_or_else(missing)?;
        disk.note();
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.note();
        if !disk.no_folder_sync {
            disk.durable_names = disk.names.clone();
        }
        Ok(())
    }
}

#[derive(Debug)]
struct OnDisk(Forgetful, u64);

impl Growing for OnDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.disk();
        let fits = disk.room.unwrap_or(usize::MAX).min(bytes.len());
        disk.room = disk.room.map(|room| room - fits);
        disk.content(self.1)
            .written
            .extend_from_slice(&bytes[..fits]);
        disk.note();
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.disk();
        disk.syncs += 1;
        let failing = disk.failing_syncs > 0;
        disk.failing_syncs = disk.failing_syncs.saturating_sub(1);
        let no_sync = disk.no_sync;
        let content = disk.content(self.1);
        if failing {
            let range = content.durable.len().min(content.written.len())..content.written.len();
            content.poisoned.push(range);
            return Err(io::Error::other("the disk is broken"));
        }
        if !no_sync {
            content.durable = content.written.clone();
            let rewritten = std::mem::take(&mut content.rewritten);
            let mended = |lost: &Range<usize>| {
                let covers =
                    |range: &Range<usize>| range.start <= lost.start && lost.end <= range.end;
                rewritten.iter().any(covers)
            };
            content.poisoned.retain(|lost| !mended(lost));
        }
        disk.note();
        Ok(())
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let mut disk = self.0.disk();
        let content = disk.content(self.1);
        let range = start..start + bytes.len();
        assert_eq!(
            &content.written[range.clone()],
            bytes,
            "it is there already"
        );
        content.rewritten.push(range);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut disk = self.0.disk();
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let content = disk.content(self.1);
        let freed = content.written.len().saturating_sub(length);
        content.written.truncate(length);
        for range in &mut content.poisoned {
            range.end = range.end.min(length).max(range.start);
        }
        content.poisoned.retain(|range| !range.is_empty());
        disk.room = disk.room.map(|room| room + freed);
        disk.note();
        Ok(())
    }
}

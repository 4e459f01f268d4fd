//! The latest changes of one table, oldest first.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::Stored;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Added,
    /// It was updated.
    Modified,
    /// It was deleted.
    Deleted,
}

/// One write.
#[derive(Debug)]
pub struct Change {
    /// The revision of the write.
    pub revision: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// The object after the write; for a deletion, what it was, at the deletion's revision.
    pub object: Arc<Stored>,
    /// The object before the write.
    pub previous: Option<Arc<Stored>>,
}

impl Change {
    /// The object before the write, at the write's revision: what a watch shows of an object that
    /// leaves its selector.
    pub fn previous_at_this_revision(&self) -> Option<Bytes> {
        self.previous
            .as_ref()
            .map(|previous| previous.json_at(self.revision))
    }
}

/// How many bytes of objects a table's changes may keep alive, whatever their number.
const BYTES_KEPT: usize = 32 * 1024 * 1024;

/// A bounded log of changes.
#[derive(Debug)]
pub(crate) struct Changes {
    kept: VecDeque<Arc<Change>>,
    capacity: usize,
    /// How long the objects in it are.
    bytes: usize,
    /// The revision of the newest change that was dropped.
    dropped_through: u64,
}

impl Changes {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            capacity,
            bytes: 0,
            dropped_through: 0,
        }
    }

    pub(crate) fn push(&mut self, change: Arc<Change>) {
        self.bytes += change.object.json.len();
        self.kept.push_back(change);
        // The latest stays, however long it is.
        while self.kept.len() > self.capacity || (self.bytes > BYTES_KEPT && self.kept.len() > 1) {
            let Some(dropped) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= dropped.object.json.len();
            self.dropped_through = dropped.revision;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The revision of the latest change.
    pub(crate) fn latest(&self) -> u64 {
        self.kept
            .back()
            .map_or(self.dropped_through, |change| change.revision)
    }

    /// Counts everything up to `revision` as dropped.
    pub(crate) fn forget_through(&mut self, revision: u64) {
        self.dropped_through = self.dropped_through.max(revision);
    }

    /// The changes after `revision`; when some of them were dropped, the oldest revision that has all.
    pub(crate) fn after(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Arc<Change>>, u64> {
        if revision < self.dropped_through {
            return Err(self.dropped_through);
        }
        let start = self
            .kept
            .partition_point(|change| change.revision <= revision);
        Ok(self.kept.range(start..))
    }
}

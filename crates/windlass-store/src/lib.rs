//! Where objects live.
//!
//! Every object is kept once, as its encoded JSON beside the metadata that look-ups, selectors
//! and watches need: a read sends the stored bytes and parses nothing. One counter numbers every
//! write of the whole store; it is the `resourceVersion` clients see. Each table (one per
//! resource) keeps its latest changes, old and new object both: a watch is a cursor over them,
//! and a page of a list at an older version is the present with the later changes undone.
//!
//! A write names the revision it was made from. Nothing is decided under the lock but "is that
//! still the revision": admission, defaults, validation and encoding happen before, and the loser
//! of a race is told so.
//!
//! In memory a write is known to everybody at once. With a data folder (`journal`) it is known to
//! other writes at once and shown to readers and watches when it is durable (`pending`): decisions
//! look at the present, answers at what is [`Store::published`].

mod changes;
mod compaction;
mod contents;
mod durable;
mod journal;
mod key;
mod object;
mod pending;
mod recording;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use compaction::Compaction;
use serde_json::Value;
use tokio::sync::Notify;

pub use changes::{Change, ChangeKind};
pub use contents::Contents;
pub use journal::StorageError;
pub use key::Key;
pub(crate) use object::{Draft, Layout};
pub use object::{Fields, Stored, field_text};
pub use pending::Lost;
pub use recording::{Recorded, recording};
pub use windlass_apimachinery::{Labelled, Labels};

/// How many bytes an object may have, as in etcd. One that has more from earlier may still shrink.
pub const MOST_BYTES: usize = 1536 * 1024;
/// How many changes a table remembers. A watch or a page that needs older ones is told to start over.
const CHANGES_KEPT: usize = 8_192;

/// One resource's objects, named `plural.group`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName(Arc<str>);

impl TableName {
    /// The table of a resource.
    pub fn new(group: &str, plural: &str) -> Self {
        Self(if group.is_empty() {
            plural.into()
        } else {
            format!("{plural}.{group}").into()
        })
    }

    fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a write did not happen.
#[derive(Debug)]
pub enum WriteError {
    /// Create found an object of that key.
    Exists,
    /// Update or delete found none.
    Missing,
    /// The object is not at the revision the write was made from.
    Changed,
    /// The object could not be encoded.
    Encode(serde_json::Error),
    /// The object, which comes back encoded, has more bytes than one may have.
    TooLarge(Vec<u8>),
    /// The disk cannot take it.
    Storage(Arc<str>),
}

/// The revision asked for is no longer (or not yet) there.
#[derive(Debug, PartialEq, Eq)]
pub enum RevisionError {
    /// Older than what is remembered; carries the oldest one that could be served.
    Compacted(u64),
    /// Later than the present.
    Future,
}

/// All objects of a server.
#[derive(Debug)]
pub struct Store {
    state: Arc<pending::State>,
    /// Whether it outlives the process.
    durable: bool,
    /// Writes to disk, if anything is kept there.
    writer: Option<JoinHandle<()>>,
    compaction: Mutex<Compaction>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The latest revision that everybody may see.
    revision: u64,
    /// The latest revision there is.
    latest: u64,
    /// Changes up to this revision are not remembered.
    history_from: u64,
    tables: HashMap<TableName, Table>,
    pending: pending::Pending,
}

impl Inner {
    fn table(&mut self, name: &TableName) -> &mut Table {
        let history_from = self.history_from;
        self.tables
            .entry(name.clone())
            .or_insert_with(|| Table::new(history_from))
    }
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    changes: changes::Changes,
    /// Changes that are not durable yet, oldest first.
    unpublished: VecDeque<Arc<Change>>,
    /// Wakes the table's watches, in the order they came: two runs of one seed stay alike.
    changed: Arc<Notify>,
}

impl Table {
    fn new(history_from: u64) -> Self {
        let mut changes = changes::Changes::new(CHANGES_KEPT);
        changes.forget_through(history_from);
        Self {
            objects: BTreeMap::new(),
            changes,
            unpublished: VecDeque::new(),
            changed: Arc::default(),
        }
    }

    /// The objects as they were at `revision`.
    fn at(&self, revision: u64) -> Result<BTreeMap<Key, Arc<Stored>>, RevisionError> {
        let mut objects = self.objects.clone();
        for change in self.unpublished.iter().rev() {
            pending::undo(&mut objects, change);
        }
        for change in self
            .changes
            .after(revision)
            .map_err(RevisionError::Compacted)?
            .rev()
        {
            pending::undo(&mut objects, change);
        }
        Ok(objects)
    }
}

/// What a list found.
pub struct Listing {
    /// The revision the answer is true for.
    pub revision: u64,
    /// What it found, in the order of keys.
    pub objects: Vec<Arc<Stored>>,
}

impl Store {
    /// An empty store that lets go of the past at this interval.
    pub fn new(compaction_interval: Duration) -> Self {
        Self {
            state: Arc::default(),
            durable: false,
            writer: None,
            compaction: Mutex::new(Compaction::every(compaction_interval)),
        }
    }

    /// The oldest revision that a list may ask for, while `revision` is the present one.
    fn oldest(&self, revision: u64) -> u64 {
        let mut compaction = self
            .compaction
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        compaction.oldest(revision)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock()
    }

    /// The revision of the latest write that everybody may see.
    pub fn revision(&self) -> u64 {
        self.state.published()
    }

    /// Why nothing can be written at present, if nothing can.
    pub fn refusal(&self) -> Option<Arc<str>> {
        self.lock().refusal()
    }

    /// What may be shown: of a write that is not durable yet, nothing.
    pub fn published(&self) -> Published<'_> {
        Published(self)
    }

    /// The object as the next write finds it.
    pub fn get(&self, table: &TableName, key: &Key) -> Option<Arc<Stored>> {
        self.lock().tables.get(table)?.objects.get(key).cloned()
    }

    /// Whether the table has an object for which `wanted` holds.
    pub fn any(&self, table: &TableName, wanted: impl Fn(&Stored) -> bool) -> bool {
        self.lock()
            .tables
            .get(table)
            .is_some_and(|table| table.objects.values().any(|object| wanted(object)))
    }

    /// Objects of `namespace` (all when none) after `after`, in key order, as the next write finds
    /// them, or as they were at `revision`.
    pub fn list(
        &self,
        table: &TableName,
        namespace: Option<&str>,
        after: Option<&Key>,
        revision: Option<u64>,
    ) -> Result<Listing, RevisionError> {
        if revision.is_some() {
            return self.published().list(table, namespace, after, revision);
        }
        let inner = self.lock();
        let table = inner.tables.get(table);
        Ok(Listing {
            revision: inner.latest,
            objects: table.map_or_else(Vec::new, |table| {
                range(&table.objects, namespace, after).cloned().collect()
            }),
        })
    }

    /// Stores a new object. `selectable` names the fields that field selectors may use.
    pub fn create(
        &self,
        table: &TableName,
        key: Key,
        value: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        self.commit(table, key, ChangeKind::Added, None, value, selectable)
    }

    /// Replaces the object that was at revision `from`.
    pub fn update(
        &self,
        table: &TableName,
        key: Key,
        from: u64,
        value: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        self.commit(
            table,
            key,
            ChangeKind::Modified,
            Some(from),
            value,
            selectable,
        )
    }

    /// Removes the object that was at revision `from`; watches see `last` as what it was.
    pub fn delete(
        &self,
        table: &TableName,
        key: Key,
        from: u64,
        last: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        self.commit(
            table,
            key,
            ChangeKind::Deleted,
            Some(from),
            last,
            selectable,
        )
    }

    /// The one place where anything is written.
    fn commit(
        &self,
        table: &TableName,
        key: Key,
        kind: ChangeKind,
        from: Option<u64>,
        value: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        let draft = Draft::encode(value, selectable).map_err(WriteError::Encode)?;
        let mut inner = self.lock();
        if let Some(why) = inner.refusal() {
            return Err(WriteError::Storage(why));
        }
        self.oldest(inner.revision);
        let revision = inner.latest + 1;
        let found = inner.table(table);
        let previous = found.objects.get(&key).cloned();
        check(previous.as_ref(), from)?;
        let before = previous.as_ref().map_or(0, |previous| previous.json.len());
        if pending::stays(kind) && draft.len() > MOST_BYTES.max(before) {
            return Err(WriteError::TooLarge(draft.into_json()));
        }
        let object = Arc::new(draft.at(key.clone(), revision));
        if pending::stays(kind) {
            found.objects.insert(key, object.clone());
        } else {
            found.objects.remove(&key);
        }
        let change = Arc::new(Change {
            revision,
            kind,
            object: object.clone(),
            previous,
        });
        self.enter(&mut inner, table, change);
        Ok(object)
    }

    /// The changes of a table after `revision`, oldest first, `most` of them at most.
    pub fn changes_after(
        &self,
        table: &TableName,
        revision: u64,
        most: usize,
    ) -> Result<Vec<Arc<Change>>, RevisionError> {
        let inner = self.lock();
        match inner.tables.get(table) {
            None if revision < inner.history_from => {
                Err(RevisionError::Compacted(inner.history_from))
            }
            None => Ok(Vec::new()),
            Some(table) => Ok(table
                .changes
                .after(revision)
                .map_err(RevisionError::Compacted)?
                .take(most)
                .cloned()
                .collect()),
        }
    }

    /// How many objects a table has.
    pub fn count(&self, table: &TableName) -> usize {
        let inner = self.lock();
        inner
            .tables
            .get(table)
            .map_or(0, |table| table.objects.len())
    }

    /// How many objects each table has, by the tables' names.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let inner = self.lock();
        let tables = inner.tables.iter();
        tables
            .map(|(name, table)| (name.as_str().to_owned(), table.objects.len()))
            .collect()
    }

    /// Starts a table, if there is none: nothing is remembered of the time before.
    pub fn open(&self, table: &TableName) {
        let mut inner = self.lock();
        let revision = inner.latest;
        let table = inner.table(table);
        if table.objects.is_empty() && table.changes.is_empty() {
            table.changes.forget_through(revision);
        }
    }

    /// Notifies whenever the table changes.
    pub fn changed(&self, table: &TableName) -> Arc<Notify> {
        self.lock().table(table).changed.clone()
    }
}

/// What readers may see of a store.
pub struct Published<'a>(&'a Store);

impl Published<'_> {
    /// The object as readers see it.
    pub fn get(&self, table: &TableName, key: &Key) -> Option<Arc<Stored>> {
        self.0.lock().tables.get(table)?.published_one(key)
    }

    /// Objects of `namespace` (all when none) after `after`, in key order, at `revision` (the
    /// present when none).
    pub fn list(
        &self,
        table: &TableName,
        namespace: Option<&str>,
        after: Option<&Key>,
        revision: Option<u64>,
    ) -> Result<Listing, RevisionError> {
        let inner = self.0.lock();
        if revision.is_some_and(|revision| revision > inner.revision) {
            return Err(RevisionError::Future);
        }
        if let Some(revision) = revision {
            let oldest = self.0.oldest(inner.revision);
            if revision < oldest {
                return Err(RevisionError::Compacted(oldest));
            }
        }
        let answered = revision.unwrap_or(inner.revision);
        let objects = match (inner.tables.get(table), revision) {
            (None, _) if answered < inner.history_from => {
                return Err(RevisionError::Compacted(inner.history_from));
            }
            (None, _) => Vec::new(),
            (Some(table), Some(revision)) if revision < table.changes.latest() => {
                let past = table.at(revision)?;
                range(&past, namespace, after).cloned().collect()
            }
            (Some(table), _) => table.published(namespace, after).collect(),
        };
        Ok(Listing {
            revision: answered,
            objects,
        })
    }
}

/// The objects of `namespace` (all when none) after `after`.
fn range<'a>(
    objects: &'a BTreeMap<Key, Arc<Stored>>,
    namespace: Option<&'a str>,
    after: Option<&Key>,
) -> impl Iterator<Item = &'a Arc<Stored>> {
    let start = match (after, namespace) {
        (Some(key), _) => Bound::Excluded(key.clone()),
        (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
        (None, None) => Bound::Unbounded,
    };
    objects
        .range((start, Bound::Unbounded))
        .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.namespace() == namespace))
        .map(|(_, object)| object)
}

/// Whether a write made from the revision `from` (none for a new object) meets what it expects.
fn check(found: Option<&Arc<Stored>>, from: Option<u64>) -> Result<(), WriteError> {
    match (found, from) {
        (Some(_), None) => Err(WriteError::Exists),
        (None, Some(_)) => Err(WriteError::Missing),
        (Some(found), Some(from)) if found.revision != from => Err(WriteError::Changed),
        (None, None) | (Some(_), Some(_)) => Ok(()),
    }
}

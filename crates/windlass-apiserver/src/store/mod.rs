//! Where objects live.
//!
//! Every object is kept once, as its encoded JSON beside the metadata that look-ups, selectors
//! and watches need: a read sends the stored bytes and parses nothing. One counter numbers every
//! write of the whole store; it is the `resourceVersion` clients see. Each table (one per
//! resource) keeps its latest changes, old and new object both: a watch is a cursor over them,
//! and a page of a list at an older version is the present with the later changes undone.
//!
//! A write names the revision it was made from. Nothing is decided under the lock but "is that
//! still the revision": admission, defaults and validation happen before, and the loser of a race
//! is told so.

mod changes;
mod compaction;
mod object;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use compaction::Compaction;
use serde_json::Value;
use tokio::sync::Notify;

pub(crate) use changes::{Change, ChangeKind};
pub(crate) use object::{Key, Stored, field_text};

/// How many changes a table remembers. A watch or a page that needs older ones is told to start over.
const CHANGES_KEPT: usize = 8_192;

/// One resource's objects, named `plural.group`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableName(Arc<str>);

impl TableName {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self(if group.is_empty() {
            plural.into()
        } else {
            format!("{plural}.{group}").into()
        })
    }
}

/// Why a write did not happen.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// Create found an object of that key.
    Exists,
    /// Update or delete found none.
    Missing,
    /// The object is not at the revision the write was made from.
    Changed,
    /// The object could not be encoded.
    Encode(serde_json::Error),
}

/// The revision asked for is no longer (or not yet) there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RevisionError {
    /// Older than what is remembered; carries the oldest one that could be served.
    Compacted(u64),
    /// Later than the present.
    Future,
}

/// All objects of a server.
#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    /// The latest revision, readable without the lock.
    revision: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    tables: HashMap<TableName, Table>,
    compaction: Compaction,
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    changes: changes::Changes,
    /// Wakes the table's watches, in the order they came: two runs of one seed stay alike.
    changed: Arc<Notify>,
}

impl Table {
    fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            changes: changes::Changes::new(CHANGES_KEPT),
            changed: Arc::default(),
        }
    }

    /// The objects as they were at `revision`.
    fn at(&self, revision: u64) -> Result<BTreeMap<Key, Arc<Stored>>, RevisionError> {
        let mut objects = self.objects.clone();
        for change in self
            .changes
            .after(revision)
            .map_err(RevisionError::Compacted)?
            .rev()
        {
            let key = change.object.key.clone();
            match &change.previous {
                Some(previous) => objects.insert(key, previous.clone()),
                None => objects.remove(&key),
            };
        }
        Ok(objects)
    }
}

/// What a list found.
pub(crate) struct Listing {
    /// The revision the answer is true for.
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Stored>>,
}

impl Store {
    /// An empty store that lets go of the past at this interval.
    pub(crate) fn new(compaction_interval: Duration) -> Self {
        let inner = Inner {
            revision: 0,
            tables: HashMap::new(),
            compaction: Compaction::every(compaction_interval),
        };
        Self {
            inner: Mutex::new(inner),
            revision: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while holding the lock leaves whole objects behind: every write is one insertion.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of the latest write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, table: &TableName, key: &Key) -> Option<Arc<Stored>> {
        self.lock().tables.get(table)?.objects.get(key).cloned()
    }

    /// Whether the table has an object for which `wanted` holds.
    pub(crate) fn any(&self, table: &TableName, wanted: impl Fn(&Stored) -> bool) -> bool {
        self.lock()
            .tables
            .get(table)
            .is_some_and(|table| table.objects.values().any(|object| wanted(object)))
    }

    /// Objects of `namespace` (all when none) after `after`, in key order, at `revision` (the
    /// present when none).
    pub(crate) fn list(
        &self,
        table: &TableName,
        namespace: Option<&str>,
        after: Option<&Key>,
        revision: Option<u64>,
    ) -> Result<Listing, RevisionError> {
        let mut inner = self.lock();
        if let Some(revision) = revision {
            let present = inner.revision;
            if revision > present {
                return Err(RevisionError::Future);
            }
            let oldest = inner.compaction.oldest(present);
            if revision < oldest {
                return Err(RevisionError::Compacted(oldest));
            }
        }
        let answered = revision.unwrap_or(inner.revision);
        let Some(table) = inner.tables.get(table) else {
            return Ok(Listing {
                revision: answered,
                objects: Vec::new(),
            });
        };
        let past;
        let objects = match revision {
            Some(revision) if revision < table.changes.latest() => {
                past = table.at(revision)?;
                &past
            }
            _ => &table.objects,
        };
        let start = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let objects = objects
            .range((start, Bound::Unbounded))
            .take_while(|(key, _)| namespace.is_none_or(|namespace| key.namespace() == namespace))
            .map(|(_, object)| object.clone())
            .collect();
        Ok(Listing {
            revision: answered,
            objects,
        })
    }

    /// Stores a new object. `selectable` names the fields that field selectors may use.
    pub(crate) fn create(
        &self,
        table: &TableName,
        key: Key,
        value: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        self.commit(table, key, |found, revision| match found {
            Some(_) => Err(WriteError::Exists),
            None => Ok((
                ChangeKind::Added,
                Stored::encode(value, revision, selectable).map_err(WriteError::Encode)?,
            )),
        })
    }

    /// Replaces the object that was at revision `from`.
    pub(crate) fn update(
        &self,
        table: &TableName,
        key: Key,
        from: u64,
        value: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        self.commit(table, key, |found, revision| {
            check(found, from)?;
            Ok((
                ChangeKind::Modified,
                Stored::encode(value, revision, selectable).map_err(WriteError::Encode)?,
            ))
        })
    }

    /// Removes the object that was at revision `from`; watches see `last` as what it was.
    pub(crate) fn delete(
        &self,
        table: &TableName,
        key: Key,
        from: u64,
        last: Value,
        selectable: &[String],
    ) -> Result<Arc<Stored>, WriteError> {
        self.commit(table, key, |found, revision| {
            check(found, from)?;
            Ok((
                ChangeKind::Deleted,
                Stored::encode(last, revision, selectable).map_err(WriteError::Encode)?,
            ))
        })
    }

    /// The one place where anything is written.
    fn commit(
        &self,
        table: &TableName,
        key: Key,
        decide: impl FnOnce(Option<&Arc<Stored>>, u64) -> Result<(ChangeKind, Stored), WriteError>,
    ) -> Result<Arc<Stored>, WriteError> {
        let mut inner = self.lock();
        let present = inner.revision;
        inner.compaction.oldest(present);
        let revision = present + 1;
        let table = inner.tables.entry(table.clone()).or_insert_with(Table::new);
        let previous = table.objects.get(&key).cloned();
        let (kind, object) = decide(previous.as_ref(), revision)?;
        let object = Arc::new(object);
        if kind == ChangeKind::Deleted {
            table.objects.remove(&key);
        } else {
            table.objects.insert(key, object.clone());
        }
        table.changes.push(Arc::new(Change {
            revision,
            kind,
            object: object.clone(),
            previous,
        }));
        table.changed.notify_waiters();
        inner.revision = revision;
        self.revision.store(revision, Ordering::Release);
        Ok(object)
    }

    /// The changes of a table after `revision`, oldest first.
    pub(crate) fn changes_after(
        &self,
        table: &TableName,
        revision: u64,
    ) -> Result<Vec<Arc<Change>>, RevisionError> {
        match self.lock().tables.get(table) {
            None => Ok(Vec::new()),
            Some(table) => Ok(table
                .changes
                .after(revision)
                .map_err(RevisionError::Compacted)?
                .cloned()
                .collect()),
        }
    }

    /// Starts a table, if there is none: nothing is remembered of the time before.
    pub(crate) fn open(&self, table: &TableName) {
        let mut inner = self.lock();
        let revision = inner.revision;
        let table = inner.tables.entry(table.clone()).or_insert_with(Table::new);
        if table.objects.is_empty() && table.changes.is_empty() {
            table.changes.forget_through(revision);
        }
    }

    /// Notifies whenever the table changes.
    pub(crate) fn changed(&self, table: &TableName) -> Arc<Notify> {
        let mut inner = self.lock();
        let table = inner.tables.entry(table.clone()).or_insert_with(Table::new);
        table.changed.clone()
    }
}

fn check(found: Option<&Arc<Stored>>, from: u64) -> Result<(), WriteError> {
    match found {
        None => Err(WriteError::Missing),
        Some(found) if found.revision != from => Err(WriteError::Changed),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table() -> TableName {
        TableName::new("", "configmaps")
    }

    fn object(name: &str, value: &str) -> Value {
        json!({"metadata": {"namespace": "default", "name": name, "uid": name}, "data": {"k": value}})
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing
            .objects
            .iter()
            .map(|object| object.key.name())
            .collect()
    }

    #[test]
    fn a_write_from_a_stale_revision_is_refused() {
        let store = Store::new(Duration::from_mins(5));
        let key = Key::new("default", "a");
        let first = store
            .create(&table(), key.clone(), object("a", "1"), &[])
            .unwrap();
        store
            .update(&table(), key.clone(), first.revision, object("a", "2"), &[])
            .unwrap();
        let stale = store.update(&table(), key.clone(), first.revision, object("a", "3"), &[]);
        assert!(matches!(stale, Err(WriteError::Changed)));
        assert!(matches!(
            store.create(&table(), key, object("a", "4"), &[]),
            Err(WriteError::Exists)
        ));
        assert_eq!(store.revision(), 2);
    }

    #[test]
    fn a_list_at_an_older_revision_undoes_what_came_later() {
        let store = Store::new(Duration::from_mins(5));
        let a = store
            .create(&table(), Key::new("default", "a"), object("a", "1"), &[])
            .unwrap();
        store
            .create(&table(), Key::new("default", "b"), object("b", "1"), &[])
            .unwrap();
        let then = store.revision();
        store
            .create(&table(), Key::new("default", "c"), object("c", "1"), &[])
            .unwrap();
        store
            .delete(
                &table(),
                Key::new("default", "a"),
                a.revision,
                object("a", "1"),
                &[],
            )
            .unwrap();
        assert_eq!(
            names(&store.list(&table(), None, None, Some(then)).unwrap()),
            ["a", "b"]
        );
        assert_eq!(
            names(&store.list(&table(), None, None, None).unwrap()),
            ["b", "c"]
        );
        assert_eq!(
            store.list(&table(), None, None, Some(99)).err(),
            Some(RevisionError::Future)
        );
    }

    #[test]
    fn changes_older_than_what_is_kept_are_compacted() {
        let store = Store::new(Duration::from_mins(5));
        let key = Key::new("default", "a");
        let mut last = store
            .create(&table(), key.clone(), object("a", "0"), &[])
            .unwrap()
            .revision;
        for n in 0..=CHANGES_KEPT {
            last = store
                .update(
                    &table(),
                    key.clone(),
                    last,
                    object("a", &n.to_string()),
                    &[],
                )
                .unwrap()
                .revision;
        }
        assert_eq!(
            store.changes_after(&table(), 1).err(),
            Some(RevisionError::Compacted(2))
        );
        assert_eq!(store.changes_after(&table(), last - 1).unwrap().len(), 1);
    }
}

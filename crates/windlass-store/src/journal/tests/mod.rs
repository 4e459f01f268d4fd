//! The store on a disk that forgets.

mod crash;
mod failure;
mod life;
mod refusal;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::forgetful::Forgetful;
use super::{JournalError, Writer};
use crate::{ChangeKind, Key, Store, Stored, TableName, WriteError};

/// A store whose writer runs when the test says so.
struct Scene {
    files: Forgetful,
    store: Store,
    writer: Writer,
    /// Every change that was made: its revision, its table and name, and the value it left.
    made: Vec<Made>,
    /// Those whose sync failed, until the journal was mended: the disk may have them all the same.
    failed: Vec<Made>,
}

type Made = (u64, Place, Option<Value>);

type Place = (usize, usize);

/// What a test does to one of a few objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Op {
    place: Place,
    kind: ChangeKind,
}

fn table(number: usize) -> TableName {
    TableName::new(["", "example.com"][number % 2], "things")
}

fn key(number: usize) -> Key {
    Key::new("default", &format!("n{number}"))
}

impl Scene {
    fn open(files: &Forgetful) -> Result<Self, JournalError> {
        let (store, mut writer) = Store::recover(Arc::new(files.clone()))?;
        writer.journal.snapshot_after(600);
        Ok(Self {
            files: files.clone(),
            store,
            writer,
            made: Vec::new(),
            failed: Vec::new(),
        })
    }

    fn found(&self, (number, name): Place) -> Option<Arc<Stored>> {
        self.store.get(&table(number), &key(name))
    }

    /// Makes a change, if it is possible from what is there.
    fn make(&mut self, op: Op) -> Result<(), WriteError> {
        let (number, name) = op.place;
        let (table, key, fields) = (table(number), key(name), ["spec.x".to_owned()]);
        let value = json!({"kind": "Thing", "metadata": {"namespace": "default", "name": key.name(), "uid": "u", "labels": {"a": "b"}},
            "spec": {"x": self.made.len()}});
        let (store, found) = (
            &self.store,
            self.found(op.place).map(|found| found.revision),
        );
        let stored = match (op.kind, found) {
            (ChangeKind::Added, None) => store.create(&table, key, value, &fields),
            (ChangeKind::Modified, Some(from)) => store.update(&table, key, from, value, &fields),
            (ChangeKind::Deleted, Some(from)) => store.delete(&table, key, from, value, &fields),
            _ => return Ok(()),
        }?;
        let left = (op.kind != ChangeKind::Deleted).then(|| stored.value());
        self.made.push((stored.revision, op.place, left));
        Ok(())
    }

    /// Lets the writer write what is queued; what is published then counts as acknowledged.
    fn write(&mut self) {
        self.writer.step(Some(Duration::ZERO));
        self.writer.finish_snapshot(true);
        let revision = self.store.revision();
        self.files.disk().acknowledged = revision;
        if self.store.was_taken_back() {
            let taken_back = self.made.iter().position(|(at, ..)| *at > revision);
            self.failed = taken_back.map_or_else(Vec::new, |first| self.made.split_off(first));
        } else if !self.writer.is_failing() {
            self.failed.clear();
        }
    }

    /// What the changes up to `revision` left, failed ones of those revisions included.
    fn expected(&self, revision: u64) -> BTreeMap<Place, Value> {
        let mut objects = BTreeMap::new();
        for (at, place, left) in self.made.iter().chain(&self.failed) {
            if *at <= revision {
                match left {
                    Some(value) => objects.insert(*place, value.clone()),
                    None => objects.remove(place),
                };
            }
        }
        objects
    }

    /// What is there.
    fn objects(&self) -> BTreeMap<Place, Value> {
        let mut objects = BTreeMap::new();
        for number in 0..2 {
            let listing = self
                .store
                .published()
                .list(&table(number), None, None, None);
            for object in listing.expect("the present can be listed").objects {
                let name = object.key.name()[1..].parse().expect("names are numbered");
                assert_eq!(object.labels.get("a"), Some("b"));
                assert_eq!(&*object.fields[0].0, "spec.x");
                objects.insert((number, name), object.value());
            }
        }
        objects
    }
}

fn op(kind: ChangeKind, number: usize, name: usize) -> Op {
    let place = (number, name);
    Op { place, kind }
}

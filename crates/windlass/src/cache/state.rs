//! [`State`]: the objects of a store with everything that is derived from them.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::time::Instant;

use super::{
    CachedObject, Delivered, Memo,
    expectation::{Expectation, Want},
    index::Index,
    selection::Selection,
    source::Source,
};
use crate::Key;

/// How many memos are kept of objects that no watch shows, because of its scope or not yet.
pub(super) const UNSEEN: usize = 1000;

#[derive(Default)]
pub(super) struct State {
    pub(super) objects: BTreeMap<Key, Arc<CachedObject>>,
    /// The memory the objects take, roughly.
    pub(super) bytes: usize,
    /// Keys of the objects by the uid of their controller.
    pub(super) controlled: BTreeMap<Box<str>, BTreeSet<Key>>,
    pub(super) indexes: Vec<Index>,
    pub(super) selection: Selection,
    pub(super) memos: BTreeMap<Key, Memo>,
    pub(super) expectations: Vec<Expectation>,
    pub(super) sources: Vec<Source>,
    /// The server does not know the kind.
    pub(super) missing: bool,
    /// A watch of it fails.
    pub(super) failing: Option<Failing>,
}

/// A watch that fails.
pub(super) struct Failing {
    pub(super) since: Instant,
    pub(super) why: String,
    /// Because the server says nothing.
    pub(super) silent: bool,
}

impl State {
    /// Puts an object in the place of an older one, which `decoded` knows if it is still hot.
    pub(super) fn insert(
        &mut self,
        new: &Delivered,
        decoded: impl FnOnce(&CachedObject) -> Option<Arc<dyn Any + Send + Sync>>,
    ) -> Option<Delivered> {
        let old = self
            .objects
            .insert(new.key.clone(), Arc::clone(new.object()));
        let old = old.map(|old| {
            let decoded = decoded(&old);
            Delivered::known(old, decoded)
        });
        if let Some(old) = &old {
            self.unindex(old);
        }
        self.bytes += new.bytes();
        if let Some(owner) = &new.controller {
            self.controlled
                .entry(owner.uid.clone())
                .or_default()
                .insert(new.key.clone());
        }
        for index in &mut self.indexes {
            index.add(new);
        }
        self.selection.add(new);
        old
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Delivered> {
        let old = Delivered::new(self.objects.remove(key)?);
        self.unindex(&old);
        self.memos.remove(key);
        Some(old)
    }

    /// Keeps what was applied to an object. Those of objects that no watch shows would stay for ever.
    pub(super) fn remember(&mut self, key: Key, memo: Memo) {
        if self.memos.len() >= self.objects.len() + UNSEEN {
            let objects = &self.objects;
            self.memos.retain(|key, _| objects.contains_key(key));
        }
        self.memos.insert(key, memo);
    }

    fn unindex(&mut self, old: &Delivered) {
        self.bytes = self.bytes.saturating_sub(old.bytes());
        for index in &mut self.indexes {
            index.remove(old);
        }
        self.selection.remove(old);
        let Some(owner) = &old.controller else { return };
        if let Some(keys) = self.controlled.get_mut(&owner.uid) {
            keys.remove(&old.key);
            if keys.is_empty() {
                self.controlled.remove(&owner.uid);
            }
        }
    }

    /// Notes a write of our own; a later one of the same writer to the same object replaces it.
    pub(super) fn expect(&mut self, mut expectation: Expectation) {
        let earlier = self
            .expectations
            .extract_if(.., |old| {
                old.key == expectation.key && old.writer == expectation.writer
            })
            .map(|old| match old.want {
                Want::Version(version)
                | Want::Gone { version, .. }
                | Want::Removed { version, .. } => version,
            })
            .max();
        if let Want::Gone { version, .. } | Want::Removed { version, .. } = &mut expectation.want
            && let Some(earlier) = earlier
        {
            *version = earlier.max(*version);
        }
        if !self.meets(&expectation) {
            self.expectations.push(expectation);
        }
    }

    pub(super) fn drop_met(&mut self) {
        if self.expectations.is_empty() {
            return;
        }
        let expectations = std::mem::take(&mut self.expectations);
        self.expectations = expectations
            .into_iter()
            .filter(|one| !self.meets(one))
            .collect();
    }

    /// The watch that shows an object.
    pub(super) fn source_of(&self, key: &Key) -> Option<&Source> {
        self.sources.iter().find(|source| source.covers(key))
    }

    fn meets(&self, expectation: &Expectation) -> bool {
        // No watch of ours will ever show it.
        let Some(source) = self.source_of(&expectation.key) else {
            return true;
        };
        if self.missing || source.listed > expectation.lists {
            return true;
        }
        let object = self.objects.get(&expectation.key);
        match &expectation.want {
            Want::Version(version) => {
                source.seen >= *version || object.is_some_and(|object| object.version >= *version)
            }
            Want::Gone { uid, version } | Want::Removed { uid, version } => match object {
                Some(object) if object.uid == *uid => {
                    object.terminating && matches!(expectation.want, Want::Gone { .. })
                }
                // Another object of that name: made after ours went, or the one before it.
                Some(object) => object.version > *version,
                None => source.seen >= *version,
            },
        }
    }
}

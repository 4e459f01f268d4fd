//! What arrives: how a watch tells a [`Store`] what it sees.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
};

use tokio::time::Instant;
use tracing::error;

use super::{CachedObject, Delivered, Store, Transform, Watched, source::Listing};
use crate::Key;

impl Store {
    /// A full list of one source begins.
    pub(crate) fn list_begins(&self, source: usize) {
        let mut state = self.lock();
        state.missing = false;
        if let Some(source) = state.sources.get_mut(source) {
            source.lists_started += 1;
            source.listing = Some(Listing::default());
        }
    }

    /// The full list is complete, as of this version: what it did not show is gone.
    pub(crate) fn list_ends(&self, source: usize, version: u64) {
        let gone: Vec<Delivered> = {
            let mut state = self.lock();
            let state = &mut *state;
            let Some(source) = state.sources.get_mut(source) else {
                return;
            };
            let listing = source.listing.take().unwrap_or_default();
            source.seen = source.seen.max(listing.newest).max(version);
            source.listed = source.lists_started;
            source.heard = Some(Instant::now());
            let gone: Vec<Key> = state
                .objects
                .keys()
                .filter(|key| source.covers(key) && !listing.shown.contains(key))
                .cloned()
                .collect();
            let gone = gone.iter().filter_map(|key| state.remove(key)).collect();
            state.drop_met();
            gone
        };
        for old in &gone {
            self.deliver(Some(old), None, false);
        }
        if self.lock().sources.iter().all(|source| source.listed > 0) {
            self.synced.store(true, Ordering::Release);
        }
        self.changed.notify_waiters();
    }

    /// An object was listed, added or modified.
    pub(crate) fn put(&self, source: usize, object: impl Into<Watched>) {
        let new = Delivered::new(Arc::new(self.take_in(object.into())));
        let initial = !self.is_synced();
        let old = {
            let mut state = self.lock();
            if let Some(source) = state.sources.get_mut(source) {
                source.heard = Some(Instant::now());
                match &mut source.listing {
                    Some(listing) => {
                        listing.shown.insert(new.key.clone());
                        listing.newest = listing.newest.max(new.version);
                    }
                    None => source.seen = source.seen.max(new.version),
                }
            }
            let known = state.objects.get(&new.key).cloned();
            // A list after an interruption shows again what is known already; one answered from
            // an older cache of the server is older than what we know.
            if known.is_some_and(|known| {
                known.version > new.version || known.version == new.version && known.uid == new.uid
            }) {
                drop(state);
                self.changed.notify_waiters();
                return;
            }
            let old = state.insert(&new, |old| self.hot().any(&old.key, old.version));
            state.drop_met();
            old
        };
        match old {
            // Deleted and made anew while the watch was interrupted: both happened.
            Some(old) if old.uid != new.uid => {
                self.deliver(Some(&old), None, false);
                self.deliver(None, Some(&new), initial);
            }
            old => self.deliver(old.as_ref(), Some(&new), initial),
        }
        self.changed.notify_waiters();
    }

    /// An object was deleted.
    pub(crate) fn remove(&self, source: usize, object: impl Into<Watched>) {
        let gone = self.take_in(object.into());
        let old = {
            let mut state = self.lock();
            if let Some(source) = state.sources.get_mut(source) {
                source.seen = source.seen.max(gone.version);
                source.heard = Some(Instant::now());
            }
            let old = state.remove(&gone.key);
            state.drop_met();
            old
        };
        if old.is_some() {
            self.deliver(old.as_ref(), None, false);
        }
        self.changed.notify_waiters();
    }

    /// Nothing has changed up to this version.
    pub(crate) fn reached(&self, source: usize, version: u64) {
        let mut state = self.lock();
        if let Some(source) = state.sources.get_mut(source) {
            source.seen = source.seen.max(version);
            source.heard = Some(Instant::now());
        }
        state.drop_met();
        drop(state);
        self.changed.notify_waiters();
    }

    /// The server does not know the kind (any more): there are no objects of it.
    pub(crate) fn not_served(&self) {
        let gone: Vec<Delivered> = {
            let mut state = self.lock();
            state.missing = true;
            let keys: Vec<Key> = state.objects.keys().cloned().collect();
            let gone = keys.iter().filter_map(|key| state.remove(key)).collect();
            for source in &mut state.sources {
                source.listing = None;
            }
            state.drop_met();
            gone
        };
        for old in &gone {
            self.deliver(Some(old), None, false);
        }
        self.changed.notify_waiters();
    }

    /// The version up to which a source has delivered everything.
    pub(crate) fn seen(&self, source: usize) -> u64 {
        self.lock().sources.get(source).map_or(0, |one| one.seen)
    }

    fn take_in(&self, object: Watched) -> CachedObject {
        let object = match &self.transform {
            Some(transform) => self.transformed(transform, object),
            None => object,
        };
        CachedObject::new(object, &self.kind, &self.manager, &self.examples)
    }

    /// The object after the author's transform; as it is if that panics, because the watch must go
    /// on.
    fn transformed(&self, transform: &Transform, object: Watched) -> Watched {
        let mut changed = object.value();
        changed["apiVersion"] = self.kind.api_version().into();
        changed["kind"] = self.kind.kind.as_str().into();
        if catch_unwind(AssertUnwindSafe(|| transform(&mut changed))).is_ok() {
            return object.replaced(changed);
        }
        let kind = &self.kind;
        error!(%kind, "the transform panicked, keeping the object as it is");
        object
    }
}

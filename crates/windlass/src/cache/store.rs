//! [`Store`]: the objects of one kind and scope, with their indexes.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::core::Expression;
use serde_json::Value;
use tokio::sync::Notify;

use super::{
    CachedObject,
    expectation::{Expectation, Want, Writer},
};
use crate::{Error, Key, KindInfo, Result, Scope};

/// How long a read waits for a write of our own. Watches deliver in milliseconds; after this time
/// the watch itself is in trouble, and the reconcile is better tried again.
const PATIENCE: Duration = Duration::from_secs(10);

/// One change of one object.
pub(crate) struct Change<'a> {
    pub(crate) kind: &'a KindInfo,
    pub(crate) old: Option<&'a CachedObject>,
    pub(crate) new: Option<&'a CachedObject>,
    /// Part of the first full list, rather than something that happened.
    pub(crate) initial: bool,
}

impl Change<'_> {
    pub(crate) fn key(&self) -> Option<&Key> {
        self.sides().next().map(|object| &object.key)
    }

    /// The new and the old object, as far as there are any.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &CachedObject> {
        self.new.into_iter().chain(self.old)
    }
}

type Subscriber = Arc<dyn Fn(&Change<'_>) + Send + Sync>;

/// What was last applied to an object, and what the server made of it: how a repeated apply of
/// the same intent is known to change nothing even where the server rewrites values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memo {
    pub(crate) intent: u64,
    pub(crate) outcome: u64,
}

/// The objects of one kind and scope.
pub(crate) struct Store {
    pub(crate) kind: KindInfo,
    pub(crate) scope: Scope,
    manager: Arc<str>,
    state: Mutex<State>,
    changed: Notify,
    synced: AtomicBool,
    subscribers: RwLock<Vec<Subscriber>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Arc<CachedObject>>,
    /// Keys of the objects by the uid of their controller.
    controlled: BTreeMap<Box<str>, BTreeSet<Key>>,
    memos: BTreeMap<Key, Memo>,
    expectations: Vec<Expectation>,
    /// The watch has delivered everything up to this version.
    seen: u64,
    lists_started: u64,
    /// The number of the last full list that was completed.
    listed: u64,
    /// While a list is under way: what it has shown so far.
    listing: Option<Listing>,
}

#[derive(Default)]
struct Listing {
    shown: BTreeSet<Key>,
    newest: u64,
}

impl Store {
    pub(crate) fn new(kind: KindInfo, scope: Scope, manager: Arc<str>) -> Self {
        Self {
            kind,
            scope,
            manager,
            state: Mutex::default(),
            changed: Notify::new(),
            synced: AtomicBool::new(false),
            subscribers: RwLock::default(),
        }
    }

    /// Adds a function that is called for every change, in the order of subscription.
    pub(crate) fn subscribe(&self, subscriber: impl Fn(&Change<'_>) + Send + Sync + 'static) {
        self.subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::new(subscriber));
    }

    /// Waits until the first full list is complete.
    pub(crate) async fn synced(&self) {
        loop {
            // Waiters of a `Notify` are woken in the order they came: runs of one seed stay alike.
            let changed = self.changed.notified();
            if self.is_synced() {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<CachedObject>> {
        self.lock().objects.get(key).cloned()
    }

    /// The objects controlled by the object of this uid, in the order of their keys.
    pub(crate) fn controlled_by(&self, uid: &str) -> Vec<Arc<CachedObject>> {
        let state = self.lock();
        let keys = state.controlled.get(uid);
        keys.into_iter()
            .flatten()
            .filter_map(|key| state.objects.get(key).cloned())
            .collect()
    }

    /// The objects of a namespace (of all, without one) that match, in the order of their keys.
    pub(crate) fn select(
        &self,
        namespace: Option<&str>,
        selector: &[Expression],
    ) -> Vec<Arc<CachedObject>> {
        let state = self.lock();
        let from = namespace.map_or(Bound::Unbounded, |ns| {
            Bound::Included(Key::namespaced(ns, ""))
        });
        state
            .objects
            .range((from, Bound::Unbounded))
            .map(|(_, object)| object)
            .take_while(|object| namespace.is_none() || object.key.namespace() == namespace)
            .filter(|object| object.labels.match_all(selector))
            .cloned()
            .collect()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.lock().objects.keys().cloned().collect()
    }

    pub(crate) fn memo(&self, key: &Key) -> Option<Memo> {
        self.lock().memos.get(key).copied()
    }

    pub(crate) fn remember(&self, key: Key, memo: Memo) {
        self.lock().memos.insert(key, memo);
    }

    /// Notes a write of our own, so that reads wait for it.
    pub(crate) fn expect(&self, key: &Key, writer: &Writer, want: Want) {
        let mut state = self.lock();
        state
            .expectations
            .retain(|old| !(old.key == *key && old.writer == *writer));
        let lists = state.lists_started;
        let expectation = Expectation {
            key: key.clone(),
            writer: writer.clone(),
            want,
            lists,
        };
        if !state.meets(&expectation) {
            state.expectations.push(expectation);
        }
    }

    /// Waits until the cache shows every write to this object.
    pub(crate) async fn shows_writes_to(&self, key: &Key) -> Result<()> {
        self.caught_up(|expectation| expectation.key == *key).await
    }

    /// Waits until the cache shows every write of this writer.
    pub(crate) async fn shows_writes_of(&self, writer: &Writer) -> Result<()> {
        self.caught_up(|expectation| expectation.writer == *writer)
            .await
    }

    async fn caught_up(&self, concerns: impl Fn(&Expectation) -> bool + Send + Sync) -> Result<()> {
        let pending = || {
            self.lock()
                .expectations
                .iter()
                .find(|one| concerns(one))
                .map(|one| one.key.clone())
        };
        if pending().is_none() {
            return Ok(());
        }
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if pending().is_none() {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            let mut state = self.lock();
            let late = state
                .expectations
                .iter()
                .find(|one| concerns(one))
                .map(|one| one.key.clone());
            // Given up on, or every later read would wait as long again.
            state.expectations.retain(|one| !concerns(one));
            if let Some(key) = late {
                let object = format!("{} {key}", self.kind);
                return Err(Error::Stale {
                    object,
                    seconds: PATIENCE.as_secs(),
                });
            }
        }
        Ok(())
    }

    /// A full list begins.
    pub(crate) fn list_begins(&self) {
        let mut state = self.lock();
        state.lists_started += 1;
        state.listing = Some(Listing::default());
    }

    /// The full list is complete: what it did not show is gone.
    pub(crate) fn list_ends(&self) {
        let gone: Vec<Arc<CachedObject>> = {
            let mut state = self.lock();
            let listing = state.listing.take().unwrap_or_default();
            let gone: Vec<Key> = state
                .objects
                .keys()
                .filter(|key| !listing.shown.contains(key))
                .cloned()
                .collect();
            let gone = gone.iter().filter_map(|key| state.remove(key)).collect();
            state.seen = state.seen.max(listing.newest);
            state.listed = state.lists_started;
            state.drop_met();
            gone
        };
        for old in &gone {
            self.deliver(Some(old), None, false);
        }
        self.synced.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// An object was listed, added or modified.
    pub(crate) fn put(&self, value: Value) {
        let new = Arc::new(CachedObject::new(value, &self.kind, &self.manager));
        let initial = !self.is_synced();
        let old = {
            let mut state = self.lock();
            match &mut state.listing {
                Some(listing) => {
                    listing.shown.insert(new.key.clone());
                    listing.newest = listing.newest.max(new.version);
                }
                None => state.seen = state.seen.max(new.version),
            }
            let old = state.insert(&new);
            state.drop_met();
            old
        };
        // A list after an interruption shows again what is known already.
        let news = old
            .as_ref()
            .is_none_or(|old| old.version != new.version || old.uid != new.uid);
        if news {
            self.deliver(old.as_deref(), Some(&new), initial);
        }
        self.changed.notify_waiters();
    }

    /// An object was deleted.
    pub(crate) fn remove(&self, value: Value) {
        let gone = CachedObject::new(value, &self.kind, &self.manager);
        let old = {
            let mut state = self.lock();
            state.seen = state.seen.max(gone.version);
            let old = state.remove(&gone.key);
            state.drop_met();
            old
        };
        if old.is_some() {
            self.deliver(old.as_deref(), None, false);
        }
        self.changed.notify_waiters();
    }

    fn deliver(&self, old: Option<&CachedObject>, new: Option<&CachedObject>, initial: bool) {
        let subscribers = self
            .subscribers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let change = Change {
            kind: &self.kind,
            old,
            new,
            initial,
        };
        for subscriber in &subscribers {
            subscriber(&change);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&mut self, new: &Arc<CachedObject>) -> Option<Arc<CachedObject>> {
        let old = self.objects.insert(new.key.clone(), Arc::clone(new));
        if let Some(old) = &old {
            self.unindex(old);
        }
        if let Some(owner) = &new.controller {
            self.controlled
                .entry(owner.uid.clone())
                .or_default()
                .insert(new.key.clone());
        }
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<CachedObject>> {
        let old = self.objects.remove(key)?;
        self.unindex(&old);
        self.memos.remove(key);
        Some(old)
    }

    fn unindex(&mut self, old: &CachedObject) {
        let Some(owner) = &old.controller else { return };
        if let Some(keys) = self.controlled.get_mut(&owner.uid) {
            keys.remove(&old.key);
            if keys.is_empty() {
                self.controlled.remove(&owner.uid);
            }
        }
    }

    fn drop_met(&mut self) {
        if self.expectations.is_empty() {
            return;
        }
        let expectations = std::mem::take(&mut self.expectations);
        self.expectations = expectations
            .into_iter()
            .filter(|one| !self.meets(one))
            .collect();
    }

    fn meets(&self, expectation: &Expectation) -> bool {
        if self.listed > expectation.lists {
            return true;
        }
        let object = self.objects.get(&expectation.key);
        match &expectation.want {
            Want::Version(version) => {
                self.seen >= *version || object.is_some_and(|object| object.version >= *version)
            }
            Want::Gone { uid } => {
                object.is_none_or(|object| object.uid != *uid || object.terminating)
            }
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

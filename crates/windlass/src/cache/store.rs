//! [`Store`]: the objects of one kind and scope, with their indexes.

use std::{
    collections::BTreeSet,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::core::Expression;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use super::{
    CachedObject, Delivered, Examples,
    hot::Hot,
    index::{Index, ValuesOf},
    labels::MatchAll as _,
    source::Source,
    state::{Failing, State},
};
use crate::{
    Key, Result,
    kind::{KindInfo, Object},
    metrics::Metrics,
    watch::Scope,
};

/// One change of one object.
pub(crate) struct Change<'a> {
    pub(crate) kind: &'a KindInfo,
    pub(crate) old: Option<&'a Delivered>,
    pub(crate) new: Option<&'a Delivered>,
    /// Part of the first full list, rather than something that happened.
    pub(crate) initial: bool,
}

impl Change<'_> {
    pub(crate) fn key(&self) -> Option<&Key> {
        self.sides().next().map(|object| &object.key)
    }

    /// The new and the old object, as far as there are any.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &Delivered> {
        self.new.into_iter().chain(self.old)
    }
}

pub(super) type Subscriber = Arc<dyn Fn(&Change<'_>) + Send + Sync>;

/// What a kind's objects are reduced to before they are kept.
pub(crate) type Transform = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What was last applied to an object, and what the server made of it: how a repeated apply of
/// the same intent is known to change nothing even where the server rewrites values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memo {
    pub(crate) intent: u64,
    /// The author's object it was made from, where there was one: it is looked at before anything is
    /// made of it.
    pub(crate) source: Option<u64>,
    pub(crate) outcome: u64,
    /// The object's version at which that was last seen to hold.
    pub(crate) version: u64,
}

/// What a store holds, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
}

/// The objects of one kind and scope.
pub(crate) struct Store {
    pub(crate) kind: KindInfo,
    pub(crate) scope: Scope,
    pub(super) manager: Arc<str>,
    pub(super) transform: Option<Transform>,
    pub(super) examples: Examples,
    pub(super) state: Mutex<State>,
    hot: Mutex<Hot>,
    pub(super) changed: Notify,
    pub(super) synced: AtomicBool,
    /// How often a read had to wait for a write of our own.
    pub(super) waits: AtomicU64,
    /// How often a watch has failed.
    failures: AtomicU64,
    pub(super) metrics: Metrics,
    /// Replaced as a whole when one comes or goes, so that a delivery shares it.
    subscribers: RwLock<Arc<Vec<(u64, Subscriber)>>>,
}

impl Store {
    pub(crate) fn new(
        kind: KindInfo,
        scope: Scope,
        manager: Arc<str>,
        transform: Option<Transform>,
        metrics: Metrics,
    ) -> Self {
        let sources = scope.sources().into_iter().map(Source::of).collect();
        Self {
            kind,
            scope,
            manager,
            transform,
            examples: Examples::default(),
            state: Mutex::new(State {
                sources,
                ..State::default()
            }),
            hot: Mutex::default(),
            changed: Notify::new(),
            synced: AtomicBool::new(false),
            waits: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            metrics,
            subscribers: RwLock::default(),
        }
    }

    /// Adds a function that is called for every change, in the order of subscription.
    pub(crate) fn subscribe(
        &self,
        subscriber: impl Fn(&Change<'_>) + Send + Sync + 'static,
    ) -> u64 {
        let mut subscribers = self
            .subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let id = subscribers.last().map_or(0, |(id, _)| id + 1);
        Arc::make_mut(&mut subscribers).push((id, Arc::new(subscriber)));
        id
    }

    pub(crate) fn unsubscribe(&self, subscription: u64) {
        let mut subscribers = self
            .subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut subscribers).retain(|(id, _)| *id != subscription);
    }

    /// Shows a subscriber what is there already, as a first list would have.
    ///
    /// Changes are delivered meanwhile: an object that is not any more as it was shown is shown
    /// again, so that the last a subscriber saw of each is how it is, or older than a delivery to come.
    pub(crate) fn replay(&self, subscription: u64) {
        let subscriber = {
            let subscribers = self
                .subscribers
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            let of = |(id, _): &&(u64, Subscriber)| *id == subscription;
            subscribers.iter().find(of).map(|(_, one)| Arc::clone(one))
        };
        let Some(subscriber) = subscriber else { return };
        let show = |old: Option<&Delivered>, new: Option<&Delivered>| {
            subscriber(&Change {
                kind: &self.kind,
                old,
                new,
                initial: true,
            });
        };
        for key in self.keys() {
            let mut shown: Option<Delivered> = None;
            loop {
                let now = self.get(&key).map(Delivered::new);
                let same = match (&shown, &now) {
                    (None, None) => true,
                    (Some(shown), Some(now)) => Arc::ptr_eq(shown.object(), now.object()),
                    _ => false,
                };
                if same {
                    break;
                }
                show(shown.as_ref(), now.as_ref());
                shown = now;
            }
        }
    }

    /// Adds an index; what is there already is put into it.
    pub(crate) fn index(&self, of: ValuesOf) -> usize {
        let mut state = self.lock();
        let mut index = Index::new(of);
        for object in state.objects.values() {
            index.add(&Delivered::new(Arc::clone(object)));
        }
        state.indexes.push(index);
        state.indexes.len() - 1
    }

    /// The objects that an index has under a value, in the order of their keys.
    pub(crate) fn indexed(&self, index: usize, value: &str) -> Vec<Arc<CachedObject>> {
        let state = self.lock();
        let keys = state.indexes.get(index).map(|index| index.find(value));
        keys.into_iter()
            .flatten()
            .filter_map(|key| state.objects.get(key).cloned())
            .collect()
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

    /// Whether its objects are kept as an author's function left them.
    pub(crate) fn is_transformed(&self) -> bool {
        self.transform.is_some()
    }

    /// Whether it shows every object of the kind.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.scope.namespaces.is_empty()
            && self.scope.labels.is_empty()
            && self.scope.fields.is_none()
    }

    /// Whether it shows the object of this uid, or expects to.
    pub(crate) fn knows(&self, key: &Key, uid: &str) -> bool {
        let state = self.lock();
        let shown = state.objects.get(key);
        shown.is_some_and(|object| *object.uid == *uid)
            || state.expectations.iter().any(|one| one.key == *key)
    }

    /// The server does not know the kind.
    pub(crate) fn is_missing(&self) -> bool {
        self.lock().missing
    }

    /// A watch of it fails: it stands still until [`works`](Self::works). `silent` is how long the
    /// server has said nothing, if that is why; an answer alone does not show that it is over.
    pub(crate) fn fails(&self, why: &str, silent: Option<Duration>) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        let now = Instant::now();
        let begun = now.checked_sub(silent.unwrap_or_default()).unwrap_or(now);
        let since = state.failing.as_ref().map_or(begun, |one| one.since);
        state.failing = Some(Failing {
            since,
            why: why.to_owned(),
            silent: silent.is_some(),
        });
    }

    /// Its watches work.
    pub(crate) fn works(&self) {
        self.lock().failing = None;
    }

    /// A watch was answered, or ended as it was asked to.
    pub(crate) fn heard(&self, source: usize) {
        let mut state = self.lock();
        state.failing.take_if(|failing| !failing.silent);
        if let Some(source) = state.sources.get_mut(source) {
            source.heard = Some(Instant::now());
        }
    }

    /// For how long a watch of it has failed, and why.
    pub(crate) fn failing(&self) -> Option<(Duration, String)> {
        let state = self.lock();
        let failing = state.failing.as_ref()?;
        Some((failing.since.elapsed(), failing.why.clone()))
    }

    /// How often a watch of it has failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn size(&self) -> Size {
        let state = self.lock();
        Size {
            objects: state.objects.len(),
            bytes: state.bytes,
        }
    }

    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// How long the quietest of its watches has not been heard of; none before the first list.
    pub(crate) fn staleness(&self) -> Option<Duration> {
        let state = self.lock();
        let ages = state.sources.iter().map(|source| source.heard);
        ages.map(|heard| heard.map(|at| at.elapsed())).max()?
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
        let mut state = self.lock();
        let State {
            objects, selection, ..
        } = &mut *state;
        let matching = |object: &&Arc<CachedObject>| object.labels.match_all(selector);
        match selection.narrow(selector, objects) {
            Some(keys) => within(keys, namespace)
                .filter_map(|key| objects.get(key))
                .filter(matching)
                .cloned()
                .collect(),
            None => objects
                .range((first(namespace), Bound::Unbounded))
                .map(|(_, object)| object)
                .take_while(|object| namespace.is_none() || object.key.namespace() == namespace)
                .filter(matching)
                .cloned()
                .collect(),
        }
    }

    /// The objects of a namespace (of all, without one) that match and that nobody controls, in the
    /// order of their keys.
    pub(crate) fn orphans(
        &self,
        namespace: Option<&str>,
        selector: &[Expression],
    ) -> Vec<Arc<CachedObject>> {
        let mut state = self.lock();
        let State {
            objects, selection, ..
        } = &mut *state;
        within(selection.orphans(objects), namespace)
            .filter_map(|key| objects.get(key))
            .filter(|object| object.labels.match_all(selector))
            .cloned()
            .collect()
    }

    /// An object as its type, decoded at most once while it is looked at.
    pub(crate) fn typed<T: Object>(&self, object: &CachedObject) -> Result<Arc<T>> {
        let known = self.hot().get(&object.key, object.version);
        if let Some(typed) = known {
            return Ok(typed);
        }
        let typed: Arc<T> = Arc::new(object.decode(&self.kind)?);
        self.hot().add(
            &object.key,
            object.version,
            object.text_bytes(),
            typed.clone(),
        );
        Ok(typed)
    }

    /// An object as the answer to a write showed it, and as the watch will show it: the reconcile
    /// that the watch triggers need not decode it.
    pub(crate) fn expects<T: Object>(
        &self,
        key: &Key,
        version: u64,
        text_bytes: usize,
        object: &Arc<T>,
    ) {
        // A transform makes another object of it.
        if version > 0 && self.transform.is_none() {
            self.hot()
                .add(key, version, text_bytes, Arc::clone(object) as _);
        }
    }

    /// Objects as their type.
    pub(crate) fn all_typed<T: Object>(
        &self,
        objects: &[Arc<CachedObject>],
    ) -> Result<Vec<Arc<T>>> {
        objects.iter().map(|object| self.typed(object)).collect()
    }

    /// Locked within the state, never the other way round.
    pub(super) fn hot(&self) -> MutexGuard<'_, Hot> {
        self.hot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.lock().objects.keys().cloned().collect()
    }

    pub(crate) fn memo(&self, key: &Key) -> Option<Memo> {
        self.lock().memos.get(key).copied()
    }

    pub(crate) fn remember(&self, key: Key, memo: Memo) {
        self.lock().remember(key, memo);
    }

    pub(super) fn deliver(&self, old: Option<&Delivered>, new: Option<&Delivered>, initial: bool) {
        let subscribers = Arc::clone(
            &self
                .subscribers
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let change = Change {
            kind: &self.kind,
            old,
            new,
            initial,
        };
        for (_, subscriber) in subscribers.iter() {
            subscriber(&change);
        }
        // The reconcile that this triggers reads it next.
        if let Some(new) = new
            && let Some(decoded) = new.decoded()
        {
            self.hot()
                .add(&new.key, new.version, new.text_bytes(), decoded);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the keys of a namespace begin.
fn first(namespace: Option<&str>) -> Bound<Key> {
    namespace.map_or(Bound::Unbounded, |namespace| {
        Bound::Included(Key::namespaced(namespace, ""))
    })
}

/// The keys of a namespace; all, without one.
fn within<'a>(keys: &'a BTreeSet<Key>, namespace: Option<&str>) -> impl Iterator<Item = &'a Key> {
    keys.range((first(namespace), Bound::Unbounded))
        .take_while(move |key| namespace.is_none() || key.namespace() == namespace)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

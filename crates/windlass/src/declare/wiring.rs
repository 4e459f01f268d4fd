//! Wiring: from a change of one object to the keys it wakes.
//!
//! Owned objects name their controller. For references and selectors the other direction is kept
//! in an index that follows the reconciled objects: it is brought up to date before the change of
//! a reconciled object is enqueued, and it is asked with the old and the new state of what changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::core::Expression;
use tracing::error;

use super::{
    predicate::Predicate,
    watch::{Changed, Handler, Wakes, Watch},
};
use crate::{
    Key,
    cache::{CachedObject, Change, Delivered, Labels, MatchAll as _, Store},
    kind::{KindInfo, Object},
    queue::{Cause, Priority, Queue},
    telemetry::Origin,
};

/// Connects a store to a controller's queue, once the queue exists.
pub(crate) type Wiring = Box<dyn FnOnce(&Wires) + Send>;

/// What a wiring connects to.
pub(crate) struct Wires {
    pub(crate) queue: Arc<Queue>,
    /// The store of the reconciled kind.
    pub(crate) primary: Arc<Store>,
    /// What has to be undone for a controller that ends before the operator does.
    pub(crate) undo: Undo,
}

/// The subscriptions of one controller, and what else it started.
#[derive(Default)]
pub(crate) struct Undo {
    subscriptions: Mutex<Vec<(Arc<Store>, u64)>>,
    others: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl Undo {
    /// Has a function called when the controller ends.
    pub(crate) fn add(&self, end: impl FnOnce() + Send + 'static) {
        lock(&self.others).push(Box::new(end));
    }

    /// Shows to every subscription what its store holds already: the controller begins late.
    pub(crate) fn replay(&self) {
        let subscriptions = lock(&self.subscriptions).clone();
        for (store, id) in subscriptions {
            store.replay(id);
        }
    }

    /// Ends every subscription.
    pub(crate) fn undo(&self) {
        for (store, id) in std::mem::take(&mut *lock(&self.subscriptions)) {
            store.unsubscribe(id);
        }
        for end in std::mem::take(&mut *lock(&self.others)) {
            end();
        }
    }
}

impl Wires {
    /// Subscribes to a store for as long as the controller runs.
    pub(crate) fn subscribe(
        &self,
        store: &Arc<Store>,
        subscriber: impl Fn(&Change<'_>) + Send + Sync + 'static,
    ) {
        let id = store.subscribe(subscriber);
        lock(&self.undo.subscriptions).push((Arc::clone(store), id));
    }
}

/// Changes of the reconciled kind itself.
pub(crate) fn primary<K: 'static>(wires: &Wires, only: Option<Predicate<K>>) {
    let queue = Arc::clone(&wires.queue);
    wires.subscribe(&wires.primary, move |change| {
        if passes(only.as_ref(), change) {
            wake(&queue, change, change.key().cloned());
        }
    });
}

/// Changes of an owned kind wake the controller named in its owner reference, and whoever was
/// refused that name before.
pub(crate) fn owned(store: &Arc<Store>, refusals: &Arc<Refusals>, owner: KindInfo) -> Wiring {
    let (store, refusals) = (Arc::clone(store), Arc::clone(refusals));
    Box::new(move |wires| {
        let queue = Arc::clone(&wires.queue);
        let waiting = Arc::clone(&refusals);
        wires.subscribe(&wires.primary, move |change| {
            if let (Some(key), None) = (change.key(), change.new) {
                waiting.forget(key);
            }
        });
        wires.subscribe(&store, move |change| {
            let owners = change
                .sides()
                .filter_map(|object| owner_key(&owner, object));
            let refused = change
                .key()
                .map(|key| refusals.take(key))
                .unwrap_or_default();
            wake(
                &queue,
                change,
                owners.chain(refused).collect::<BTreeSet<_>>(),
            );
        });
    })
}

/// Who wanted a name that another's object has: they are woken when that object changes.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<Key, BTreeSet<Key>>>);

impl Refusals {
    pub(crate) fn add(&self, name: Key, refused: Key) {
        lock(&self.0).entry(name).or_default().insert(refused);
    }

    pub(crate) fn take(&self, name: &Key) -> BTreeSet<Key> {
        lock(&self.0).remove(name).unwrap_or_default()
    }

    /// An object that is gone wants no names any more.
    pub(crate) fn forget(&self, refused: &Key) {
        lock(&self.0).retain(|_, waiting| {
            waiting.remove(refused);
            !waiting.is_empty()
        });
    }
}

pub(crate) fn owner_key(kind: &KindInfo, object: &CachedObject) -> Option<Key> {
    let owner = object.controller.as_ref()?;
    let group = owner
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    let matches = *owner.kind == *kind.kind && group == kind.group;
    let namespace = object.key.namespace().filter(|_| kind.namespaced);
    matches.then(|| Key::from_parts(namespace, &owner.name))
}

/// Changes of a kind that is read.
pub(crate) fn read<K: Object, T: Object>(store: &Arc<Store>, watch: Watch<K, T>) -> Option<Wiring> {
    let store = Arc::clone(store);
    let only = watch.only;
    match watch.wakes {
        Wakes::Nobody(_) => None,
        Wakes::Everyone => Some(Box::new(move |wires| {
            // Weak, because a controller may watch its own kind: a store must not hold itself.
            let primary = Arc::downgrade(&wires.primary);
            connect(&store, wires, only, move |_| {
                let keys = primary.upgrade().map(|primary| primary.keys());
                keys.unwrap_or_default().into_iter().collect()
            });
        })),
        Wakes::Mapped(keys) => Some(Box::new(move |wires| {
            connect(&store, wires, only, move |change| {
                let of =
                    |object: &Delivered| computed(change.kind, object, |typed: &T| keys(typed));
                change.sides().filter_map(of).flatten().collect()
            });
        })),
        Wakes::Handled(handler) => Some(Box::new(move |wires| {
            connect(&store, wires, only, move |change| {
                handled(change, &handler).into_iter().collect()
            });
        })),
        Wakes::Referrers(names) => Some(Box::new(move |wires| {
            let index = Arc::new(Mutex::new(References::default()));
            let (follow, namespaced) = (Arc::clone(&index), store.kind.namespaced);
            wires.subscribe(&wires.primary, move |change| {
                let Some(key) = change.key() else { return };
                let now = change
                    .new
                    .and_then(|object| computed(change.kind, object, |typed: &K| names(typed)));
                let mut now = now.unwrap_or_default();
                if !namespaced {
                    now = now.iter().map(|key| Key::cluster(key.name())).collect();
                }
                lock(&follow).set(key, now);
            });
            connect(&store, wires, only, move |change| {
                let referrers = change.key().map(|key| lock(&index).to(key));
                referrers.unwrap_or_default().into_iter().collect()
            });
        })),
        Wakes::Selectors(selector) => Some(Box::new(move |wires| {
            let index = Arc::new(Mutex::new(Selections::default()));
            let follow = Arc::clone(&index);
            wires.subscribe(&wires.primary, move |change| {
                let Some(key) = change.key() else { return };
                let now = change
                    .new
                    .and_then(|object| computed(change.kind, object, |typed: &K| selector(typed)));
                lock(&follow).set(
                    key,
                    now.flatten().map(|selector| selector.into_iter().collect()),
                );
            });
            connect(&store, wires, only, move |change| {
                let index = lock(&index);
                let of = |object: &Delivered| index.of(object.key.namespace(), &object.labels);
                change.sides().flat_map(of).collect()
            });
        })),
    }
}

/// Changes that pass wake the keys that a function says.
fn connect<T: 'static>(
    store: &Arc<Store>,
    wires: &Wires,
    only: Option<Predicate<T>>,
    keys: impl Fn(&Change<'_>) -> BTreeSet<Key> + Send + Sync + 'static,
) {
    let queue = Arc::clone(&wires.queue);
    wires.subscribe(store, move |change| {
        if passes(only.as_ref(), change) {
            wake(&queue, change, keys(change));
        }
    });
}

fn passes<T>(only: Option<&Predicate<T>>, change: &Change<'_>) -> bool {
    only.is_none_or(|predicate| predicate.passes(change))
}

/// What the author's handler says; nothing if the object cannot be read or the handler panics.
fn handled<T: Object>(change: &Change<'_>, handler: &Handler<T>) -> Vec<Key> {
    let typed = |object: Option<&Delivered>| object.and_then(|one| typed::<T>(change.kind, one));
    let (old, new) = (typed(change.old), typed(change.new));
    let what = match (old.as_deref(), new.as_deref()) {
        (Some(old), Some(new)) => Changed::Updated { old, new },
        (None, Some(new)) => Changed::Added(new),
        (Some(old), None) => Changed::Deleted(old),
        (None, None) => return Vec::new(),
    };
    catch_unwind(AssertUnwindSafe(|| handler(what))).unwrap_or_else(|_| {
        error!(kind = %change.kind, "a handler panicked");
        Vec::new()
    })
}

pub(crate) fn wake(queue: &Queue, change: &Change<'_>, keys: impl IntoIterator<Item = Key>) {
    let Some(key) = change.key() else { return };
    let what = match (change.old, change.new) {
        (None, _) if change.initial => "listed",
        (None, _) => "created",
        (_, Some(_)) => "changed",
        (_, None) => "deleted",
    };
    let priority = if change.initial {
        Priority::Low
    } else {
        Priority::High
    };
    let mut keys = keys.into_iter().peekable();
    if keys.peek().is_none() {
        return;
    }
    let kind: Arc<str> = change.kind.to_string().into();
    let version = change.new.map_or(0, |object| object.version);
    for woken in keys {
        let cause = Cause::Changed {
            kind: Arc::clone(&kind),
            key: key.clone(),
            change: what,
            origin: Origin::of(version),
        };
        queue.add(woken, priority, cause);
    }
}

/// What the author's function says about an object; nothing if it cannot be decoded or panics,
/// because the watch must go on.
pub(crate) fn computed<T: Object, R>(
    kind: &KindInfo,
    object: &Delivered,
    of: impl Fn(&T) -> R,
) -> Option<R> {
    let typed = typed::<T>(kind, object)?;
    let result = catch_unwind(AssertUnwindSafe(|| of(&typed)));
    if result.is_err() {
        error!(%kind, key = %object.key, "a reference or selector function panicked");
    }
    result.ok()
}

fn typed<T: Object>(kind: &KindInfo, object: &Delivered) -> Option<Arc<T>> {
    let typed = object.typed(kind);
    typed
        .inspect_err(|error| error!(%error, "cannot tell what this object refers to"))
        .ok()
}

fn lock<T>(index: &Mutex<T>) -> MutexGuard<'_, T> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which objects name which, in both directions.
#[derive(Default)]
struct References {
    from: BTreeMap<Key, Vec<Key>>,
    to: BTreeMap<Key, BTreeSet<Key>>,
}

impl References {
    fn set(&mut self, referrer: &Key, names: Vec<Key>) {
        for name in self.from.remove(referrer).unwrap_or_default() {
            if let Some(referrers) = self.to.get_mut(&name) {
                referrers.remove(referrer);
                if referrers.is_empty() {
                    self.to.remove(&name);
                }
            }
        }
        for name in &names {
            self.to
                .entry(name.clone())
                .or_default()
                .insert(referrer.clone());
        }
        if !names.is_empty() {
            self.from.insert(referrer.clone(), names);
        }
    }

    fn to(&self, name: &Key) -> Vec<Key> {
        self.to.get(name).into_iter().flatten().cloned().collect()
    }
}

/// Which objects select by which labels. Most selectors require some label to have some value;
/// those are found by it, the others are tried one by one.
#[derive(Default)]
struct Selections {
    from: BTreeMap<Key, (Bucket, Vec<Expression>)>,
    buckets: BTreeMap<Bucket, BTreeSet<Key>>,
}

/// A namespace (none: all) and a required label (none: no required label).
type Bucket = (Option<Box<str>>, Option<(Box<str>, Box<str>)>);

impl Selections {
    fn set(&mut self, selecting: &Key, selector: Option<Vec<Expression>>) {
        if let Some((bucket, _)) = self.from.remove(selecting)
            && let Some(keys) = self.buckets.get_mut(&bucket)
        {
            keys.remove(selecting);
            if keys.is_empty() {
                self.buckets.remove(&bucket);
            }
        }
        let Some(selector) = selector else { return };
        let required = selector
            .iter()
            .rev()
            .find_map(|expression| match expression {
                Expression::Equal(key, value) => Some((key.as_str().into(), value.as_str().into())),
                _ => None,
            });
        let bucket: Bucket = (selecting.namespace().map(Into::into), required);
        self.buckets
            .entry(bucket.clone())
            .or_default()
            .insert(selecting.clone());
        self.from.insert(selecting.clone(), (bucket, selector));
    }

    /// The objects whose selector matches these labels.
    fn of(&self, namespace: Option<&str>, labels: &Labels) -> Vec<Key> {
        let namespaces = [namespace.map(Into::into), None];
        let namespaces = &namespaces[usize::from(namespace.is_none())..];
        let required = labels
            .iter()
            .map(|(key, value)| Some((key.into(), value.into())));
        let required: Vec<Option<(Box<str>, Box<str>)>> = required.chain([None]).collect();
        let mut found = Vec::new();
        for namespace in namespaces {
            for label in &required {
                let bucket: Bucket = (namespace.clone(), label.clone());
                let keys = self.buckets.get(&bucket).into_iter().flatten();
                found.extend(keys.filter(|key| self.selects(key, labels)).cloned());
            }
        }
        found
    }

    fn selects(&self, key: &Key, labels: &Labels) -> bool {
        self.from
            .get(key)
            .is_some_and(|(_, selector)| labels.match_all(selector))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_in_both_directions() {
        let mut index = References::default();
        let (a, b, map) = (
            Key::namespaced("n", "a"),
            Key::namespaced("n", "b"),
            Key::namespaced("n", "m"),
        );
        index.set(&a, vec![map.clone()]);
        index.set(&b, vec![map.clone()]);
        assert_eq!(index.to(&map), [a.clone(), b.clone()]);
        index.set(&a, vec![Key::namespaced("n", "other")]);
        assert_eq!(index.to(&map), std::slice::from_ref(&b));
        index.set(&b, Vec::new());
        assert!(index.to(&map).is_empty() && index.from.len() == 1);
    }

    #[test]
    fn refused_name_is_kept_until_it_changes_or_the_object_that_wanted_it_is_gone() {
        let refusals = Refusals::default();
        let key = |name: &str| Key::namespaced("n", name);
        for name in ["map", "other"] {
            refusals.add(key(name), key("a"));
        }
        refusals.add(key("map"), key("b"));
        refusals.forget(&key("a"));
        assert_eq!(refusals.take(&key("map")), [key("b")].into());
        assert_eq!(lock(&refusals.0).len(), 0);
    }

    #[test]
    fn selectors_are_found_by_a_label_they_require() {
        let mut index = Selections::default();
        let (a, b, c) = (
            Key::namespaced("n", "a"),
            Key::namespaced("n", "b"),
            Key::namespaced("m", "c"),
        );
        let equal = |key: &str, value: &str| Expression::Equal(key.into(), value.into());
        index.set(&a, Some(vec![equal("app", "x"), equal("instance", "a")]));
        index.set(&b, Some(vec![Expression::Exists("app".into())]));
        index.set(&c, Some(vec![equal("app", "x")]));
        let labels = Labels::of_metadata(&json!({"labels": {"app": "x", "instance": "a"}}));
        assert_eq!(index.of(Some("n"), &labels), [a.clone(), b.clone()]);
        index.set(&a, None);
        assert_eq!(index.of(Some("n"), &labels), [b]);
        assert_eq!(index.of(Some("m"), &labels), [c]);
    }
}

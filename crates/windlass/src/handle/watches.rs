//! [`Watches`]: watches that are started and stopped at run time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use kube::core::{DynamicObject, Expression, Selector};

use super::Reads;
use crate::{
    Context, Error, Key, Result,
    cache::{CachedObject, MatchAll as _, Store},
    declare::wiring::{Wires, wake},
    kind::{KindInfo, Object},
    queue::Queue,
    watch::Scope,
};

/// How long [`Watches::start`] waits for the first list.
const PATIENCE: Duration = Duration::from_secs(10);

/// Watches of kinds that are known only at run time: each is started by the objects that need it,
/// wakes them, and ends when the last of them has stopped it or is gone.
#[derive(Clone, Default)]
pub struct Watches(Arc<Inner>);

#[derive(Default)]
struct Inner {
    queue: OnceLock<Arc<Queue>>,
    started: Mutex<BTreeMap<(KindInfo, Scope), Started>>,
}

/// Which objects of a watched kind somebody wants to be woken by.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    namespace: Option<String>,
    names: BTreeSet<String>,
    labels: Vec<Expression>,
}

impl Interest {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only those in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only the object of this name; given again, of these names.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.insert(name.into());
        self
    }

    /// Only those with these labels, before or after a change.
    #[must_use]
    pub fn labels(mut self, selector: &Selector) -> Self {
        self.labels.extend(selector.clone());
        self
    }

    fn is_in(&self, object: &CachedObject) -> bool {
        let namespace = self.namespace.as_deref();
        (namespace.is_none() || object.key.namespace() == namespace)
            && (self.names.is_empty() || self.names.contains(object.key.name()))
            && object.labels.match_all(&self.labels)
    }
}

/// Whom a watch wakes, and by which objects.
type Users = Arc<Mutex<BTreeMap<Key, Vec<Interest>>>>;

struct Started {
    store: Arc<Store>,
    users: Users,
    /// Ends the watch, where the last user is not there to do it.
    end: Box<dyn Fn() + Send + Sync>,
}

impl Watches {
    /// The kind of that name, as the API server tells.
    pub async fn kind<K: Object>(
        &self,
        ctx: &Context<K>,
        api_version: &str,
        kind: &str,
    ) -> Result<KindInfo> {
        let client = &ctx.session.shared.requests.client;
        KindInfo::discover(client, api_version, kind).await
    }

    /// Watches a kind on behalf of the reconciled object, which is woken by its changes. Started
    /// already, it goes on as it is. Waits for the first list.
    pub async fn start<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        scope: &Scope,
    ) -> Result<Reads<DynamicObject>> {
        let store = self.join(ctx, kind, scope, vec![Interest::all()])?;
        Self::ready(store).await
    }

    /// Watches all objects of a kind on behalf of the reconciled object, which is woken by changes
    /// of those that one of the interests is about. Given again, they replace those before.
    pub async fn start_for<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        interests: Vec<Interest>,
    ) -> Result<Reads<DynamicObject>> {
        let store = self.join(ctx, kind, &Scope::all(), interests)?;
        Self::ready(store).await
    }

    /// Ends the watches of all other kinds, as far as the reconciled object is concerned.
    pub fn keep_only<K: Object>(&self, ctx: &Context<K>, kinds: &BTreeSet<KindInfo>) {
        let others: Vec<(KindInfo, Scope)> = {
            let started = self.0.lock();
            let others = started.keys().filter(|(kind, _)| !kinds.contains(kind));
            others.cloned().collect()
        };
        for (kind, scope) in others {
            self.stop(ctx, &kind, &scope);
        }
    }

    async fn ready(store: Arc<Store>) -> Result<Reads<DynamicObject>> {
        let kind = store.kind.clone();
        if tokio::time::timeout(PATIENCE, store.synced())
            .await
            .is_err()
        {
            let message = format!("cannot watch {kind}: its first list is not complete");
            return Err(Error::other(message));
        }
        Ok(Reads::cached(store))
    }

    /// Ends the watch, as far as the reconciled object is concerned.
    pub fn stop<K: Object>(&self, ctx: &Context<K>, kind: &KindInfo, scope: &Scope) {
        self.0
            .leave(ctx.key(), Some(&(kind.clone(), scope.clone())));
    }

    pub(crate) fn connect(&self, wires: &Wires) {
        // An operator that is started again declares anew: this happens once.
        let _ = self.0.queue.set(Arc::clone(&wires.queue));
        let inner: Weak<Inner> = Arc::downgrade(&self.0);
        let ended = Weak::clone(&inner);
        wires.undo.add(move || {
            if let Some(inner) = ended.upgrade() {
                inner.end();
            }
        });
        wires.subscribe(&wires.primary, move |change| {
            if let (None, Some(key), Some(inner)) = (change.new, change.key(), inner.upgrade()) {
                inner.leave(key, None);
            }
        });
    }

    fn join<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        scope: &Scope,
        interests: Vec<Interest>,
    ) -> Result<Arc<Store>> {
        let Some(queue) = self.0.queue.get() else {
            return Err(Error::other("watches were used before the controller runs"));
        };
        let mut started = self.0.lock();
        let name = (kind.clone(), scope.clone());
        let watch = started.entry(name).or_insert_with(|| {
            let shared = &ctx.session.shared;
            let store = shared.caches.store(kind, scope);
            let users: Users = Arc::default();
            let (woken, queue) = (Arc::clone(&users), Arc::clone(queue));
            let subscription = store.subscribe(move |change| {
                // Whoever starts it waits for the first list.
                if change.initial {
                    return;
                }
                let users = woken.lock().unwrap_or_else(PoisonError::into_inner);
                let interested = |(user, interests): (&Key, &Vec<Interest>)| {
                    let mut sides = change.sides();
                    sides
                        .any(|side| interests.iter().any(|one| one.is_in(side)))
                        .then(|| user.clone())
                };
                let woken: Vec<Key> = users.iter().filter_map(interested).collect();
                wake(&queue, change, woken);
            });
            shared.feeds.start(&store);
            let (feeds, caches) = (
                Arc::downgrade(&shared.feeds),
                Arc::downgrade(&shared.caches),
            );
            let ended = Arc::clone(&store);
            let end = Box::new(move || {
                ended.unsubscribe(subscription);
                if feeds.upgrade().is_some_and(|feeds| feeds.stop(&ended))
                    && let Some(caches) = caches.upgrade()
                {
                    caches.forget(&ended.kind, &ended.scope);
                }
            });
            Started { store, users, end }
        });
        let mut users = watch.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.insert(ctx.key().clone(), interests);
        Ok(Arc::clone(&watch.store))
    }
}

impl Inner {
    /// A user leaves one watch, or all of them; those without users end.
    fn leave(&self, user: &Key, which: Option<&(KindInfo, Scope)>) {
        let mut started = self.lock();
        started.retain(|name, watch| {
            if which.is_some_and(|which| which != name) {
                return true;
            }
            let mut users = watch.users.lock().unwrap_or_else(PoisonError::into_inner);
            users.remove(user);
            let over = users.is_empty();
            drop(users);
            if over {
                (watch.end)();
            }
            !over
        });
    }

    /// Ends all watches.
    fn end(&self) {
        for watch in std::mem::take(&mut *self.lock()).into_values() {
            (watch.end)();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(KindInfo, Scope), Started>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

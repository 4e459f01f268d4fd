//! [`Watches`]: watches that are started and stopped at run time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use kube::core::DynamicObject;

use super::Reads;
use crate::{
    Context, Error, Key, Kind, Result,
    cache::Store,
    declare::wiring::{Wires, wake},
    kind::KindInfo,
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

struct Started {
    store: Arc<Store>,
    users: Arc<Mutex<BTreeSet<Key>>>,
    /// Ends the watch, where the last user is not there to do it.
    end: Box<dyn Fn() + Send + Sync>,
}

impl Watches {
    /// The kind of that name, as the API server tells.
    pub async fn kind<K: Kind>(
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
    pub async fn start<K: Kind>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        scope: &Scope,
    ) -> Result<Reads<DynamicObject>> {
        let store = self.join(ctx, kind, scope)?;
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
    pub fn stop<K: Kind>(&self, ctx: &Context<K>, kind: &KindInfo, scope: &Scope) {
        self.0
            .leave(ctx.key(), Some(&(kind.clone(), scope.clone())));
    }

    pub(crate) fn connect(&self, wires: &Wires) {
        // An operator that is started again declares anew: this happens once.
        let _ = self.0.queue.set(Arc::clone(&wires.queue));
        let inner: Weak<Inner> = Arc::downgrade(&self.0);
        wires.primary.subscribe(move |change| {
            if let (None, Some(key), Some(inner)) = (change.new, change.key(), inner.upgrade()) {
                inner.leave(key, None);
            }
        });
    }

    fn join<K: Kind>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        scope: &Scope,
    ) -> Result<Arc<Store>> {
        let Some(queue) = self.0.queue.get() else {
            return Err(Error::other("watches were used before the controller runs"));
        };
        let mut started = self.0.lock();
        let name = (kind.clone(), scope.clone());
        let watch = started.entry(name).or_insert_with(|| {
            let shared = &ctx.session.shared;
            let store = shared.caches.store(kind, scope);
            let users: Arc<Mutex<BTreeSet<Key>>> = Arc::default();
            let (woken, queue) = (Arc::clone(&users), Arc::clone(queue));
            let subscription = store.subscribe(move |change| {
                // Whoever starts it waits for the first list.
                if change.initial {
                    return;
                }
                let users = woken.lock().unwrap_or_else(PoisonError::into_inner);
                wake(&queue, change, users.iter().cloned());
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
        users.insert(ctx.key().clone());
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(KindInfo, Scope), Started>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

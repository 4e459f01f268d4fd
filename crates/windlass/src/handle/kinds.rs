//! [`OwnedKinds`]: objects that belong to the reconciled object, of kinds known at run time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use kube::core::Expression;
use serde_json::{Value, json};

use super::{
    apply::{self, MARK, marked_body, owned_body, reaches},
    delete::Delete,
    writes,
};
use crate::{
    Context, Error, Key, Result,
    cache::{CachedObject, Change, Store},
    conditions::{self, Readiness},
    controller::{Session, key_of},
    declare::wiring::{Refusals, Wires, owner_key, wake},
    key::Named,
    kind::{KindInfo, Object},
    queue::Queue,
    watch::{Scope, Select},
};

/// How long a kind's first list may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The objects that belong to the reconciled object, of kinds that are known at run time: from a
/// file, from what a hook answers, from a rendered template.
///
/// Declared by [`Declare::owns_kinds`](crate::Declare::owns_kinds). Objects are JSON. A kind is
/// watched from the start if it was declared, and from its first use if not; changes of an object
/// trigger a reconcile of the one it belongs to.
///
/// An object belongs to the reconciled object by its controller reference. Where there can be none,
/// for a cluster-scoped object of a namespaced owner or one in another namespace, it has the label
/// `windlass.dev/owner-uid` instead. No garbage collector follows that: what has it is deleted by a
/// [cleanup](crate::FinalizingReconciler::cleanup).
///
/// Nothing is pruned by itself: what is no longer wanted is [deleted](Self::delete).
///
/// ```
/// use kube::core::DynamicObject;
/// use serde_json::json;
/// use windlass::{handle::{Access, Delete, OwnedKinds, Verb}, kind::KindInfo, prelude::*};
///
/// struct Rendered { objects: OwnedKinds }
///
/// impl Rendered {
///     fn declare(declare: &mut Declare<DynamicObject>) -> Self {
///         let verbs = [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Patch, Verb::Delete];
///         Self { objects: declare.owns_kinds([], [Access::resource("", "configmaps", verbs)]) }
///     }
/// }
///
/// impl Reconciler for Rendered {
///     type Object = DynamicObject;
///
///     async fn reconcile(&self, parent: &DynamicObject, ctx: &Context<DynamicObject>) -> Result<Action> {
///         # let _ = parent;
///         let kind = self.objects.kind(ctx, "v1", "ConfigMap").await?;
///         let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ctx.key().name()}});
///         self.objects.apply(ctx, &kind, map).await?;
///         for other in self.objects.list(ctx, &kind).await? {
///             if other["metadata"]["name"] != *ctx.key().name() {
///                 self.objects.delete(ctx, &kind, &other, &Delete::background()).await?;
///             }
///         }
///         Ok(Action::done())
///     }
/// }
/// ```
#[derive(Clone)]
pub struct OwnedKinds(Arc<Inner>);

struct Inner {
    /// The kind of the owners.
    owner: KindInfo,
    wired: OnceLock<Wired>,
    stores: Mutex<BTreeMap<KindInfo, Owning>>,
    discovered: Mutex<BTreeMap<(String, String), KindInfo>>,
}

struct Wired {
    queue: Arc<Queue>,
    /// The keys of the owners by their uid.
    owners: Arc<Mutex<BTreeMap<Box<str>, Key>>>,
}

/// A kind that is watched.
#[derive(Clone)]
struct Owning {
    store: Arc<Store>,
    refusals: Arc<Refusals>,
    /// What ends a watch that was started late.
    end: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl OwnedKinds {
    pub(crate) fn new(owner: KindInfo, declared: impl IntoIterator<Item = Arc<Store>>) -> Self {
        let owning = declared.into_iter().map(|store| {
            let kind = store.kind.clone();
            let refusals = Arc::default();
            let end = None;
            (
                kind,
                Owning {
                    store,
                    refusals,
                    end,
                },
            )
        });
        Self(Arc::new(Inner {
            owner,
            wired: OnceLock::new(),
            stores: Mutex::new(owning.collect()),
            discovered: Mutex::default(),
        }))
    }

    /// The kind of that name, as the API server reports it. It is asked once for each.
    pub async fn kind<K: Object>(
        &self,
        ctx: &Context<K>,
        api_version: &str,
        kind: &str,
    ) -> Result<KindInfo> {
        let watched = lock(&self.0.stores)
            .keys()
            .find(|one| one.kind == kind && one.api_version() == api_version)
            .cloned();
        if let Some(known) = watched {
            return Ok(known);
        }
        let name = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = lock(&self.0.discovered).get(&name) {
            return Ok(known.clone());
        }
        let client = &ctx.session.shared.requests.client;
        let found = KindInfo::discover(client, api_version, kind).await?;
        lock(&self.0.discovered).insert(name, found.clone());
        Ok(found)
    }

    /// Makes the object be as given, by server-side apply, as [`Owned::apply`] does, and returns it
    /// as it is then.
    ///
    /// [`Owned::apply`]: crate::handle::Owned::apply
    pub async fn apply<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: Value,
    ) -> Result<Value> {
        let owning = self.owning(ctx, kind).await?;
        let body = body(&ctx.session, kind, object)?;
        let applied =
            apply::apply(&ctx.session, &owning.store, &owning.refusals, body, None).await?;
        Ok(applied.into_value())
    }

    /// As [`apply`](Self::apply), of an object that does not go with the reconciled object: it has
    /// the label, and no owner reference, wherever it is.
    pub async fn apply_marked<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        mut object: Value,
    ) -> Result<Value> {
        let owning = self.owning(ctx, kind).await?;
        if let (true, Some(own)) = (kind.namespaced, ctx.key().namespace())
            && object.pointer("/metadata/namespace").is_none()
        {
            object["metadata"]["namespace"] = own.into();
        }
        let body = marked_body(&ctx.session, kind, object)?;
        let applied =
            apply::apply(&ctx.session, &owning.store, &owning.refusals, body, None).await?;
        Ok(applied.into_value())
    }

    /// Whether [`apply`](Self::apply) would send anything, as far as the cache shows.
    pub async fn differs<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: Value,
    ) -> Result<bool> {
        let owning = self.owning(ctx, kind).await?;
        let body = body(&ctx.session, kind, object)?;
        apply::differs(&owning.store, body).await
    }

    /// The object of that name, whoever it belongs to, from the cache.
    pub async fn get<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        name: impl Named,
    ) -> Result<Option<Value>> {
        let owning = self.owning(ctx, kind).await?;
        let key = ctx.session.resolve(kind, &name);
        owning.store.shows_writes_to(&key).await?;
        Ok(owning.store.get(&key).map(|object| object.value()))
    }

    /// Whether an object belongs to the reconciled object.
    pub fn owns<K: Object>(&self, ctx: &Context<K>, object: &Value) -> bool {
        let labelled = object["metadata"]["labels"][MARK] == *ctx.session.uid;
        let controller = crate::cache::controller_of(&object["metadata"]);
        labelled || controller.is_some_and(|owner| owner.uid == ctx.session.uid)
    }

    /// The objects of a kind that belong to the reconciled object, from the cache, in the order of
    /// their keys.
    pub async fn list<K: Object>(&self, ctx: &Context<K>, kind: &KindInfo) -> Result<Vec<Value>> {
        let owning = self.owning(ctx, kind).await?;
        owning.store.shows_writes_of(&ctx.session.writer).await?;
        let mut found = owning.store.controlled_by(&ctx.session.uid);
        if !reaches(&ctx.session, kind, None) || kind.namespaced {
            let marked = Expression::Equal(MARK.to_owned(), ctx.session.uid.to_string());
            found.extend(owning.store.select(None, &[marked]));
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.dedup_by(|a, b| a.key == b.key);
        Ok(found.iter().map(|object| object.value()).collect())
    }

    /// The objects of a kind that match and that nobody controls.
    pub async fn orphans<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<Value>> {
        let owning = self.owning(ctx, kind).await?;
        owning.store.shows_writes_of(&ctx.session.writer).await?;
        let Some((selector, within)) = select.into().expressions() else {
            return Ok(Vec::new());
        };
        let namespace = within.namespace(ctx.key().namespace());
        let namespace = namespace.filter(|_| kind.namespaced);
        let found = owning.store.orphans(namespace, &selector);
        Ok(found.iter().map(|object| object.value()).collect())
    }

    /// As [`adopt`](Self::adopt), of an object that stays when the reconciled object goes.
    pub async fn adopt_marked<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: &Value,
    ) -> Result<Value> {
        self.adopt_as(ctx, kind, object, true).await
    }

    /// Takes over an object that nobody controls. The API server is asked first whether the
    /// reconciled object stays: if it is being deleted or gone, this is [`Error::Deleted`].
    pub async fn adopt<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: &Value,
    ) -> Result<Value> {
        self.adopt_as(ctx, kind, object, false).await
    }

    async fn adopt_as<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: &Value,
        is_kept: bool,
    ) -> Result<Value> {
        let session = &ctx.session;
        if self.owns(ctx, object) {
            return Ok(object.clone());
        }
        if let Some(owner) = crate::cache::controller_of(&object["metadata"]) {
            return Err(Error::NotOurs {
                object: format!("{kind} {}", key_of(object)),
                owner: format!("{} {}", owner.kind, owner.name),
            });
        }
        session.check_stays().await?;
        let namespace = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        let mut patch = precondition(object);
        if !is_kept && reaches(session, kind, namespace) {
            let mut references = references_of(object);
            references.push(session.owner_reference());
            patch["metadata"]["ownerReferences"] = references.into();
        } else {
            patch["metadata"]["labels"] = json!({ MARK: &*session.uid });
        }
        writes::patch(session, kind, object.clone(), patch).await
    }

    /// Lets go of an object: it does not belong to the reconciled object any more.
    pub async fn release<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: &Value,
    ) -> Result<Value> {
        let session = &ctx.session;
        let mut patch = precondition(object);
        let mut references = references_of(object);
        references.retain(|reference| reference["uid"] != *session.uid);
        patch["metadata"]["ownerReferences"] = references.into();
        if object["metadata"]["labels"][MARK] == *session.uid {
            patch["metadata"]["labels"] = json!({ MARK: null });
        }
        writes::patch(session, kind, object.clone(), patch).await
    }

    /// Deletes an object; done already if it is gone.
    pub async fn delete<K: Object>(
        &self,
        ctx: &Context<K>,
        kind: &KindInfo,
        object: &Value,
        how: &Delete,
    ) -> Result<()> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let (key, uid, version) = (key_of(object), text("uid"), text("resourceVersion"));
        let params = how.params_of(uid, version);
        if ctx
            .session
            .shared
            .requests
            .delete(kind, &key, &params)
            .await?
        {
            let caches = &ctx.session.shared.caches;
            let version = version.parse().unwrap_or(0);
            caches.deleted(kind, &key, uid, version, &ctx.session.writer);
        }
        Ok(())
    }

    /// Why an object is not ready: a Deployment is when all its replicas are available, a Job when it
    /// is complete, a Pod when it is Ready, any other kind when it exists. None if it is.
    pub fn not_ready(&self, kind: &KindInfo, object: &Value) -> Option<String> {
        match conditions::readiness(kind, object) {
            Readiness::Ready => None,
            Readiness::NotYet(why) => Some(why),
        }
    }

    pub(crate) fn connect(&self, wires: &Wires) {
        let owners: Arc<Mutex<BTreeMap<Box<str>, Key>>> = Arc::default();
        let known = Arc::clone(&owners);
        let queue = Arc::clone(&wires.queue);
        if self.0.wired.set(Wired { queue, owners }).is_err() {
            return;
        }
        let inner: Weak<Inner> = Arc::downgrade(&self.0);
        let ended = Weak::clone(&inner);
        wires.subscribe(&wires.primary, move |change| {
            if let Some(new) = change.new {
                lock(&known).insert(new.uid.clone(), new.key.clone());
            } else if let Some(old) = change.old {
                lock(&known).remove(&old.uid);
                if let Some(inner) = inner.upgrade() {
                    for owning in lock(&inner.stores).values() {
                        owning.refusals.forget(&old.key);
                    }
                }
            }
        });
        for owning in lock(&self.0.stores).values() {
            if let Some(waker) = self.waker(&owning.refusals) {
                wires.subscribe(&owning.store, waker);
            }
        }
        wires.undo.add(move || {
            let Some(inner) = ended.upgrade() else { return };
            for owning in std::mem::take(&mut *lock(&inner.stores)).into_values() {
                if let Some(end) = owning.end {
                    end();
                }
            }
        });
    }

    /// Wakes those that a changed object belongs to, and those that were refused its name.
    fn waker(
        &self,
        refusals: &Arc<Refusals>,
    ) -> Option<impl Fn(&Change<'_>) + Send + Sync + 'static> {
        let wired = self.0.wired.get()?;
        let (queue, owners) = (Arc::clone(&wired.queue), Arc::clone(&wired.owners));
        let (owner, refusals) = (self.0.owner.clone(), Arc::clone(refusals));
        Some(move |change: &Change<'_>| {
            let marked = |object: &CachedObject| {
                let uid = object.labels.get(MARK)?;
                lock(&owners).get(uid).cloned()
            };
            let mut woken: Vec<Key> = Vec::new();
            for object in change.sides() {
                woken.extend(owner_key(&owner, object));
                woken.extend(marked(object));
            }
            woken.extend(
                change
                    .key()
                    .map(|key| refusals.take(key))
                    .into_iter()
                    .flatten(),
            );
            woken.sort();
            woken.dedup();
            wake(&queue, change, woken);
        })
    }

    /// The watch of a kind; started if it is not.
    async fn owning<K: Object>(&self, ctx: &Context<K>, kind: &KindInfo) -> Result<Owning> {
        let owning = self.start(ctx, kind)?;
        if tokio::time::timeout(PATIENCE, owning.store.synced())
            .await
            .is_err()
        {
            let message = format!("cannot watch {kind}: its first list is not complete");
            return Err(Error::other(message));
        }
        Ok(owning)
    }

    fn start<K: Object>(&self, ctx: &Context<K>, kind: &KindInfo) -> Result<Owning> {
        let mut stores = lock(&self.0.stores);
        if let Some(owning) = stores.get(kind) {
            return Ok(owning.clone());
        }
        let shared = &ctx.session.shared;
        let store = shared.caches.store(kind, &Scope::all());
        let refusals: Arc<Refusals> = Arc::default();
        let Some(waker) = self.waker(&refusals) else {
            return Err(Error::other("kinds were used before the controller runs"));
        };
        let subscription = store.subscribe(waker);
        shared.feeds.start(&store);
        let (feeds, caches) = (
            Arc::downgrade(&shared.feeds),
            Arc::downgrade(&shared.caches),
        );
        let ended = Arc::clone(&store);
        let end = Arc::new(move || {
            ended.unsubscribe(subscription);
            if feeds.upgrade().is_some_and(|feeds| feeds.stop(&ended))
                && let Some(caches) = caches.upgrade()
            {
                caches.forget(&ended.kind, &ended.scope);
            }
        });
        let owning = Owning {
            store,
            refusals,
            end: Some(end),
        };
        stores.insert(kind.clone(), owning.clone());
        Ok(owning)
    }
}

/// The object as it is applied: with its owner reference, or marked where there can be none.
fn body(session: &Session, kind: &KindInfo, object: Value) -> Result<Value> {
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    if reaches(session, kind, namespace) {
        owned_body(session, kind, object)
    } else {
        marked_body(session, kind, object)
    }
}

fn precondition(object: &Value) -> Value {
    json!({"metadata": {
        "uid": object["metadata"]["uid"],
        "resourceVersion": object["metadata"]["resourceVersion"],
    }})
}

fn references_of(object: &Value) -> Vec<Value> {
    let references = object.pointer("/metadata/ownerReferences");
    let references = references.and_then(Value::as_array);
    references.cloned().unwrap_or_default()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

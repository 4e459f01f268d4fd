//! [`Owned`]: the set of objects that belong to the reconciled object.

use std::{marker::PhantomData, sync::Arc};

use serde_json::Value;

use super::{
    apply::{self, Applied, owned_body},
    memo,
};
use crate::{
    Context, Kind, Result,
    cache::{Store, text_bytes, version_of},
    controller::{ObservedFrom, Session, decode, encode, key_of},
    declare::{Observer, wiring::Refusals},
    key::Named,
    kind::Object,
};

/// The complete set of objects of kind `T` that belong to the reconciled object.
///
/// Declared by [`Declare::owns`](crate::Declare::owns). [`apply`](Self::apply) whatever should
/// exist; what was applied before and is not applied again is pruned at the end of a complete
/// reconcile. Their changes trigger a reconcile of the object they belong to. For objects that are
/// created and deleted one by one, see [`Controlled`](crate::handle::Controlled).
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::{Action, Context, Reconciler, Result, handle::{Owned}};
/// struct Shards { maps: Owned<ConfigMap> }
///
/// impl Reconciler for Shards {
///     type Object = Secret;
///
///     async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
///         for nth in 0..3 {
///             let mut map = ConfigMap::default();
///             map.metadata.name = Some(format!("{}-{nth}", ctx.key().name()));
///             self.maps.apply(ctx, map).await?;
///         }
///         Ok(Action::done()) // a fourth one of an earlier reconcile is deleted now
///     }
/// }
/// ```
pub struct Owned<T> {
    pub(super) store: Arc<Store>,
    pub(super) refusals: Arc<Refusals>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Object> Owned<T> {
    pub(crate) fn new(store: Arc<Store>, refusals: Arc<Refusals>) -> Self {
        Self {
            store,
            refusals,
            kind: PhantomData,
        }
    }

    /// The object of that name from the cache, if it is controlled by the reconciled object.
    pub async fn get<K: Object>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
    ) -> Result<Option<Arc<T>>> {
        let key = ctx.session.resolve(&self.store.kind, &name);
        self.store.shows_writes_to(&key).await?;
        let ours = |uid: &str| *uid == *ctx.session.uid;
        self.store
            .get(&key)
            .filter(|object| {
                object
                    .controller
                    .as_ref()
                    .is_some_and(|owner| ours(&owner.uid))
            })
            .map(|object| self.store.typed(&object))
            .transpose()
    }

    /// All objects controlled by the reconciled object, from the cache, in the order of their names.
    pub async fn list<K: Object>(&self, ctx: &Context<K>) -> Result<Vec<Arc<T>>> {
        self.store.shows_writes_of(&ctx.session.writer).await?;
        self.shown(&ctx.session)
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn shown(&self, session: &Session) -> Result<Vec<Arc<T>>> {
        self.store
            .all_typed(&self.store.controlled_by(&session.uid))
    }

    /// As `apply`, of an object as JSON; returns it as it is then.
    pub(crate) async fn apply_value<K: Object>(
        &self,
        ctx: &Context<K>,
        object: Value,
    ) -> Result<Value> {
        let intent = owned_body(&ctx.session, &self.store.kind, object)?;
        let applied = apply::apply(&ctx.session, &self.store, &self.refusals, intent, None).await?;
        Ok(applied.into_value())
    }

    pub(super) async fn apply_object<K: Object>(
        &self,
        ctx: &Context<K>,
        object: &T,
    ) -> Result<Arc<T>> {
        let (session, store) = (&ctx.session, &self.store);
        let source = memo::source_of(session, object);
        if let Some(cached) = memo::applied_before(session, store, object, source).await? {
            return store.typed(&cached);
        }
        let intent = encode(&store.kind, object)?;
        let intent = owned_body(session, &store.kind, intent)?;
        let applied = apply::apply(session, store, &self.refusals, intent, source).await?;
        match applied {
            Applied::Idle(cached) => self.store.typed(&cached),
            Applied::Sent(live) => {
                let (key, version) = (key_of(&live), version_of(&live));
                let text = text_bytes(&live);
                let object = Arc::new(decode(&self.store.kind, live)?);
                // What is rehearsed is not stored, and is never shown.
                if !ctx.session.shared.caches.is_rehearsal() {
                    self.store.expects(&key, version, text, &object);
                }
                Ok(object)
            }
        }
    }
}

impl<T: Kind> Owned<T> {
    /// Makes the object be as given, by server-side apply: creates it, repairs the fields given,
    /// gives up fields no longer given, and leaves everything else alone. Sends nothing when the
    /// cached object shows that nothing would change. An object of that name which the reconciled
    /// object does not control is [`Error::NotOurs`](crate::Error::NotOurs).
    ///
    /// In the namespace of the reconciled object; a cluster-scoped one names the namespace.
    pub async fn apply<K: Object>(&self, ctx: &Context<K>, object: T) -> Result<Arc<T>> {
        let live = self.apply_object(ctx, &object).await?;
        ctx.session.observe(&live);
        Ok(live)
    }

    /// Adds what is there to what was observed.
    pub(crate) fn observer(&self) -> Observer {
        let owned = Self::new(Arc::clone(&self.store), Arc::clone(&self.refusals));
        Box::new(move |session, observed| {
            for object in owned.shown(session)? {
                observed.add(ObservedFrom::Owned, object);
            }
            Ok(())
        })
    }
}

impl Owned<kube::core::DynamicObject> {
    /// As [`apply`](Owned::apply), of an object whose kind is known only at run time.
    pub async fn apply_dynamic<K: Object>(
        &self,
        ctx: &Context<K>,
        object: &kube::core::DynamicObject,
    ) -> Result<Arc<kube::core::DynamicObject>> {
        self.apply_object(ctx, object).await
    }
}

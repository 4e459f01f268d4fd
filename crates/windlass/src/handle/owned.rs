//! [`Owned`]: objects that the reconciled object controls.

use std::{marker::PhantomData, sync::Arc};

use serde_json::{Value, json};

use super::{
    apply::{self, owned_body},
    delete::Delete,
    reads, writes,
};
use crate::{
    Context, Error, Key, Kind, Object, Result,
    cache::{Store, controller_of},
    controller::{decode, encode},
    declare::{Select, wiring::Refusals},
    key::Named,
};

/// Objects of kind `T` that are controlled by the object being reconciled.
pub struct Owned<T> {
    store: Arc<Store>,
    refusals: Arc<Refusals>,
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
    pub async fn get<K: Kind>(&self, ctx: &Context<K>, name: impl Named) -> Result<Option<T>> {
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
            .map(|object| object.decode(&self.store.kind))
            .transpose()
    }

    /// All objects controlled by the reconciled object, from the cache, in the order of their names.
    pub async fn list<K: Kind>(&self, ctx: &Context<K>) -> Result<Vec<T>> {
        self.store.shows_writes_of(&ctx.session.writer).await?;
        let owned = self.store.controlled_by(&ctx.session.uid);
        owned
            .iter()
            .map(|object| object.decode(&self.store.kind))
            .collect()
    }

    /// What a controller that selects its objects by label has to decide about: the objects that
    /// the reconciled object controls, whatever their labels, and those that match and that nobody
    /// controls. Which to [`adopt`](Self::adopt) and [`release`](Self::release) is up to it.
    pub async fn candidates<K: Kind>(
        &self,
        ctx: &Context<K>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<T>> {
        self.store.shows_writes_of(&ctx.session.writer).await?;
        let Some((selector, within)) = select.into().expressions() else {
            return Ok(Vec::new());
        };
        let namespace = reads::namespace(&self.store, &ctx.session, &within);
        let mut found = self.store.controlled_by(&ctx.session.uid);
        found.retain(|object| namespace.is_none() || object.key.namespace() == namespace);
        found.extend(self.store.orphans(namespace, &selector));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
            .iter()
            .map(|object| object.decode(&self.store.kind))
            .collect()
    }

    /// Makes the object be as given, by server-side apply: creates it, repairs the fields given,
    /// gives up fields no longer given, and leaves everything else alone. Sends nothing when the
    /// cached object shows that nothing would change. An object of that name which the reconciled
    /// object does not control is [`Error::NotOurs`].
    pub async fn apply<K: Kind>(&self, ctx: &Context<K>, object: T) -> Result<T> {
        let intent = owned_body(
            &ctx.session,
            &self.store.kind,
            encode(&self.store.kind, &object)?,
        )?;
        let applied = apply::apply(&ctx.session, &self.store, &self.refusals, intent).await?;
        applied.decode(&self.store.kind)
    }

    /// As `apply`, of an object as JSON; answers it as it is then.
    pub(crate) async fn apply_value<K: Kind>(
        &self,
        ctx: &Context<K>,
        object: Value,
    ) -> Result<Value> {
        let intent = owned_body(&ctx.session, &self.store.kind, object)?;
        let applied = apply::apply(&ctx.session, &self.store, &self.refusals, intent).await?;
        Ok(applied.into_value())
    }

    /// Creates an object controlled by the reconciled object; its name may be a `generateName`.
    pub async fn create<K: Kind>(&self, ctx: &Context<K>, object: T) -> Result<T> {
        let body = owned_body(
            &ctx.session,
            &self.store.kind,
            encode(&self.store.kind, &object)?,
        )?;
        let created = writes::create(&ctx.session, &self.store.kind, body).await?;
        decode(&self.store.kind, created)
    }

    /// Changes parts of an object by a merge patch. Sends nothing when nothing would change.
    pub async fn patch<K: Kind>(&self, ctx: &Context<K>, object: &T, patch: Value) -> Result<T> {
        let current = encode(&self.store.kind, object)?;
        let patched = writes::patch(&ctx.session, &self.store.kind, current, patch).await?;
        decode(&self.store.kind, patched)
    }

    /// Replaces an object as it was read; a conflict if it has changed since.
    pub async fn update<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        let body = encode(&self.store.kind, object)?;
        let updated = writes::update(&ctx.session, &self.store.kind, body).await?;
        decode(&self.store.kind, updated)
    }

    /// Deletes an object; done already if it is gone.
    pub async fn delete<K: Kind>(&self, ctx: &Context<K>, object: &T, how: Delete) -> Result<()> {
        writes::delete(&ctx.session, &self.store.kind, object, &how).await
    }

    /// Deletes every object that the reconciled object controls and that matches; answers how many.
    pub async fn delete_all<K: Kind>(
        &self,
        ctx: &Context<K>,
        matches: impl Fn(&T) -> bool + Send,
        how: Delete,
    ) -> Result<usize> {
        let mut deleted = 0;
        for object in self.list(ctx).await? {
            if matches(&object) {
                writes::delete(&ctx.session, &self.store.kind, &object, &how).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Takes over an object that nobody controls: the reconciled object becomes its controller.
    pub async fn adopt<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        let current = encode(&self.store.kind, object)?;
        match controller_of(&current["metadata"]) {
            Some(owner) if *owner.uid == *ctx.session.uid => {
                return decode(&self.store.kind, current);
            }
            Some(owner) => {
                return Err(Error::NotOurs {
                    object: format!("{} {}", self.store.kind, Key::of(object)),
                    owner: format!("{} {}", owner.kind, owner.name),
                });
            }
            None => {}
        }
        let mut references = references_of(&current);
        references.push(ctx.session.owner_reference());
        self.set_references(ctx, current, &references).await
    }

    /// Lets go of an object: removes the reconciled object's owner reference.
    pub async fn release<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        let current = encode(&self.store.kind, object)?;
        let mut references = references_of(&current);
        references.retain(|reference| reference["uid"] != *ctx.session.uid);
        self.set_references(ctx, current, &references).await
    }

    async fn set_references<K: Kind>(
        &self,
        ctx: &Context<K>,
        current: Value,
        references: &[Value],
    ) -> Result<T> {
        // The list is replaced as a whole, so nobody may have changed it since.
        let patch = json!({"metadata": {
            "ownerReferences": references,
            "uid": current["metadata"]["uid"],
            "resourceVersion": current["metadata"]["resourceVersion"],
        }});
        let patched = writes::patch(&ctx.session, &self.store.kind, current, patch).await?;
        decode(&self.store.kind, patched)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

fn references_of(object: &Value) -> Vec<Value> {
    object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

//! [`Controlled`]: objects of the reconciled object that are handled one by one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{apply::owned_body, delete::Delete, owned::Owned, writes};
use crate::{
    Context, Error, Key, Result,
    cache::controller_of,
    controller::{decode, encode},
    declare::Select,
    key::Named,
    kind::Object,
};

/// Objects of kind `T` that the reconciled object controls and that its reconciler creates,
/// adopts, changes and deletes one by one: the pods of a replica set, the members of a database.
///
/// Declared by [`Declare::controls`](crate::Declare::controls). Nothing is pruned: what should go
/// is deleted by the reconciler. Their changes trigger a reconcile of the object that controls
/// them.
///
/// ```
/// # use k8s_openapi::api::core::v1::{Pod, ConfigMap};
/// # use windlass::{Action, Context, Reconciler, Result, handle::{Controlled, Delete}};
/// struct Members { pods: Controlled<Pod> }
///
/// impl Reconciler for Members {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
///         for pod in self.pods.list(ctx).await? {
///             if pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed")) {
///                 self.pods.delete(ctx, &pod, Delete::background()).await?;
///             }
///         }
///         Ok(Action::done())
///     }
/// }
/// ```
pub struct Controlled<T> {
    owned: Owned<T>,
    /// Whether it was declared that objects are adopted.
    adopts: bool,
}

impl<T: Object> Controlled<T> {
    pub(crate) fn new(owned: Owned<T>) -> Self {
        Self {
            owned,
            adopts: false,
        }
    }

    pub(crate) fn adopting(self) -> Self {
        Self {
            adopts: true,
            ..self
        }
    }

    /// The object of that name from the cache, if it is controlled by the reconciled object.
    pub async fn get<K: Object>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
    ) -> Result<Option<Arc<T>>> {
        self.owned.get(ctx, name).await
    }

    /// All objects controlled by the reconciled object, from the cache, in the order of their names.
    pub async fn list<K: Object>(&self, ctx: &Context<K>) -> Result<Vec<Arc<T>>> {
        self.owned.list(ctx).await
    }

    /// What a controller that selects its objects by label has to decide about: the objects that
    /// the reconciled object controls, whatever their labels, and those that match and that nobody
    /// controls. Which to [`adopt`](Self::adopt) and [`release`](Self::release) is up to it.
    pub async fn candidates<K: Object>(
        &self,
        ctx: &Context<K>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<Arc<T>>> {
        self.owned
            .store
            .shows_writes_of(&ctx.session.writer)
            .await?;
        let Some((selector, within)) = select.into().expressions() else {
            return Ok(Vec::new());
        };
        let namespace = within.namespace(ctx.key().namespace());
        let namespace = namespace.filter(|_| self.owned.store.kind.namespaced);
        let mut found = self.owned.store.controlled_by(&ctx.session.uid);
        found.retain(|object| namespace.is_none() || object.key.namespace() == namespace);
        found.extend(self.owned.store.orphans(namespace, &selector));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        self.owned.store.all_typed(&found)
    }

    /// Makes the object be as given, by server-side apply: as [`Owned::apply`].
    pub async fn apply<K: Object>(&self, ctx: &Context<K>, object: T) -> Result<Arc<T>> {
        self.owned.apply_object(ctx, &object).await
    }

    /// Creates an object controlled by the reconciled object; its name may be a `generateName`.
    pub async fn create<K: Object>(&self, ctx: &Context<K>, object: T) -> Result<T> {
        let body = owned_body(
            &ctx.session,
            &self.owned.store.kind,
            encode(&self.owned.store.kind, &object)?,
        )?;
        let created = writes::create(&ctx.session, &self.owned.store.kind, body).await?;
        decode(&self.owned.store.kind, created)
    }

    /// Changes parts of an object by a merge patch. Sends nothing when nothing would change.
    pub async fn patch<K: Object>(&self, ctx: &Context<K>, object: &T, patch: Value) -> Result<T> {
        let current = encode(&self.owned.store.kind, object)?;
        let patched = writes::patch(&ctx.session, &self.owned.store.kind, current, patch).await?;
        decode(&self.owned.store.kind, patched)
    }

    /// Deletes an object; done already if it is gone.
    pub async fn delete<K: Object>(&self, ctx: &Context<K>, object: &T, how: Delete) -> Result<()> {
        writes::delete(&ctx.session, &self.owned.store.kind, object, &how).await
    }

    /// Deletes every object that the reconciled object controls and that matches; answers how many.
    pub async fn delete_all<K: Object>(
        &self,
        ctx: &Context<K>,
        matches: impl Fn(&T) -> bool + Send,
        how: Delete,
    ) -> Result<usize> {
        let mut deleted = 0;
        for object in self.list(ctx).await? {
            if matches(&object) {
                writes::delete(&ctx.session, &self.owned.store.kind, object.as_ref(), &how).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Takes over an object that nobody controls: the reconciled object becomes its controller.
    /// Needs [`Declare::adopts`](crate::Declare::adopts).
    ///
    /// The cache may not show yet that the reconciled object is being deleted, and that the garbage
    /// collector has just orphaned what it controlled. So the API server is asked first; if the object
    /// is being deleted or gone, this is [`Error::Deleted`].
    pub async fn adopt<K: Object>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        let current = encode(&self.owned.store.kind, object)?;
        match controller_of(&current["metadata"]) {
            Some(owner) if *owner.uid == *ctx.session.uid => {
                return decode(&self.owned.store.kind, current);
            }
            Some(owner) => {
                return Err(Error::NotOurs {
                    object: format!("{} {}", self.owned.store.kind, Key::of(object)),
                    owner: format!("{} {}", owner.kind, owner.name),
                });
            }
            None => {}
        }
        self.confirm_owner(ctx).await?;
        let mut references = references_of(&current);
        references.push(ctx.session.owner_reference());
        self.set_references(ctx, current, &references).await
    }

    /// Fails with [`Error::Deleted`] if the API server says that the reconciled object is being deleted,
    /// gone or replaced, whatever the cache shows. To be called after an object was read and before an
    /// owner reference is added to it; [`adopt`](Self::adopt) does so itself. Needs
    /// [`Declare::adopts`](crate::Declare::adopts).
    pub async fn confirm_owner<K: Object>(&self, ctx: &Context<K>) -> Result<()> {
        if !self.adopts {
            return Err(Error::NotDeclared {
                controller: ctx.session.controller.name.to_string(),
                verb: "adopt",
                resource: self.owned.store.kind.to_string(),
            });
        }
        ctx.session.check_stays().await
    }

    /// Lets go of an object: removes the reconciled object's owner reference.
    pub async fn release<K: Object>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        let current = encode(&self.owned.store.kind, object)?;
        let mut references = references_of(&current);
        references.retain(|reference| reference["uid"] != *ctx.session.uid);
        self.set_references(ctx, current, &references).await
    }

    async fn set_references<K: Object>(
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
        let patched = writes::patch(&ctx.session, &self.owned.store.kind, current, patch).await?;
        decode(&self.owned.store.kind, patched)
    }
}

fn references_of(object: &Value) -> Vec<Value> {
    object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

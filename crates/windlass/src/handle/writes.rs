//! [`Writes`]: declared writes to objects that are not owned, and to the own kind.

use std::{marker::PhantomData, sync::Arc};

use kube::{api::ListParams, core::Selector};
use serde::Serialize;
use serde_json::{Value, json};

use super::{apply, delete::Delete};
use crate::{
    Context, Error, Key, Result,
    client::merge,
    controller::{Session, decode, encode, key_of},
    handle::{Access, Verb},
    key::Named,
    kind::{KindInfo, Object},
};

/// How often a change is tried before its conflict is an error.
const TRIES: u32 = 10;

/// Writes objects of kind `T` as its [`Access`] allows: a scheduler binding pods, a node reporting
/// on them, a controller changing labels or finalizers of its own kind.
///
/// ```
/// use k8s_openapi::api::core::v1::Namespace;
/// use serde_json::json;
/// use windlass::{handle::{Access, Verb, Writes}, prelude::*};
///
/// struct Labeler { namespaces: Writes<Namespace> }
///
/// impl Labeler {
///     fn declare(declare: &mut Declare<Namespace>) -> Self {
///         Self { namespaces: declare.writes(Access::to([Verb::Patch])) }
///     }
/// }
///
/// impl Reconciler for Labeler {
///     type Object = Namespace;
///
///     async fn reconcile(&self, namespace: &Namespace, ctx: &Context<Namespace>) -> Result<Action> {
///         let labels = json!({"metadata": {"labels": {"example.com/seen": "yes"}}});
///         self.namespaces.patch(ctx, namespace, labels).await?; // sends nothing if it has the label
///         Ok(Action::done())
///     }
/// }
/// # Operator::new("labels").controller(Controller::of_existing().reconciler(Labeler::declare));
/// ```
pub struct Writes<T> {
    info: KindInfo,
    access: Access,
    controller: Arc<str>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Object> Writes<T> {
    pub(crate) fn new(info: KindInfo, access: Access, controller: Arc<str>) -> Self {
        Self {
            info,
            access,
            controller,
            kind: PhantomData,
        }
    }

    /// Creates an object (verb `create`).
    pub async fn create<K: Object>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        self.check("", Verb::Create)?;
        let body = self.placed(ctx, object)?;
        decode(&self.info, create(&ctx.session, &self.info, body).await?)
    }

    /// The object as JSON, in the namespace of the reconciled object if it names none.
    fn placed<K: Object>(&self, ctx: &Context<K>, object: &T) -> Result<Value> {
        let mut body = merge::without_nulls(encode(&self.info, object)?);
        if let (true, None) = (self.info.namespaced, body.pointer("/metadata/namespace")) {
            body["metadata"]["namespace"] = ctx.key().namespace().into();
        }
        Ok(body)
    }

    /// Makes the object be as given, by server-side apply (verbs `create` and `patch`): creates it,
    /// sets the fields given whoever set them before, gives up fields that are no longer given, and
    /// leaves everything else alone. Sends nothing if the controller also reads the kind and the
    /// cache shows that nothing would change.
    ///
    /// The object does not belong to the reconciled one: nothing is pruned, and nothing is deleted
    /// with it. In the namespace of the reconciled object, if the object names none.
    pub async fn apply<K: Object>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        self.check("", Verb::Create)?;
        self.check("", Verb::Patch)?;
        let body = self.placed(ctx, object)?;
        decode(
            &self.info,
            apply::apply_unowned(&ctx.session, &self.info, body).await?,
        )
    }

    /// Changes parts of an object by a merge patch (verb `patch`); sends nothing when nothing
    /// would change.
    pub async fn patch<K: Object>(&self, ctx: &Context<K>, object: &T, patch: Value) -> Result<T> {
        self.check("", Verb::Patch)?;
        let current = encode(&self.info, object)?;
        decode(
            &self.info,
            self::patch(&ctx.session, &self.info, current, patch).await?,
        )
    }

    /// Changes parts of an object of a kind that Kubernetes itself defines by a strategic merge
    /// patch (verb `patch`): one container of a pod can be named and changed, the others stay.
    ///
    /// Always sent. The object as it was read is a precondition: a conflict if it has changed since.
    pub async fn patch_entries<K: Object>(
        &self,
        ctx: &Context<K>,
        object: &T,
        mut patch: Value,
    ) -> Result<T> {
        self.check("", Verb::Patch)?;
        let meta = object.meta();
        patch["metadata"]["uid"] = meta.uid.clone().into();
        patch["metadata"]["resourceVersion"] = meta.resource_version.clone().into();
        let requests = &ctx.session.shared.requests;
        let answer = requests
            .merge_entries(&self.info, &Key::of(object), &patch)
            .await?;
        ctx.session.wrote(&self.info, &answer);
        decode(&self.info, answer)
    }

    /// Replaces an object as it was read (verb `update`).
    pub async fn update<K: Object>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        self.check("", Verb::Update)?;
        let body = encode(&self.info, object)?;
        decode(&self.info, update(&ctx.session, &self.info, body).await?)
    }

    /// Deletes an object (verb `delete`); done already if it is gone.
    pub async fn delete<K: Object>(&self, ctx: &Context<K>, object: &T, how: Delete) -> Result<()> {
        self.check("", Verb::Delete)?;
        delete(&ctx.session, &self.info, object, &how).await
    }

    /// Deletes every object of the namespace of the reconciled object that has these labels, by one
    /// request (verb `deletecollection`).
    pub async fn delete_all<K: Object>(
        &self,
        ctx: &Context<K>,
        labels: &Selector,
        how: Delete,
    ) -> Result<()> {
        self.check("", Verb::DeleteCollection)?;
        let namespace = ctx.key().namespace().filter(|_| self.info.namespaced);
        let which = ListParams::default().labels_from(labels);
        let requests = &ctx.session.shared.requests;
        let params = how.params_for_all();
        requests
            .delete_all(&self.info, namespace, &params, &which)
            .await
    }

    /// Reads an object from the API server, changes it, and replaces it; begins anew when somebody
    /// else was quicker (verbs `get` and `update`). Sends nothing when nothing changes; none if
    /// there is no such object.
    ///
    /// For changes that depend on what is there and cannot be said as a patch: to take one item out
    /// of a list that others write too.
    pub async fn modify<K: Object>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
        change: impl Fn(&mut T) + Send,
    ) -> Result<Option<T>> {
        self.check("", Verb::Get)?;
        self.check("", Verb::Update)?;
        let key = ctx.session.resolve(&self.info, &name);
        let mut tries = 0;
        loop {
            let found = ctx.session.shared.requests.get(&self.info, &key).await?;
            let Some(found) = found else {
                return Ok(None);
            };
            let mut object: T = decode(&self.info, found)?;
            let before = encode(&self.info, &object)?;
            change(&mut object);
            let after = encode(&self.info, &object)?;
            if before == after {
                return Ok(Some(object));
            }
            tries += 1;
            match update(&ctx.session, &self.info, after).await {
                Ok(updated) => return decode(&self.info, updated).map(Some),
                Err(error) if error.is_conflict() && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Changes parts of a subresource by a merge patch (verb `patch` on it), as in `scale`.
    pub async fn patch_subresource<K: Object>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
        subresource: &str,
        patch: &Value,
    ) -> Result<Value> {
        self.check(subresource, Verb::Patch)?;
        let key = ctx.session.resolve(&self.info, &name);
        let requests = &ctx.session.shared.requests;
        let answer = requests
            .merge(&self.info, &key, Some(subresource), patch)
            .await?;
        if answer["kind"] == *self.info.kind {
            ctx.session.wrote(&self.info, &answer);
        }
        Ok(answer)
    }

    /// Makes the status of an object be as given (verb `patch` on `status`); sends nothing when it
    /// is already.
    pub async fn status<K: Object>(
        &self,
        ctx: &Context<K>,
        object: &T,
        status: impl Serialize + Send,
    ) -> Result<T> {
        self.check("status", Verb::Patch)?;
        let current = encode(&self.info, object)?;
        let wanted = merge::without_nulls(encode(&self.info, &status)?);
        let nothing = json!({});
        let before = current
            .get("status")
            .filter(|status| status.is_object())
            .unwrap_or(&nothing);
        let Some(patch) = merge::diff(before, &wanted) else {
            return decode(&self.info, current);
        };
        let key = key_of(&current);
        let body = json!({"status": patch, "metadata": {"uid": current["metadata"]["uid"]}});
        let answer = ctx
            .session
            .shared
            .requests
            .merge(&self.info, &key, Some("status"), &body)
            .await?;
        ctx.session.wrote(&self.info, &answer);
        decode(&self.info, answer)
    }

    /// Posts to a subresource (verb `create` on it), as in binding a pod.
    pub async fn post<K: Object>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
        subresource: &str,
        body: impl Serialize + Send,
    ) -> Result<Value> {
        self.check(subresource, Verb::Create)?;
        let key = ctx.session.resolve(&self.info, &name);
        let body = encode(&self.info, &body)?;
        ctx.session
            .shared
            .requests
            .post_to(&self.info, &key, subresource, &body)
            .await
    }

    /// Replaces a subresource (verb `update` on it), as in finalizing a namespace.
    pub async fn put<K: Object>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
        subresource: &str,
        body: impl Serialize + Send,
    ) -> Result<Value> {
        self.check(subresource, Verb::Update)?;
        let key = ctx.session.resolve(&self.info, &name);
        let body = encode(&self.info, &body)?;
        let answer = ctx
            .session
            .shared
            .requests
            .replace(&self.info, &key, Some(subresource), body)
            .await?;
        if answer["kind"] == *self.info.kind {
            ctx.session.wrote(&self.info, &answer);
        }
        Ok(answer)
    }

    fn check(&self, subresource: &str, verb: Verb) -> Result<()> {
        if self.access.allows(subresource, verb) {
            return Ok(());
        }
        let mut resource = self.info.to_string();
        if !subresource.is_empty() {
            resource = format!("{resource}/{subresource}");
        }
        let controller = self.controller.to_string();
        Err(Error::NotDeclared {
            controller,
            verb: verb.as_str(),
            resource,
        })
    }
}

pub(crate) async fn create(session: &Session, kind: &KindInfo, body: Value) -> Result<Value> {
    let answer = session
        .shared
        .requests
        .create(kind, &key_of(&body), body)
        .await?;
    session.wrote(kind, &answer);
    Ok(answer)
}

pub(crate) async fn patch(
    session: &Session,
    kind: &KindInfo,
    current: Value,
    patch: Value,
) -> Result<Value> {
    if !merge::changes(&current, &patch) {
        return Ok(current);
    }
    let answer = session
        .shared
        .requests
        .merge(kind, &key_of(&current), None, &patch)
        .await?;
    session.wrote(kind, &answer);
    Ok(answer)
}

pub(crate) async fn update(session: &Session, kind: &KindInfo, body: Value) -> Result<Value> {
    let answer = session
        .shared
        .requests
        .replace(kind, &key_of(&body), None, body)
        .await?;
    session.wrote(kind, &answer);
    Ok(answer)
}

pub(crate) async fn delete<T: Object>(
    session: &Session,
    kind: &KindInfo,
    object: &T,
    how: &Delete,
) -> Result<()> {
    let key = Key::of(object);
    if session
        .shared
        .requests
        .delete(kind, &key, &how.params(object))
        .await?
    {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let version = object.meta().resource_version.as_deref();
        let version = version.and_then(|version| version.parse().ok());
        session
            .shared
            .caches
            .deleted(kind, &key, uid, version.unwrap_or(0), &session.writer);
    }
    Ok(())
}

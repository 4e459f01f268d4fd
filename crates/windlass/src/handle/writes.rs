//! [`Writes`]: declared writes to objects that are not owned, and to the own kind.

use std::marker::PhantomData;

use serde::Serialize;
use serde_json::Value;

use super::delete::Delete;
use crate::{Context, Kind, Result, key::Named};

/// Writes objects of kind `T` as its [`Access`](crate::Access) allows: a scheduler binding pods, a
/// node reporting on them, a controller changing labels or finalizers of its own kind.
pub struct Writes<T> {
    kind: PhantomData<fn() -> T>,
}

impl<T: Kind> Writes<T> {
    /// Creates an object (verb `create`).
    pub async fn create<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        todo!()
    }

    /// Changes parts of an object by a merge patch (verb `patch`); sends nothing when nothing
    /// would change.
    pub async fn patch<K: Kind>(&self, ctx: &Context<K>, object: &T, patch: Value) -> Result<T> {
        todo!()
    }

    /// Replaces an object as it was read (verb `update`).
    pub async fn update<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        todo!()
    }

    /// Deletes an object (verb `delete`); done already if it is gone.
    pub async fn delete<K: Kind>(&self, ctx: &Context<K>, object: &T, how: Delete) -> Result<()> {
        todo!()
    }

    /// Makes the status of an object be as given (verb `patch` on `status`); sends nothing when it
    /// is already.
    pub async fn status<K: Kind>(
        &self,
        ctx: &Context<K>,
        object: &T,
        status: impl Serialize + Send,
    ) -> Result<T> {
        todo!()
    }

    /// Posts to a subresource (verb `create` on it), as in binding a pod.
    pub async fn post<K: Kind>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
        subresource: &str,
        body: impl Serialize + Send,
    ) -> Result<Value> {
        todo!()
    }

    /// Replaces a subresource (verb `update` on it), as in finalizing a namespace.
    pub async fn put<K: Kind>(
        &self,
        ctx: &Context<K>,
        name: impl Named,
        subresource: &str,
        body: impl Serialize + Send,
    ) -> Result<Value> {
        todo!()
    }
}

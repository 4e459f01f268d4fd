//! [`Owned`]: objects that the reconciled object controls.

use std::marker::PhantomData;

use serde_json::Value;

use super::delete::Delete;
use crate::{Context, Kind, Result, declare::Select, key::Named};

/// Objects of kind `T` that are controlled by the object being reconciled.
pub struct Owned<T> {
    kind: PhantomData<fn() -> T>,
}

impl<T: Kind> Owned<T> {
    /// The object of that name from the cache, if it is controlled by the reconciled object.
    pub async fn get<K: Kind>(&self, ctx: &Context<K>, name: impl Named) -> Result<Option<T>> {
        todo!()
    }

    /// All objects controlled by the reconciled object, from the cache, in the order of their names.
    pub async fn list<K: Kind>(&self, ctx: &Context<K>) -> Result<Vec<T>> {
        todo!()
    }

    /// All objects that match, whoever controls them: the candidates for [`adopt`](Self::adopt)
    /// and [`release`](Self::release).
    pub async fn candidates<K: Kind>(
        &self,
        ctx: &Context<K>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<T>> {
        todo!()
    }

    /// Makes the object be as given, by server-side apply: creates it, repairs the fields given,
    /// gives up fields no longer given, and leaves everything else alone. Sends nothing when the
    /// cached object shows that nothing would change. An object of that name which the reconciled
    /// object does not control is [`Error::NotOurs`](crate::Error::NotOurs).
    pub async fn apply<K: Kind>(&self, ctx: &Context<K>, object: T) -> Result<T> {
        todo!()
    }

    /// Creates an object controlled by the reconciled object; its name may be a `generateName`.
    pub async fn create<K: Kind>(&self, ctx: &Context<K>, object: T) -> Result<T> {
        todo!()
    }

    /// Changes parts of an object by a merge patch. Sends nothing when nothing would change.
    pub async fn patch<K: Kind>(&self, ctx: &Context<K>, object: &T, patch: Value) -> Result<T> {
        todo!()
    }

    /// Replaces an object as it was read; a conflict if it has changed since.
    pub async fn update<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        todo!()
    }

    /// Deletes an object; done already if it is gone.
    pub async fn delete<K: Kind>(&self, ctx: &Context<K>, object: &T, how: Delete) -> Result<()> {
        todo!()
    }

    /// Takes over an object that nobody controls: the reconciled object becomes its controller.
    pub async fn adopt<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        todo!()
    }

    /// Lets go of an object: removes the reconciled object's owner reference.
    pub async fn release<K: Kind>(&self, ctx: &Context<K>, object: &T) -> Result<T> {
        todo!()
    }
}

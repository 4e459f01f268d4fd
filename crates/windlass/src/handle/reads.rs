//! [`Reads`]: objects of a watched kind, from the cache.

use std::marker::PhantomData;

use crate::{Context, Kind, Result, declare::Select, key::Named};

/// Reads objects of kind `T` from the cache; sees what this operator wrote before.
pub struct Reads<T> {
    kind: PhantomData<fn() -> T>,
}

impl<T: Kind> Reads<T> {
    /// The object of that name, if it exists.
    pub async fn get<K: Kind>(&self, ctx: &Context<K>, name: impl Named) -> Result<Option<T>> {
        todo!()
    }

    /// All objects that match, in the order of namespace and name.
    pub async fn list<K: Kind>(
        &self,
        ctx: &Context<K>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<T>> {
        todo!()
    }
}

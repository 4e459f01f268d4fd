//! [`Reads`]: objects of a watched kind, from the cache.

use std::{marker::PhantomData, sync::Arc};

use crate::{
    Context, Kind, Object, Result,
    cache::Store,
    controller::Session,
    declare::{Select, Within},
    key::Named,
};

/// Reads objects of kind `T` from the cache; sees what this operator wrote before.
pub struct Reads<T> {
    store: Arc<Store>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Object> Reads<T> {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            kind: PhantomData,
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The object of that name, if it exists.
    pub async fn get<K: Kind>(&self, ctx: &Context<K>, name: impl Named) -> Result<Option<T>> {
        let key = ctx.session.resolve(&self.store.kind, &name);
        self.store.shows_writes_to(&key).await?;
        self.store
            .get(&key)
            .map(|object| object.decode(&self.store.kind))
            .transpose()
    }

    /// All objects that match, in the order of namespace and name.
    pub async fn list<K: Kind>(
        &self,
        ctx: &Context<K>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<T>> {
        let select = select.into();
        list(&self.store, &ctx.session, select).await
    }

    /// The objects whose controller has this uid, of all namespaces, in the order of namespace and
    /// name. Costs the same however many others there are.
    pub async fn controlled_by<K: Kind>(&self, ctx: &Context<K>, uid: &str) -> Result<Vec<T>> {
        self.store.shows_writes_of(&ctx.session.writer).await?;
        let controlled = self.store.controlled_by(uid);
        controlled
            .iter()
            .map(|object| object.decode(&self.store.kind))
            .collect()
    }
}

/// Objects of kind `T` by what a function says of them, made by
/// [`Declare::index`](crate::Declare::index). A look-up costs the same however many there are.
pub struct Index<T> {
    store: Arc<Store>,
    place: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T: Object> Index<T> {
    pub(crate) fn new(store: Arc<Store>, place: usize) -> Self {
        Self {
            store,
            place,
            kind: PhantomData,
        }
    }

    /// The objects under a value, of all namespaces, in the order of namespace and name.
    pub async fn find<K: Kind>(&self, ctx: &Context<K>, value: &str) -> Result<Vec<T>> {
        self.store.shows_writes_of(&ctx.session.writer).await?;
        let found = self.store.indexed(self.place, value);
        found
            .iter()
            .map(|object| object.decode(&self.store.kind))
            .collect()
    }
}

/// The objects of a store that match, once it shows what the session wrote.
pub(crate) async fn list<T: Object>(
    store: &Store,
    session: &Session,
    select: Select,
) -> Result<Vec<T>> {
    store.shows_writes_of(&session.writer).await?;
    let Some((selector, within)) = select.expressions() else {
        return Ok(Vec::new());
    };
    let namespace = namespace(store, session, &within);
    store
        .select(namespace, &selector)
        .iter()
        .map(|object| object.decode(&store.kind))
        .collect()
}

/// The namespace that is meant; none if all are.
pub(crate) fn namespace<'a>(
    store: &Store,
    session: &'a Session,
    within: &'a Within,
) -> Option<&'a str> {
    let namespace = match within {
        Within::Own => session.key().namespace(),
        Within::Everywhere => None,
        Within::Namespace(namespace) => Some(namespace.as_str()),
    };
    namespace.filter(|_| store.kind.namespaced)
}

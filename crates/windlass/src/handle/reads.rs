//! [`Reads`]: objects of other kinds, from the cache or from the API server.

use std::{marker::PhantomData, sync::Arc};

use kube::{api::ListParams, core::Expression};

use crate::{
    Context, Error, Result,
    cache::Store,
    controller::{Session, decode},
    declare::Select,
    key::Named,
    kind::{KindInfo, Object},
};

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// Reads objects of kind `T`: from the cache, where they are watched, and with everything that
/// this operator wrote before; or by requests, for what is looked at so rarely that a watch of it
/// would cost more.
///
/// Declared by [`Declare::reads`](crate::Declare::reads),
/// [`Declare::reads_live`](crate::Declare::reads_live) or, in a webhook, by its own
/// `Declare::reads`. Objects are shared: a list of a thousand hands out a thousand pointers. Take
/// one of your own by [`Arc::unwrap_or_clone`].
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::{Context, Result, handle::{Reads}, watch::{Select}};
/// # async fn example(secrets: &Reads<Secret>, ctx: &Context<ConfigMap>) -> Result<()> {
/// let one = secrets.get(ctx, "credentials").await?;          // in the namespace of the object
/// let labelled = secrets.list(ctx, windlass::labels([("app", "x")])).await?;
/// let all = secrets.list(ctx, Select::all_namespaces()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Reads<T> {
    from: From,
    kind: PhantomData<fn() -> T>,
}

/// Where the objects come from.
enum From {
    Cache(Arc<Store>),
    Server(KindInfo),
}

/// Where a read happens: in a reconcile, by its [`Context`], or in a webhook, by its review.
pub trait Reader: sealed::Sealed {}

impl<R: sealed::Sealed> Reader for R {}

pub(crate) mod sealed {
    use super::{Context, Object, Session};

    /// What a read needs to know of its place.
    pub trait Sealed: Sync {
        /// The namespace that a plain name is looked up in.
        fn namespace(&self) -> Option<&str>;

        /// The reconcile, whose own writes a read waits for.
        #[allow(private_interfaces, reason = "the trait is sealed")]
        fn session(&self) -> Option<&Session>;
    }

    impl<K: Object> Sealed for Context<K> {
        fn namespace(&self) -> Option<&str> {
            self.key().namespace()
        }

        #[allow(private_interfaces, reason = "the trait is sealed")]
        fn session(&self) -> Option<&Session> {
            Some(&self.session)
        }
    }
}

impl<T: Object> Reads<T> {
    pub(crate) fn cached(store: Arc<Store>) -> Self {
        Self {
            from: From::Cache(store),
            kind: PhantomData,
        }
    }

    pub(crate) fn live(kind: KindInfo) -> Self {
        Self {
            from: From::Server(kind),
            kind: PhantomData,
        }
    }

    /// The cache that is read; none for live reads.
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        match &self.from {
            From::Cache(store) => Some(store),
            From::Server(_) => None,
        }
    }

    /// The object of that name, if it exists.
    pub async fn get(&self, at: &impl Reader, name: impl Named) -> Result<Option<Arc<T>>> {
        let store = match &self.from {
            From::Cache(store) => store,
            From::Server(kind) => {
                let session = session(at, kind)?;
                let key = name.key_for(kind, at.namespace());
                let found = session.shared.requests.get(kind, &key).await?;
                return found
                    .map(|object| Ok(Arc::new(decode(kind, object)?)))
                    .transpose();
            }
        };
        let key = name.key_for(&store.kind, at.namespace());
        match at.session() {
            Some(_) => store.shows_writes_to(&key).await?,
            None => store.synced().await,
        }
        store
            .get(&key)
            .map(|object| store.typed(&object))
            .transpose()
    }

    /// All objects that match, in the order of namespace and name.
    pub async fn list(
        &self,
        at: &impl Reader,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<Arc<T>>> {
        let Some((selector, within)) = select.into().expressions() else {
            return Ok(Vec::new());
        };
        let namespace = within.namespace(at.namespace());
        match &self.from {
            From::Cache(store) => {
                let namespace = namespace.filter(|_| store.kind.namespaced);
                shows_writes(store, at).await?;
                store.all_typed(&store.select(namespace, &selector))
            }
            From::Server(kind) => {
                let namespace = namespace.filter(|_| kind.namespaced);
                list_live(session(at, kind)?, kind, namespace, selector).await
            }
        }
    }

    /// The objects whose controller has this uid, of all namespaces, in the order of namespace and
    /// name. From a cache, this costs the same however many others there are.
    pub async fn controlled_by(&self, at: &impl Reader, uid: &str) -> Result<Vec<Arc<T>>> {
        let From::Cache(store) = &self.from else {
            let mut all = self.list(at, Select::all_namespaces()).await?;
            all.retain(|object| is_controlled_by(object.as_ref(), uid));
            return Ok(all);
        };
        shows_writes(store, at).await?;
        store.all_typed(&store.controlled_by(uid))
    }
}

/// Objects of kind `T` by what a function computes from them, made by
/// [`Declare::index`](crate::Declare::index). A look-up costs the same however many there are.
pub struct Index<T> {
    /// The cache, and the place of the index in it.
    of: Option<(Arc<Store>, usize)>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Object> Index<T> {
    pub(crate) fn new(store: Arc<Store>, place: usize) -> Self {
        Self {
            of: Some((store, place)),
            kind: PhantomData,
        }
    }

    /// An index of what has no cache: the operator that declares it does not start.
    pub(crate) fn without_cache() -> Self {
        Self {
            of: None,
            kind: PhantomData,
        }
    }

    /// The objects under a value, of all namespaces, in the order of namespace and name.
    pub async fn find(&self, at: &impl Reader, value: &str) -> Result<Vec<Arc<T>>> {
        let Some((store, place)) = &self.of else {
            return Err(Error::terminal("an index needs a cache"));
        };
        shows_writes(store, at).await?;
        store.all_typed(&store.indexed(*place, value))
    }
}

/// Waits until the cache shows what the reconcile wrote, or, in a webhook, until it is complete.
async fn shows_writes(store: &Store, at: &impl Reader) -> Result<()> {
    if let Some(session) = at.session() {
        return store.shows_writes_of(&session.writer).await;
    }
    store.synced().await;
    Ok(())
}

/// The reconcile that a request is made for.
fn session<'a>(at: &'a impl Reader, kind: &KindInfo) -> Result<&'a Session> {
    at.session()
        .ok_or_else(|| Error::terminal(format!("cannot read {kind} live in a webhook")))
}

async fn list_live<T: Object>(
    session: &Session,
    kind: &KindInfo,
    namespace: Option<&str>,
    selector: Vec<Expression>,
) -> Result<Vec<Arc<T>>> {
    let selector: kube::core::Selector = selector.into_iter().collect();
    let mut params = ListParams::default().limit(PAGE);
    if !selector.selects_all() {
        params = params.labels_from(&selector);
    }
    let api = session.shared.requests.api(kind, namespace);
    let mut found = Vec::new();
    loop {
        let page = api.list(&params).await;
        let page = page.map_err(|error| Error::api("list", kind.to_string(), error))?;
        for object in page.items {
            found.push(Arc::new(decode(kind, object.value)?));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(found),
        }
    }
}

fn is_controlled_by<T: Object>(object: &T, uid: &str) -> bool {
    let references = object.meta().owner_references.iter().flatten();
    references
        .into_iter()
        .any(|reference| reference.controller == Some(true) && reference.uid == uid)
}

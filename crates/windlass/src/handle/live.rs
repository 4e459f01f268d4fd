//! [`Live`]: objects of a kind that is not watched, as the API server has them now.

use std::marker::PhantomData;

use kube::api::ListParams;

use crate::{
    Context, Error, Kind, KindInfo, Result, Select, controller::decode, declare::Within, key::Named,
};

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// Reads objects of kind `T` from the API server, each time anew: for what is looked at so rarely
/// that a watch and a cache of it would cost more. Nothing wakes when they change.
pub struct Live<T> {
    info: KindInfo,
    kind: PhantomData<fn() -> T>,
}

impl<T: Kind> Live<T> {
    pub(crate) fn new() -> Self {
        Self {
            info: KindInfo::of::<T>(),
            kind: PhantomData,
        }
    }

    /// The object of that name, if it exists.
    pub async fn get<K: Kind>(&self, ctx: &Context<K>, name: impl Named) -> Result<Option<T>> {
        let key = ctx.session.resolve(&self.info, &name);
        let found = ctx.session.shared.requests.get(&self.info, &key).await?;
        found.map(|object| decode(&self.info, object)).transpose()
    }

    /// All objects that match, in the order of namespace and name.
    pub async fn list<K: Kind>(
        &self,
        ctx: &Context<K>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<T>> {
        let Some((selector, within)) = select.into().expressions() else {
            return Ok(Vec::new());
        };
        let namespace = match &within {
            Within::Own => ctx.key().namespace(),
            Within::Everywhere => None,
            Within::Namespace(namespace) => Some(namespace.as_str()),
        };
        let namespace = namespace.filter(|_| self.info.namespaced);
        let selector: kube::core::Selector = selector.into_iter().collect();
        let mut params = ListParams::default().limit(PAGE);
        if !selector.selects_all() {
            params = params.labels_from(&selector);
        }
        let requests = &ctx.session.shared.requests;
        let api = requests.api(&self.info, namespace);
        let mut found = Vec::new();
        loop {
            let page = api.list(&params).await;
            let page = page.map_err(|error| Error::api("list", self.info.to_string(), error))?;
            for object in page.items {
                found.push(decode(&self.info, object.value)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(found),
            }
        }
    }
}

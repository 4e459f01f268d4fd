//! [`DeclareWebhook`]: what a webhook looks up, said once; and the handle to do it with.

use std::{marker::PhantomData, sync::Arc};

use windlass_manifests::{Rule, Watched};

use crate::{
    Grant, Key, Kind, KindInfo, Result, Scope, Select, Verb,
    cache::{Caches, Store},
};

/// Collects what a webhook reads, and hands out the handles to read it.
pub struct DeclareWebhook {
    caches: Arc<Caches>,
    pub(super) rules: Vec<Rule>,
    pub(super) watches: Vec<Watched>,
}

impl DeclareWebhook {
    pub(super) fn new(caches: Arc<Caches>) -> Self {
        Self {
            caches,
            rules: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// The webhook reads objects of kind `T`, from the cache that the operator's controllers use too.
    pub fn reads<T: Kind>(&mut self) -> Lookup<T> {
        self.reads_within(&Scope::all())
    }

    /// As [`reads`](Self::reads), of objects in this scope alone.
    pub fn reads_within<T: Kind>(&mut self, scope: &Scope) -> Lookup<T> {
        let kind = KindInfo::of::<T>();
        let grant = Grant::of::<T>(Verb::READ);
        self.rules.push(grant.rule("looks them up"));
        self.watches.push(Watched {
            resource: kind.to_string(),
            scope: scope.describe(),
            why: "looked up by a webhook".to_owned(),
        });
        Lookup {
            store: self.caches.store(&kind, scope),
            kind: PhantomData,
        }
    }
}

/// Reads objects of kind `T` from the cache, inside a webhook.
pub struct Lookup<T> {
    store: Arc<Store>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Kind> Lookup<T> {
    /// The object of that namespace and name, if the cache has it; waits for the cache's first list.
    pub async fn get(&self, namespace: Option<&str>, name: &str) -> Result<Option<T>> {
        self.store.synced().await;
        let namespace = namespace.filter(|_| self.store.kind.namespaced);
        self.store
            .get(&Key::from_parts(namespace, name))
            .map(|object| object.decode(&self.store.kind))
            .transpose()
    }

    /// All objects of a namespace (of all for `None`) that match, in the order of namespace and name.
    pub async fn list(
        &self,
        namespace: Option<&str>,
        select: impl Into<Select> + Send,
    ) -> Result<Vec<T>> {
        let select = select.into();
        self.store.synced().await;
        let Some((selector, _)) = select.expressions() else {
            return Ok(Vec::new());
        };
        let namespace = namespace.filter(|_| self.store.kind.namespaced);
        self.store
            .select(namespace, &selector)
            .iter()
            .map(|object| object.decode(&self.store.kind))
            .collect()
    }
}

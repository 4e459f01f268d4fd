//! [`Caches`]: all stores of one operator.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    Store, Transform,
    expectation::{Want, Writer},
};
use crate::{Key, kind::KindInfo, metrics::Metrics, watch::Scope};

/// The stores of one operator: one per kind and scope, whoever asks for it.
pub(crate) struct Caches {
    manager: Arc<str>,
    transforms: BTreeMap<KindInfo, Transform>,
    metrics: Metrics,
    /// Nothing that is written is stored, so nothing is to be expected.
    rehearsal: bool,
    stores: Mutex<BTreeMap<(KindInfo, Scope), Arc<Store>>>,
}

impl Caches {
    /// Caches that nothing fills: for a declaration that is only looked at.
    pub(crate) fn of_description() -> Self {
        Self::new("description".into(), BTreeMap::new(), Metrics::default())
    }

    pub(crate) fn new(
        manager: Arc<str>,
        transforms: BTreeMap<KindInfo, Transform>,
        metrics: Metrics,
    ) -> Self {
        Self {
            manager,
            transforms,
            metrics,
            rehearsal: false,
            stores: Mutex::default(),
        }
    }

    /// Caches of an operator whose writes are not stored.
    pub(crate) fn rehearsing(self, rehearsal: bool) -> Self {
        Self { rehearsal, ..self }
    }

    pub(crate) fn is_rehearsal(&self) -> bool {
        self.rehearsal
    }

    /// The object as one of the stores shows it.
    pub(crate) fn shown(&self, kind: &KindInfo, key: &Key) -> Option<Value> {
        let stores = self.of(kind);
        let mut whole = stores.iter().filter(|store| !store.scope.metadata_only);
        whole
            .find_map(|store| store.get(key))
            .map(|one| one.value())
    }

    /// A store that shows the object if it exists; none if the kind is not read, or not all of it.
    pub(crate) fn covering(&self, kind: &KindInfo, key: &Key) -> Option<Arc<Store>> {
        let mut stores = self.of(kind).into_iter();
        stores.find(|store| {
            !store.scope.metadata_only && (store.is_unlimited() || store.get(key).is_some())
        })
    }

    /// The store of a kind and scope; created when first asked for.
    pub(crate) fn store(&self, kind: &KindInfo, scope: &Scope) -> Arc<Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores
            .entry((kind.clone(), scope.clone()))
            .or_insert_with(|| {
                Arc::new(Store::new(
                    kind.clone(),
                    scope.clone(),
                    Arc::clone(&self.manager),
                    self.transforms.get(kind).cloned(),
                    self.metrics.clone(),
                ))
            });
        Arc::clone(store)
    }

    /// All stores.
    pub(crate) fn all(&self) -> Vec<Arc<Store>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.values().cloned().collect()
    }

    /// Notes that an object was written, with the answer to the write: every store that will show
    /// it is expected to.
    pub(crate) fn wrote(&self, kind: &KindInfo, key: &Key, answer: &Value, writer: &Writer) {
        if self.rehearsal {
            return;
        }
        let want = Want::of(answer);
        for store in self.of(kind) {
            if store.scope.shows(answer) {
                store.expect(key, writer, want.clone());
            }
        }
    }

    /// Notes that an object was deleted.
    pub(crate) fn deleted(
        &self,
        kind: &KindInfo,
        key: &Key,
        uid: &str,
        version: u64,
        writer: &Writer,
    ) {
        if self.rehearsal {
            return;
        }
        for store in self.of(kind) {
            // A store whose scope never showed the object owes nothing.
            if store.is_unlimited() || store.knows(key, uid) {
                let uid = uid.into();
                store.expect(key, writer, Want::Gone { uid, version });
            }
        }
    }

    /// Forgets a store; whoever still holds it keeps it.
    pub(crate) fn forget(&self, kind: &KindInfo, scope: &Scope) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.remove(&(kind.clone(), scope.clone()));
    }

    fn of(&self, kind: &KindInfo) -> Vec<Arc<Store>> {
        self.all()
            .into_iter()
            .filter(|store| store.kind == *kind)
            .collect()
    }
}

//! [`Declare`]: what a controller owns, reads and writes, said once.
//!
//! From the declaration come the handles the reconciler works with, the watches that wake it
//! ([`wiring`]), and the operator's role.

mod access;
mod predicate;
mod scope;
mod watch;
pub(crate) mod wiring;

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

use kube::core::DynamicObject;
use windlass_manifests::{Rule, Watched as WatchedFact};

use self::wiring::{Refusals, Wiring};
pub(crate) use self::{access::Grant, watch::Wakes};
pub use self::{
    access::{Access, Verb},
    predicate::Predicate,
    scope::{IntoSelector, Scope, Select},
    watch::{Changed, Watch, Watched},
};
use crate::{
    Kind, Observed, Result,
    cache::{Caches, Delivered, Store},
    controller::Session,
    handle::{Controlled, Controllers, Index, Owned, OwnedKinds, Raw, Reads, Watches, Writes},
    kind::{KindInfo, Object},
};

/// Collects what the controller of kind `K` does, and hands out the handles to do it.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
/// use windlass::{Declare, Watched, handle::{Access, Owned, Reads, Verb, Writes}};
///
/// struct Handles {
///     services: Owned<Service>,
///     secrets: Reads<Secret>,
///     namespaces: Writes<Namespace>,
/// }
///
/// fn declare(declare: &mut Declare<ConfigMap>) -> Handles {
///     Handles {
///         services: declare.owns(),
///         secrets: declare.reads(Secret::referenced_by(|map: &ConfigMap| map.metadata.name.clone())),
///         namespaces: declare.writes(Access::to([Verb::Patch])),
///     }
/// }
/// ```
///
/// In a webhook, `Declare<Webhook<K>>` hands out [`Reads`] and nothing else.
pub struct Declare<K> {
    caches: Arc<Caches>,
    controller: Arc<str>,
    /// The reconciled kind.
    of: KindInfo,
    pub(crate) rules: Vec<Rule>,
    pub(crate) watches: Vec<WatchedFact>,
    pub(crate) wiring: Vec<Wiring>,
    pub(crate) stores: Vec<Arc<Store>>,
    pub(crate) writes_status: bool,
    /// The stores of kinds whose objects are pruned, once each.
    pub(crate) pruned: Vec<Arc<Store>>,
    /// The kinds whose objects are handled one by one.
    controlled: BTreeSet<KindInfo>,
    pub(crate) observers: Vec<Observer>,
    /// What is wrong with the declaration.
    flaws: Vec<String>,
    kind: PhantomData<fn() -> K>,
}

/// Adds the owned objects of a kind, as the cache shows them, to what was observed.
pub(crate) type Observer = Box<dyn Fn(&Session, &mut Observed) -> Result<()> + Send + Sync>;

impl<K: Object> Declare<K> {
    /// The objects of kind `T` that belong to the reconciled object, as a set: what is applied
    /// exists, what is no longer applied is pruned. Their changes trigger a reconcile of the object
    /// they belong to.
    pub fn owns<T: Kind>(&mut self) -> Owned<T> {
        let owned = self.owned(&KindInfo::of::<T>());
        self.observers.push(owned.observer());
        owned
    }

    /// As [`owns`](Self::owns), for a kind that is known only at run time.
    pub fn owns_kind(&mut self, kind: &KindInfo) -> Owned<DynamicObject> {
        self.owned(kind)
    }

    /// Objects of kind `T` that the reconciled object controls and that are created, adopted,
    /// changed and deleted one by one; nothing is pruned. Their changes trigger a reconcile of the
    /// object that controls them.
    pub fn controls<T: Kind>(&mut self) -> Controlled<T> {
        self.controlled(&KindInfo::of::<T>())
    }

    /// As [`controls`](Self::controls), for a kind that is known only at run time.
    pub fn controls_kind(&mut self, kind: &KindInfo) -> Controlled<DynamicObject> {
        self.controlled(kind)
    }

    fn controlled<T: Object>(&mut self, kind: &KindInfo) -> Controlled<T> {
        let owned = self.wired(kind);
        self.controlled.insert(kind.clone());
        Controlled::new(owned)
    }

    /// As [`controls`](Self::controls), of objects that may also be
    /// [adopted](Controlled::adopt): before that, the reconciled object is read from the API
    /// server, which takes the right to get it.
    pub fn adopts<T: Kind>(&mut self) -> Controlled<T> {
        self.adopts_as(&KindInfo::of::<T>())
    }

    /// As [`adopts`](Self::adopts), for a kind that is known only at run time.
    pub fn adopts_kind(&mut self, kind: &KindInfo) -> Controlled<DynamicObject> {
        self.adopts_as(kind)
    }

    fn adopts_as<T: Object>(&mut self, kind: &KindInfo) -> Controlled<T> {
        let own = Grant::new(self.of.group.as_str(), self.of.plural.as_str(), [Verb::Get]);
        self.grant(own, "adopts objects for them");
        self.controlled(kind).adopting()
    }

    fn owned<T: Object>(&mut self, kind: &KindInfo) -> Owned<T> {
        let owned: Owned<T> = self.wired(kind);
        if !self.pruned.iter().any(|store| store.kind == *kind) {
            self.pruned.push(Arc::clone(owned.store()));
        }
        owned
    }

    fn wired<T: Object>(&mut self, kind: &KindInfo) -> Owned<T> {
        // Get: an object of the wanted name that the cache does not show yet is looked at first.
        let writes = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete];
        let verbs = Verb::READ.into_iter().chain(writes);
        let grant = Grant::new(kind.group.as_str(), kind.plural.as_str(), verbs);
        self.grant(grant, "owns them");
        self.blocks_deletion();
        let why = "changes wake the object that controls it";
        let store = self.watch(kind, &Scope::all(), why);
        let refusals = Arc::new(Refusals::default());
        self.wiring
            .push(wiring::owned(&store, &refusals, self.of.clone()));
        Owned::new(store, refusals)
    }

    /// Objects that belong to the reconciled object, of kinds that are known only at run time: those
    /// of `kinds` are watched from the start; others, as far as `access` lets them be, from their
    /// first use.
    pub fn owns_kinds(
        &mut self,
        kinds: impl IntoIterator<Item = KindInfo>,
        access: impl IntoIterator<Item = Access>,
    ) -> OwnedKinds {
        let writes = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete];
        let own = Grant::new(self.of.group.as_str(), self.of.plural.as_str(), [Verb::Get]);
        self.grant(own, "adopts objects for them");
        let mut stores = Vec::new();
        for kind in kinds {
            let verbs = Verb::READ.into_iter().chain(writes);
            let grant = Grant::new(kind.group.as_str(), kind.plural.as_str(), verbs);
            self.grant(grant, "owns them");
            let why = "changes wake the object that they belong to";
            stores.push(self.watch(&kind, &Scope::all(), why));
        }
        self.allow(access, "owns what is rendered");
        self.blocks_deletion();
        let owned = OwnedKinds::new(self.of.clone(), stores);
        let wired = owned.clone();
        self.wiring
            .push(Box::new(move |wires| wired.connect(wires)));
        owned
    }

    /// What contradicts itself in the declaration.
    pub(crate) fn flaws(&self) -> Vec<String> {
        let both = self.pruned.iter().map(|store| &store.kind);
        let both = both
            .filter(|kind| self.controlled.contains(kind))
            .map(|kind| {
                format!(
                    "controller {} owns {kind} as a set and also controls them one by one: \
                     objects that are handled one by one would be pruned; declare one of the two",
                    self.controller
                )
            });
        self.flaws.iter().cloned().chain(both).collect()
    }

    /// The controller reads objects of kind `T`; the [`Watch`] says whom their changes wake.
    pub fn reads<T: Kind>(&mut self, watch: Watch<K, T>) -> Reads<T> {
        self.reads_as(&KindInfo::of::<T>(), watch)
    }

    /// As [`reads`](Self::reads), for a kind that is known only at run time.
    pub fn reads_kind(
        &mut self,
        kind: &KindInfo,
        watch: Watch<K, DynamicObject>,
    ) -> Reads<DynamicObject> {
        self.reads_as(kind, watch)
    }

    fn reads_as<T: Object>(&mut self, kind: &KindInfo, watch: Watch<K, T>) -> Reads<T> {
        let grant = Grant::new(kind.group.as_str(), kind.plural.as_str(), Verb::READ);
        self.grant(grant, "reads them");
        let store = self.watch(kind, &watch.scope, watch.wakes.describe());
        self.wiring.extend(wiring::read(&store, watch));
        Reads::cached(store)
    }

    /// The controller reads objects of kind `T` now and then, by requests: nothing is watched, and
    /// nothing is kept.
    pub fn reads_live<T: Kind>(&mut self) -> Reads<T> {
        self.reads_live_by([Verb::Get, Verb::List])
    }

    /// As [`reads_live`](Self::reads_live), with only these of the verbs `get` and `list`: a secret
    /// that is known by name takes no right to list them all.
    pub fn reads_live_by<T: Kind>(&mut self, verbs: impl IntoIterator<Item = Verb>) -> Reads<T> {
        self.grant(Grant::of::<T>(verbs), "looks at them");
        Reads::live(KindInfo::of::<T>())
    }

    /// An index over what is read: objects by whatever a function says of them.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// # use windlass::{Declare, Watched, handle::{Index}};
    /// fn pods_by_node(declare: &mut Declare<ConfigMap>) -> Index<Pod> {
    ///     let pods = declare.reads(Pod::triggering_none());
    ///     declare.index(&pods, |pod: &Pod| pod.spec.as_ref()?.node_name.clone())
    /// }
    /// ```
    pub fn index<T: Object, V: IntoIterator<Item = String>>(
        &mut self,
        reads: &Reads<T>,
        of: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Index<T> {
        let Some(store) = reads.store() else {
            self.flaws.push(format!(
                "controller {} indexes what it reads live: an index needs a cache, use reads",
                self.controller
            ));
            return Index::without_cache();
        };
        let kind = store.kind.clone();
        let values = move |object: &Delivered| {
            let values = wiring::computed(&kind, object, |typed: &T| {
                of(typed).into_iter().map(String::into_boxed_str).collect()
            });
            values.unwrap_or_default()
        };
        let index = store.index(Box::new(values));
        Index::new(Arc::clone(store), index)
    }

    /// The controller starts and stops watches at run time, of kinds that this covers.
    pub fn watches(&mut self, access: impl IntoIterator<Item = Access>) -> Watches {
        self.allow(access, "watches them when asked to");
        let watches = Watches::default();
        let wired = watches.clone();
        self.wiring
            .push(Box::new(move |wires| wired.connect(wires)));
        watches
    }

    /// The controller writes objects of kind `T` that it does not own (or of its own kind).
    pub fn writes<T: Kind>(&mut self, access: Access) -> Writes<T> {
        let kind = KindInfo::of::<T>();
        for grant in access.grants(Some(&kind)) {
            self.grant(grant, "writes them");
        }
        Writes::new(kind, access, Arc::clone(&self.controller))
    }

    /// As [`writes`](Self::writes), for a kind that is known only at run time.
    pub fn writes_kind(&mut self, kind: &KindInfo, access: Access) -> Writes<DynamicObject> {
        for grant in access.grants(Some(kind)) {
            self.grant(grant, "writes them");
        }
        Writes::new(kind.clone(), access, Arc::clone(&self.controller))
    }

    /// The controller starts and stops other controllers, as the objects it reconciles say. The
    /// role is made before it is known what they do: `access` is all that they may need.
    pub fn controllers(&mut self, access: impl IntoIterator<Item = Access>) -> Controllers {
        self.allow(access, "controllers it starts need it");
        let controllers = Controllers::default();
        let wired = controllers.clone();
        self.wiring
            .push(Box::new(move |wires| wired.connect(wires)));
        controllers
    }

    /// The controller writes the status of its own kind, though the kind is defined by another.
    /// (For kinds that the operator defines itself this goes without saying.)
    pub fn writes_status(&mut self) {
        self.writes_status = true;
        let status = format!("{}/status", self.of.plural);
        self.grant(
            Grant::new(self.of.group.clone(), status, [Verb::Patch]),
            "reports their status",
        );
    }

    /// The controller needs the client itself, for these requests.
    pub fn raw(&mut self, access: impl IntoIterator<Item = Access>) -> Raw {
        self.allow(access, "raw client access");
        Raw::new()
    }

    fn allow(&mut self, access: impl IntoIterator<Item = Access>, why: &str) {
        let kind = self.of.clone();
        for grant in access.into_iter().flat_map(|one| one.grants(Some(&kind))) {
            self.grant(grant, why);
        }
    }

    /// An owner reference that blocks the owner's deletion needs this on the owner.
    fn blocks_deletion(&mut self) {
        let finalizers = format!("{}/finalizers", self.of.plural);
        let why = "owns objects on their behalf";
        let group = self.of.group.clone();
        self.grant(Grant::new(group, finalizers, [Verb::Update]), why);
    }
}

impl<K> Declare<K> {
    pub(crate) fn new(caches: Arc<Caches>, controller: Arc<str>, of: KindInfo) -> Self {
        Self {
            caches,
            controller,
            of,
            rules: Vec::new(),
            watches: Vec::new(),
            wiring: Vec::new(),
            stores: Vec::new(),
            writes_status: false,
            pruned: Vec::new(),
            controlled: BTreeSet::new(),
            observers: Vec::new(),
            flaws: Vec::new(),
            kind: PhantomData,
        }
    }

    pub(crate) fn grant(&mut self, grant: Grant, why: &str) {
        let Grant {
            group,
            resource,
            verbs,
        } = grant;
        let same =
            |rule: &&mut Rule| rule.group == group && rule.resource == resource && rule.why == why;
        match self.rules.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(verbs),
            None => self.rules.push(Rule {
                names: std::collections::BTreeSet::new(),
                group,
                resource,
                verbs,
                why: why.to_owned(),
            }),
        }
    }

    /// The store of a kind, to be synced before the controller starts.
    pub(crate) fn watch(&mut self, kind: &KindInfo, scope: &Scope, why: &str) -> Arc<Store> {
        let store = self.caches.store(kind, scope);
        let fact = WatchedFact {
            resource: kind.to_string(),
            scope: scope.describe(),
            why: why.to_owned(),
        };
        if !self.watches.contains(&fact) {
            self.watches.push(fact);
        }
        self.stores.push(Arc::clone(&store));
        store
    }
}

//! [`Watch`]: which objects a change of another kind wakes.
//!
//! References instead of mapping closures: [`Watched::referenced_by`] and
//! [`Watched::selected_by`] say how the reconciled object points at what it reads, and the
//! framework indexes the other direction itself, including references to objects that do not
//! exist yet and labels that an object no longer has.

use std::{fmt, marker::PhantomData, sync::Arc};

use kube::core::{PartialObjectMeta, Selector};

use super::{
    predicate::Predicate,
    scope::{IntoSelector, Scope},
};
use crate::{Key, Kind, key::Names, kind::Object};

/// How `K`'s controller watches objects of kind `T`. Made by the methods of [`Watched`].
pub struct Watch<K, T> {
    pub(crate) wakes: Wakes<K, T>,
    pub(crate) scope: Scope,
    pub(crate) only: Option<Predicate<T>>,
}

pub(crate) type SelectorOf<K> = Arc<dyn Fn(&K) -> Option<Selector> + Send + Sync>;
pub(crate) type KeysOf<T> = Arc<dyn Fn(&T) -> Vec<Key> + Send + Sync>;
pub(crate) type Handler<T> = Arc<dyn Fn(Changed<'_, T>) -> Vec<Key> + Send + Sync>;

/// What happened to an object, for those who want to see it themselves.
#[derive(Debug)]
pub enum Changed<'a, T> {
    /// It appeared.
    Added(&'a T),
    /// It changed.
    Updated {
        /// As it was.
        old: &'a T,
        /// As it is.
        new: &'a T,
    },
    /// It is gone; this is how it last was.
    Deleted(&'a T),
}

pub(crate) enum Wakes<K, T> {
    Referrers(KeysOf<K>),
    Selectors(SelectorOf<K>),
    Mapped(KeysOf<T>),
    Handled(Handler<T>),
    Everyone,
    Nobody(PhantomData<fn() -> T>),
}

impl<K, T> Watch<K, T> {
    fn new(wakes: Wakes<K, T>) -> Self {
        Self {
            wakes,
            scope: Scope::all(),
            only: None,
        }
    }

    /// Watches only what lies in this scope.
    #[must_use]
    pub fn scoped(mut self, scope: Scope) -> Self {
        let metadata_only = self.scope.metadata_only;
        self.scope = scope;
        self.scope.metadata_only |= metadata_only;
        self
    }

    /// Only changes that pass the predicate wake anybody. The cache follows all of them.
    #[must_use]
    pub fn only(mut self, predicate: Predicate<T>) -> Self {
        self.only = Some(predicate);
        self
    }
}

impl<K, T: Kind> Watch<K, PartialObjectMeta<T>> {
    /// Watches the metadata alone, and keeps nothing else in memory.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.scope.metadata_only = true;
        self
    }
}

impl<K, T> Clone for Watch<K, T> {
    fn clone(&self) -> Self {
        let wakes = match &self.wakes {
            Wakes::Referrers(f) => Wakes::Referrers(f.clone()),
            Wakes::Selectors(f) => Wakes::Selectors(f.clone()),
            Wakes::Mapped(f) => Wakes::Mapped(f.clone()),
            Wakes::Handled(f) => Wakes::Handled(f.clone()),
            Wakes::Everyone => Wakes::Everyone,
            Wakes::Nobody(_) => Wakes::Nobody(PhantomData),
        };
        Self {
            wakes,
            scope: self.scope.clone(),
            only: self.only.clone(),
        }
    }
}

impl<K, T> fmt::Debug for Watch<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("why", &self.wakes.describe())
            .field("scope", &self.scope)
            .field("only", &self.only)
            .finish()
    }
}

impl<K, T> Wakes<K, T> {
    /// Why the kind is watched, as `explain` says it.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Referrers(_) => "changes wake the objects that name it",
            Self::Selectors(_) => "changes wake the objects that select it",
            Self::Mapped(_) => "changes wake the objects it maps to",
            Self::Handled(_) => "changes wake what a handler says",
            Self::Everyone => "changes wake every object",
            Self::Nobody(_) => "read only",
        }
    }
}

/// The ways to watch a kind.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
/// use windlass::{Watched, watch::Watch};
///
/// let by_name: Watch<ConfigMap, Secret> =
///     Secret::referenced_by(|map: &ConfigMap| map.metadata.name.clone());
/// let by_labels: Watch<ConfigMap, Pod> =
///     Pod::selected_by(|map: &ConfigMap| map.metadata.labels.clone());
/// let every_change: Watch<ConfigMap, Node> = Node::triggering_all();
/// ```
///
/// A large kind of which only names and labels matter is watched as
/// `PartialObjectMeta::<Pod>::selected_by(…).metadata_only()`; a kind known at run time as
/// `DynamicObject::selected_by(…)`, given to [`reads_kind`](crate::Declare::reads_kind).
pub trait Watched: Object {
    /// Changes of an object wake the objects that name it, also before it exists.
    fn referenced_by<K: Object, N: Names>(
        names: impl Fn(&K) -> N + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Referrers(Arc::new(move |object| {
            names(object).keys_in(object.meta().namespace.as_deref())
        })))
    }

    /// Changes of an object wake the objects of its namespace whose selector matches its labels,
    /// those before or those after the change.
    fn selected_by<K: Object, S: IntoSelector>(
        selector: impl Fn(&K) -> S + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Selectors(Arc::new(move |object| {
            selector(object).into_selector()
        })))
    }

    /// Changes of an object wake the keys computed from it, before and after the change.
    fn mapped_to<K: Object>(
        keys: impl Fn(&Self) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Mapped(Arc::new(keys)))
    }

    /// Every change is shown to a function, which says what it wakes: for those who need to see
    /// the change itself, where the other ways do not fit.
    fn handled_by<K: Object>(
        handler: impl Fn(Changed<'_, Self>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Handled(Arc::new(handler)))
    }

    /// Every change wakes every object of the controller.
    fn triggering_all<K: Object>() -> Watch<K, Self> {
        Watch::new(Wakes::Everyone)
    }

    /// Kept in the cache to be read; changes wake nobody.
    fn triggering_none<K: Object>() -> Watch<K, Self> {
        Watch::new(Wakes::Nobody(PhantomData))
    }
}

impl<T: Object> Watched for T {}

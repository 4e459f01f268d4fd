//! [`Watch`]: which objects a change of another kind wakes.
//!
//! References instead of mapping closures: [`Watched::referenced_by`] and
//! [`Watched::selected_by`] say how the reconciled object points at what it reads, and the
//! framework indexes the other direction itself, including references to objects that do not
//! exist yet and labels that an object no longer has.

use std::{fmt, marker::PhantomData, sync::Arc};

use kube::core::Selector;

use super::scope::{IntoSelector, Scope};
use crate::{Key, Kind, key::Names};

/// How `K`'s controller watches objects of kind `T`. Made by the methods of [`Watched`].
pub struct Watch<K, T> {
    pub(crate) wakes: Wakes<K, T>,
    pub(crate) scope: Scope,
}

pub(crate) type SelectorOf<K> = Arc<dyn Fn(&K) -> Option<Selector> + Send + Sync>;
pub(crate) type KeysOf<T> = Arc<dyn Fn(&T) -> Vec<Key> + Send + Sync>;

pub(crate) enum Wakes<K, T> {
    Referrers(KeysOf<K>),
    Selectors(SelectorOf<K>),
    Mapped(KeysOf<T>),
    Everyone,
    Nobody(PhantomData<fn() -> T>),
}

impl<K, T> Watch<K, T> {
    fn new(wakes: Wakes<K, T>) -> Self {
        Self {
            wakes,
            scope: Scope::all(),
        }
    }

    /// Watches only what lies in this scope.
    #[must_use]
    pub fn scoped(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

impl<K, T> Clone for Watch<K, T> {
    fn clone(&self) -> Self {
        let wakes = match &self.wakes {
            Wakes::Referrers(f) => Wakes::Referrers(f.clone()),
            Wakes::Selectors(f) => Wakes::Selectors(f.clone()),
            Wakes::Mapped(f) => Wakes::Mapped(f.clone()),
            Wakes::Everyone => Wakes::Everyone,
            Wakes::Nobody(_) => Wakes::Nobody(PhantomData),
        };
        Self {
            wakes,
            scope: self.scope.clone(),
        }
    }
}

impl<K, T> fmt::Debug for Watch<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("why", &self.wakes.describe())
            .field("scope", &self.scope)
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
            Self::Everyone => "changes wake every object",
            Self::Nobody(_) => "read only",
        }
    }
}

/// The ways to watch a kind, as in `Pod::selected_by(|m: &Memcached| labels_of(m))`.
pub trait Watched: Kind {
    /// Changes of an object wake the objects that name it, also before it exists.
    fn referenced_by<K: Kind, N: Names>(
        names: impl Fn(&K) -> N + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Referrers(Arc::new(move |object| {
            let namespace = <Self::Scope as crate::kind::KindScope>::NAMESPACED
                .then(|| object.meta().namespace.as_deref())
                .flatten();
            names(object).keys_in(namespace)
        })))
    }

    /// Changes of an object wake the objects of its namespace whose selector matches its labels,
    /// those before or those after the change.
    fn selected_by<K: Kind, S: IntoSelector>(
        selector: impl Fn(&K) -> S + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Selectors(Arc::new(move |object| {
            selector(object).into_selector()
        })))
    }

    /// Changes of an object wake the keys computed from it, before and after the change.
    fn mapped_to<K: Kind>(
        keys: impl Fn(&Self) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watch<K, Self> {
        Watch::new(Wakes::Mapped(Arc::new(keys)))
    }

    /// Every change wakes every object of the controller.
    fn waking_everyone<K: Kind>() -> Watch<K, Self> {
        Watch::new(Wakes::Everyone)
    }

    /// Kept in the cache to be read; changes wake nobody.
    fn waking_nobody<K: Kind>() -> Watch<K, Self> {
        Watch::new(Wakes::Nobody(PhantomData))
    }
}

impl<T: Kind> Watched for T {}

//! Controllers: one per kind, in one of two forms.
//!
//! The short form has no reconcile function: [`dependents`](Controller::dependent) are pure
//! functions of the object, [`status`](Controller::status) is a pure function of the object and
//! what was [`Observed`]. The long form is a [`Reconciler`].

mod context;
mod dependent;
mod next;
mod observed;
mod reconciler;

use std::{marker::PhantomData, time::Duration};

use kube::CustomResourceExt;
use serde::Serialize;

pub(crate) use self::next::Step;
pub use self::{
    context::Context,
    dependent::{Dependent, DependentExt, When},
    next::Next,
    observed::Observed,
    reconciler::{Cleanup, Reconciler},
};
use crate::{
    Declare, Kind,
    declare::{Scope, Watch},
};

/// What a controller consists of so far: nothing yet.
#[derive(Debug)]
pub struct Undecided;

/// The short form: dependents and a status, no reconcile function.
pub struct Dependents<K> {
    kind: PhantomData<fn() -> K>,
}

impl<K> From<Undecided> for Dependents<K> {
    fn from(_: Undecided) -> Self {
        Self { kind: PhantomData }
    }
}

/// The long form: a reconciler.
pub struct Reconciled<K> {
    kind: PhantomData<fn() -> K>,
}

/// The controller of the objects of kind `K`.
pub struct Controller<K, F = Undecided> {
    kind: PhantomData<fn() -> K>,
    form: F,
}

impl Controller<Undecided> {
    /// A controller of a kind that this operator defines: its CRD is part of the operator.
    pub fn of<K: Kind + CustomResourceExt>() -> Controller<K> {
        todo!()
    }

    /// A controller of a kind that is defined elsewhere, such as Pod.
    pub fn of_existing<K: Kind>() -> Controller<K> {
        todo!()
    }
}

impl<K: Kind> Controller<K> {
    /// Gives the controller steps of its own. `declare` makes the reconciler from its handles.
    pub fn reconciler<R>(
        self,
        declare: impl Fn(&mut Declare<K>) -> R + Send + Sync + 'static,
    ) -> Controller<K, Reconciled<K>>
    where
        R: Reconciler<Object = K>,
    {
        todo!()
    }

    /// Gives the controller steps of its own, and a finalizer on every object for the cleanup.
    pub fn reconciler_with_cleanup<R>(
        self,
        declare: impl Fn(&mut Declare<K>) -> R + Send + Sync + 'static,
    ) -> Controller<K, Reconciled<K>>
    where
        R: Cleanup<Object = K>,
    {
        todo!()
    }
}

impl<K: Kind, F> Controller<K, F> {
    /// The controller's name in logs; by default the kind in lower case.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        todo!()
    }

    /// Only objects in this scope are reconciled.
    #[must_use]
    pub fn scoped(self, scope: Scope) -> Self {
        todo!()
    }

    /// How many objects are reconciled at once; 10 unless told.
    #[must_use]
    pub fn concurrency(self, limit: usize) -> Self {
        todo!()
    }

    /// How long one reconcile may take; 60 s unless told.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        todo!()
    }
}

impl<K: Kind, F: Into<Dependents<K>>> Controller<K, F> {
    /// An object that belongs to each `K`, as a function of it: applied, owned, repaired when it
    /// drifts, created again when it is deleted, deleted when it is not wanted any more. With
    /// [`when`](DependentExt::when) it is wanted only under a condition.
    pub fn dependent(self, dependent: impl Dependent<K> + 'static) -> Controller<K, Dependents<K>> {
        todo!()
    }

    /// Objects of another kind that the status is computed from.
    pub fn reads<T: Kind>(self, watch: Watch<K, T>) -> Controller<K, Dependents<K>> {
        todo!()
    }

    /// The status, as a function of the object and of what was observed.
    pub fn status<S: Serialize + Send>(
        self,
        status: impl Fn(&K, &Observed) -> S + Send + Sync + 'static,
    ) -> Controller<K, Dependents<K>> {
        todo!()
    }
}

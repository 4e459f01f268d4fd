//! [`Reconciler`] and [`FinalizingReconciler`]: the author's code, for controllers with steps of
//! their own.
//!
//! A reconciler is a struct of handles. An associated function, `declare` by convention, makes
//! them from a [`Declare`](crate::Declare); what it declares is what the reconciler can do. It is
//! called whenever the operator is started or described, so it only declares; what the reconciler
//! needs besides (a client of an external system, say) is captured by the closure.

use std::{future::Future, sync::Arc};

use futures::{FutureExt, future::BoxFuture};

use super::{action::Action, context::Context};
use crate::{Key, Result, kind::Object};

/// Brings the cluster closer to what one object asks for.
///
/// Called for one object at a time per key, never twice at once for the same key, whenever the
/// object or something it owns or reads has changed. A reconcile must be able to start from any
/// state, because the one before it may have been killed or cancelled after any write.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass::{Action, Context, Controller, Declare, Operator, Reconciler, Result, Watched, handle::{Owned, Reads}};
///
/// struct Mirror {
///     copies: Owned<ConfigMap>,
///     secrets: Reads<Secret>,
/// }
///
/// impl Mirror {
///     fn declare(declare: &mut Declare<ConfigMap>) -> Self {
///         Self {
///             copies: declare.owns(),
///             secrets: declare.reads(Secret::referenced_by(|map: &ConfigMap| map.metadata.name.clone())),
///         }
///     }
/// }
///
/// impl Reconciler for Mirror {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
///         let Some(secret) = self.secrets.get(ctx, ctx.key()).await? else {
///             return Ok(Action::waiting("SecretNotFound", "there is no secret of that name"));
///         };
///         # drop((map, secret));
///         Ok(Action::done())
///     }
/// }
///
/// fn operator() -> Operator {
///     Operator::new("mirror").controller(Controller::of_existing().reconciler(Mirror::declare))
/// }
/// # operator();
/// ```
pub trait Reconciler: Send + Sync + 'static {
    /// The kind whose objects are reconciled.
    type Object: Object;

    /// Reconciles an object that exists and is not being deleted.
    fn reconcile(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Action>> + Send;

    /// Called for an object that is being deleted and still exists because of finalizers or its
    /// grace period. Most reconcilers leave it alone.
    fn terminating(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Action>> + Send {
        let _ = (object, ctx);
        async { Ok(Action::done()) }
    }

    /// Called when an object is gone, to forget what is kept about it in memory. An object that
    /// went while the operator was not running is not reported: what must not be missed needs a
    /// [`FinalizingReconciler`].
    fn gone(&self, key: &Key) -> impl Future<Output = Result<()>> + Send {
        let _ = key;
        async { Ok(()) }
    }
}

/// A reconciler with something to undo before an object may go.
///
/// Implemented instead of [`Reconciler`], and given to the same
/// [`Controller::reconciler`](crate::Controller::reconciler). The type alone decides: every object
/// gets a finalizer before its first reconcile, [`cleanup`](Self::cleanup) runs when it is deleted,
/// and the finalizer is removed when that is done. A later version of the operator without a
/// cleanup removes the finalizer from objects of its own kinds; of a kind that is defined elsewhere
/// it has no right to, so keep a cleanup that only returns [`Action::done`] as long as objects have
/// the finalizer.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::{Action, Context, Controller, FinalizingReconciler, Operator, Result};
///
/// struct Registration;
///
/// impl FinalizingReconciler for Registration {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
///         // register it with an external system, under a name that can be found again
///         Ok(Action::done())
///     }
///
///     async fn cleanup(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
///         // remove it there; done already if it is gone
///         Ok(Action::done())
///     }
/// }
///
/// let operator = Operator::new("registrar")
///     .controller(Controller::of_existing::<ConfigMap>().reconciler(|_| Registration));
/// # operator.check().unwrap();
/// ```
pub trait FinalizingReconciler: Send + Sync + 'static {
    /// The kind whose objects are reconciled.
    type Object: Object;

    /// Reconciles an object that exists, has the finalizer, and is not being deleted. Does nothing
    /// by default, for a controller that consists of dependents and a cleanup.
    fn reconcile(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Action>> + Send {
        let _ = (object, ctx);
        async { Ok(Action::done()) }
    }

    /// Undoes what was done for the object. Called until it returns [`Action::done`]; then the
    /// finalizer is removed.
    fn cleanup(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Action>> + Send;
}

/// A [`Reconciler`] or a [`FinalizingReconciler`]: what
/// [`Controller::reconciler`](crate::Controller::reconciler) takes. `M` tells which; it is inferred.
pub trait AnyReconciler<K, M>: sealed::Sealed<K, M> {}

impl<K, M, R: sealed::Sealed<K, M>> AnyReconciler<K, M> for R {}

pub(crate) mod sealed {
    use super::{Arc, Steps};

    /// Marks a type that implements [`Reconciler`](super::Reconciler).
    pub struct Plain;

    /// Marks a type that implements [`FinalizingReconciler`](super::FinalizingReconciler).
    pub struct Finalizing;

    pub trait Sealed<K, M>: Sized {
        const CLEANUP: bool;

        fn into_steps(self) -> Arc<dyn Steps<K>>;
    }
}

use sealed::{Finalizing, Plain, Sealed};

/// What the engine calls.
pub trait Steps<K>: Send + Sync {
    fn reconcile<'a>(&'a self, object: &'a K, ctx: &'a Context<K>)
    -> BoxFuture<'a, Result<Action>>;

    fn terminating<'a>(
        &'a self,
        object: &'a K,
        ctx: &'a Context<K>,
    ) -> BoxFuture<'a, Result<Action>>;

    fn cleanup<'a>(&'a self, object: &'a K, ctx: &'a Context<K>) -> BoxFuture<'a, Result<Action>>;

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<()>>;
}

impl<R: Reconciler> Sealed<R::Object, Plain> for R {
    const CLEANUP: bool = false;

    fn into_steps(self) -> Arc<dyn Steps<R::Object>> {
        Arc::new(PlainSteps(self))
    }
}

impl<R: FinalizingReconciler> Sealed<R::Object, Finalizing> for R {
    const CLEANUP: bool = true;

    fn into_steps(self) -> Arc<dyn Steps<R::Object>> {
        Arc::new(FinalizingSteps(self))
    }
}

struct PlainSteps<R>(R);

impl<R: Reconciler> Steps<R::Object> for PlainSteps<R> {
    fn reconcile<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Action>> {
        self.0.reconcile(object, ctx).boxed()
    }

    fn terminating<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Action>> {
        self.0.terminating(object, ctx).boxed()
    }

    fn cleanup<'a>(
        &'a self,
        _: &'a R::Object,
        _: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Action>> {
        done()
    }

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<()>> {
        self.0.gone(key).boxed()
    }
}

struct FinalizingSteps<R>(R);

impl<R: FinalizingReconciler> Steps<R::Object> for FinalizingSteps<R> {
    fn reconcile<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Action>> {
        self.0.reconcile(object, ctx).boxed()
    }

    fn terminating<'a>(
        &'a self,
        _: &'a R::Object,
        _: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Action>> {
        done()
    }

    fn cleanup<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Action>> {
        self.0.cleanup(object, ctx).boxed()
    }

    fn gone<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }
}

fn done<'a>() -> BoxFuture<'a, Result<Action>> {
    async { Ok(Action::done()) }.boxed()
}

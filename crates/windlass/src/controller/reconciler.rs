//! [`Reconciler`] and [`Cleanup`]: the author's code, for operators with steps of their own.
//!
//! A reconciler is a struct of handles. An associated function, `declare` by convention, makes
//! them from a [`Declare`](crate::Declare); what it declares is what the reconciler can do:
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use windlass::{Context, Controller, Declare, Next, Operator, Owned, Reads, Reconciler, Result, Watched};
//!
//! struct Mirror {
//!     copies: Owned<ConfigMap>,
//!     secrets: Reads<Secret>,
//! }
//!
//! impl Mirror {
//!     fn declare(declare: &mut Declare<ConfigMap>) -> Self {
//!         Self {
//!             copies: declare.owns(),
//!             secrets: declare.reads(Secret::referenced_by(|map: &ConfigMap| map.metadata.name.clone())),
//!         }
//!     }
//! }
//!
//! impl Reconciler for Mirror {
//!     type Object = ConfigMap;
//!
//!     async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Next> {
//!         let Some(secret) = self.secrets.get(ctx, ctx.key()).await? else {
//!             return Ok(Next::waiting("SecretNotFound", "there is no secret of that name"));
//!         };
//!         # drop((map, secret));
//!         Ok(Next::settled())
//!     }
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("mirror").controller(Controller::of_existing().reconciler(Mirror::declare))
//! }
//! # operator();
//! ```

use std::future::Future;

use super::{context::Context, next::Next};
use crate::{Key, Kind, Result};

/// Brings the world closer to what one object asks for.
///
/// Called for one object at a time per key, never twice at once for the same key, whenever the
/// object or something it owns or reads has changed. A reconcile must be able to start from any
/// state, because the one before it may have been killed after any write.
pub trait Reconciler: Send + Sync + 'static {
    /// The kind whose objects are reconciled.
    type Object: Kind;

    /// Reconciles an object that exists and is not being deleted.
    fn reconcile(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Next>> + Send;

    /// Called for an object that is being deleted and still exists because of finalizers or its
    /// grace period. Most reconcilers leave it alone.
    fn terminating(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Next>> + Send {
        let _ = (object, ctx);
        async { Ok(Next::settled()) }
    }

    /// Called when an object is gone, to forget what is kept about it outside the cluster. An
    /// object that went while the operator was not running is not reported: what must not be
    /// missed belongs into [`Cleanup`].
    fn gone(&self, key: &Key) -> impl Future<Output = Result<()>> + Send {
        let _ = key;
        async { Ok(()) }
    }
}

/// Work to be done before an object may go: the finalizer exists exactly on the objects of
/// controllers that have a cleanup, and a later version without one removes it.
pub trait Cleanup: Reconciler {
    /// Undoes what was done for the object. Called until it returns [`Next::settled`]; then the
    /// finalizer is removed.
    fn cleanup(
        &self,
        object: &Self::Object,
        ctx: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Next>> + Send;
}

//! [`Steps`]: a reconciler behind a pointer, so that controllers of all kinds run alike.

use futures::{FutureExt, future::BoxFuture};

use super::{
    context::Context,
    next::Next,
    reconciler::{Cleanup, Reconciler},
};
use crate::{Key, Kind, Result};

/// What the engine calls.
pub(crate) trait Steps<K: Kind>: Send + Sync {
    fn reconcile<'a>(&'a self, object: &'a K, ctx: &'a Context<K>) -> BoxFuture<'a, Result<Next>>;

    fn terminating<'a>(&'a self, object: &'a K, ctx: &'a Context<K>)
    -> BoxFuture<'a, Result<Next>>;

    /// The cleanup, if there is one.
    fn cleanup<'a>(
        &'a self,
        object: &'a K,
        ctx: &'a Context<K>,
    ) -> Option<BoxFuture<'a, Result<Next>>>;

    fn has_cleanup(&self) -> bool;

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<()>>;
}

/// A reconciler without cleanup.
pub(crate) struct Plain<R>(pub(crate) R);

impl<R: Reconciler> Steps<R::Object> for Plain<R> {
    fn reconcile<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Next>> {
        self.0.reconcile(object, ctx).boxed()
    }

    fn terminating<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Next>> {
        self.0.terminating(object, ctx).boxed()
    }

    fn cleanup<'a>(
        &'a self,
        _: &'a R::Object,
        _: &'a Context<R::Object>,
    ) -> Option<BoxFuture<'a, Result<Next>>> {
        None
    }

    fn has_cleanup(&self) -> bool {
        false
    }

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<()>> {
        self.0.gone(key).boxed()
    }
}

/// A reconciler with cleanup.
pub(crate) struct WithCleanup<R>(pub(crate) R);

impl<R: Cleanup> Steps<R::Object> for WithCleanup<R> {
    fn reconcile<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Next>> {
        self.0.reconcile(object, ctx).boxed()
    }

    fn terminating<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> BoxFuture<'a, Result<Next>> {
        self.0.terminating(object, ctx).boxed()
    }

    fn cleanup<'a>(
        &'a self,
        object: &'a R::Object,
        ctx: &'a Context<R::Object>,
    ) -> Option<BoxFuture<'a, Result<Next>>> {
        Some(self.0.cleanup(object, ctx).boxed())
    }

    fn has_cleanup(&self) -> bool {
        true
    }

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<()>> {
        self.0.gone(key).boxed()
    }
}

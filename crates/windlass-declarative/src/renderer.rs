//! [`Renderer`]: computes what should be there.

use futures::future::BoxFuture;
use kube::core::DynamicObject;
use windlass::{Context, Result};

use crate::{Desired, Input};

/// The reconcile that a renderer is called in.
pub type RendererContext = Context<DynamicObject>;

/// Computes what should be there for a parent.
///
/// The answer should depend on nothing but the input: it is asked again after every change and every
/// crash. An error deletes nothing, and is tried again with backoff;
/// [`Error::waiting`](windlass::Error::waiting) is not tried again before something changes.
pub trait Renderer: Send + Sync + 'static {
    /// What should be there.
    fn render<'a>(
        &'a self,
        ctx: &'a RendererContext,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Desired>>;

    /// Whether it is asked, with [`Input::finalizing`], what should be there while a parent is being
    /// deleted, and whether the parent may go ([`Desired::done`]).
    fn finalizes(&self) -> bool {
        false
    }
}

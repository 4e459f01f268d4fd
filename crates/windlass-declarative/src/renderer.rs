//! [`Renderer`]: computes what should be there.

use futures::future::BoxFuture;
use kube::core::{DynamicObject, Selector};
use serde_json::Value;
use windlass::{Context, Result};

use crate::{Desired, Input, Objects};

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

    /// What it wants to see beside the children: given to it as [`Input::related`].
    fn related<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
    ) -> BoxFuture<'a, Result<Objects>> {
        let _ = (ctx, parent);
        Box::pin(async { Ok(Objects::new()) })
    }

    /// Whether an object that the parent controls is one of its children: not, if another renderer
    /// made it for the same parent.
    fn is_child(&self, object: &Value) -> bool {
        let _ = object;
        true
    }

    /// The labels by which a parent selects its children, if it does: of the declared kinds, objects
    /// that match and belong to nobody are adopted, and children that do not match are released.
    fn selector(&self, parent: &Value) -> Result<Option<Selector>> {
        let _ = parent;
        Ok(None)
    }
}

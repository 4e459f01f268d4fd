//! [`Inventory`]: what was made for a parent.

use futures::future::BoxFuture;
use serde_json::Value;
use windlass::{
    Result,
    kind::{Key, KindInfo},
};

use crate::{Desired, RendererContext};

/// An object that was made for a parent, or may have been.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its kind.
    pub kind: KindInfo,
    /// Its key.
    pub key: Key,
    /// Whether it stays when the parent goes.
    pub keep: bool,
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is applied, and ready where a later stage had to wait for it.
    Applied,
    /// A stage is not ready yet, for this reason.
    Waiting(String),
    /// It failed.
    Failed {
        /// Why.
        error: String,
        /// Whether it would fail again if nothing changed.
        lasting: bool,
    },
}

/// What was made for a parent, where owner references do not say so: objects of another scope or
/// namespace, and kinds that are known only by rendering.
///
/// It is recorded before the first object is written, so that whatever happens after that, the next
/// reconcile and the deletion know of it.
pub trait Inventory: Send + Sync + 'static {
    /// What is recorded, in the order in which it was made.
    fn entries<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<Entry>>>;

    /// Records what is about to be written, beside what is recorded. Called before the first write
    /// of every reconcile: it must write nothing if nothing changes.
    fn record<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
        desired: &'a Desired,
        entries: &'a [Entry],
    ) -> BoxFuture<'a, Result<()>>;

    /// Called after the writes of a reconcile, and before the status is written: what is not in
    /// `desired` any more is deleted if the outcome is [`Outcome::Applied`]. A status it returns
    /// replaces that of `desired`.
    fn settle<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
        desired: &'a Desired,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Option<Value>>>;

    /// Called when a parent is deleted and its objects are gone, before its finalizer is removed.
    fn forget<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
    ) -> BoxFuture<'a, Result<()>>;
}

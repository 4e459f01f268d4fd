//! The cache: what the API server has, as far as this operator watches it.
//!
//! One [`Store`] per kind and [`Scope`](crate::watch::Scope), shared by every controller of an operator,
//! is fed by one watch ([`informer`]). Its rules:
//!
//! - An object is kept compactly ([`CachedObject`]): encoded, without other managers' field lists,
//!   beside the few facts that look-ups need. It is decoded when it is read.
//! - Every change is delivered once to every subscriber with the old and the new object, also a
//!   delete that happened while the watch was interrupted: a full list ends with the deletion of
//!   what was not in it.
//! - Reads see the operator's own writes: a write leaves an expectation, and a read of that object
//!   waits, for a bounded time, until the watch has delivered it. When the cache is already
//!   current nothing waits.

mod arrival;
mod caches;
mod delivered;
mod expectation;
mod feeds;
mod hot;
mod index;
mod informer;
mod labels;
mod object;
mod packed;
mod selection;
mod source;
mod state;
mod store;
mod wait;
mod watched;
mod wire;

pub(crate) use self::{
    caches::Caches,
    delivered::Delivered,
    expectation::Writer,
    feeds::Feeds,
    hot::text_bytes,
    labels::{Labels, MatchAll},
    object::{CachedObject, Examples, Ours, controller_of, of_entry, take_managed, version_of},
    store::{Change, Memo, Store, Transform},
    watched::Watched,
    wire::{VALUES, Wire},
};

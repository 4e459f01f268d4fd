//! Handles: the only way from a reconciler to the API server.
//!
//! A handle is made by a [`Declare`](crate::Declare) and can do what was declared, no more; the
//! operator's role is the sum of its handles. Reads come from the cache and see the operator's
//! own writes; writes are sent with the operator's name as field manager.
//!
//! | handle | reads | writes |
//! | --- | --- | --- |
//! | [`Owned`] | the objects that belong to the reconciled object | applies them, all of them; the rest is pruned |
//! | [`Controlled`] | the objects that the reconciled object controls | creates, applies, patches, deletes, adopts them one by one |
//! | [`OwnedKinds`] | the objects that belong to the reconciled object, of kinds known at run time and in any namespace | applies, adopts, releases and deletes them one by one |
//! | [`Reads`] | objects of other kinds, from the cache or by requests | nothing |
//! | [`Writes`] | nothing | what its [`Access`] lists, on objects it does not own |
//! | [`Index`] | objects of a watched kind by what a function says of them | nothing |
//! | [`Watches`] | kinds that are known only at run time | nothing |
//! | [`Controllers`] | nothing | starts and stops other controllers |
//! | [`Raw`] | everything granted | everything granted |

mod apply;
mod controlled;
mod controllers;
mod delete;
mod kinds;
mod memo;
mod owned;
mod raw;
mod reads;
mod watches;
mod writes;

pub(crate) use self::apply::prune;
#[cfg(feature = "webhooks")]
pub(crate) use self::reads::sealed;
pub use self::{
    controlled::Controlled,
    controllers::Controllers,
    delete::Delete,
    kinds::OwnedKinds,
    owned::Owned,
    raw::Raw,
    reads::{Index, Reader, Reads},
    watches::{Interest, Watches},
    writes::Writes,
};
pub use crate::declare::{Access, Verb};

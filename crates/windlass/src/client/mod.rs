//! The client: how handles talk to the API server.
//!
//! [`Requests`] sends, past the [`guard`]; [`intent`] encodes what is to be applied; [`managed`] tells from the cache
//! whether an apply would change anything; [`merge`] makes the smallest merge patch, or none.

mod guard;
pub(crate) mod intent;
pub(crate) mod managed;
pub(crate) mod merge;
mod rehearsal;
mod requests;
mod timed;

pub(crate) use self::{
    guard::{Gate, Leads, NotLeading, guard},
    requests::Requests,
};

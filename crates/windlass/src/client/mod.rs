//! The client: how handles talk to the API server.
//!
//! [`Requests`] sends; [`intent`] encodes what is to be applied; [`managed`] tells from the cache
//! whether an apply would change anything; [`merge`] makes the smallest merge patch, or none.

pub(crate) mod intent;
pub(crate) mod managed;
pub(crate) mod merge;
mod quantity;
mod requests;

pub(crate) use self::requests::{Alive, Requests};

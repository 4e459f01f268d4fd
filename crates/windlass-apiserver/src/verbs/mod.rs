//! What can be done with objects: one module per verb, the same for every kind.
//!
//! [`Call`] is the request, and nothing but data. [`route`] finds the module of its verb, which reads
//! the [`body`] and sends what comes of it through the stages of the [`pipeline`]; [`present`] makes
//! the answer. Each stage is a function of its module and takes the request, or the part of it that
//! it needs.

pub(crate) mod admit;
mod apply;
mod binding;
pub(crate) mod body;
mod call;
mod create;
pub(crate) mod delete;
mod eviction;
mod form;
mod get;
mod list;
mod options;
pub(crate) mod ownership;
mod patch;
mod pipeline;
mod present;
mod refusal;
mod reservation;
mod route;
mod scale;
pub(crate) mod selector;
mod update;
mod watch;

pub(crate) use call::Call;
pub(crate) use options::parse_int;
pub(crate) use pipeline::place;
pub(crate) use route::run;

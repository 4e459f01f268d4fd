//! Webhooks: an operator's say in what is stored.
//!
//! A [`Webhook`] fills in defaults and judges objects of one kind, the operator's own or any other;
//! [`Versions`] convert between the versions of a kind. Both are parts of the operator value, and
//! everything else follows from them: the configurations, the Service, the server with its
//! certificate, the rights.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass::{Operator, Webhook, webhook::{Verdict}};
//!
//! fn fill_in(map: &mut ConfigMap) {
//!     map.data.get_or_insert_default().entry("mode".into()).or_insert("plain".into());
//! }
//!
//! fn judge(map: &ConfigMap, old: Option<&ConfigMap>) -> Verdict {
//!     let mode = |map: &ConfigMap| map.data.as_ref()?.get("mode").cloned();
//!     let mut verdict = Verdict::allow();
//!     if old.is_some_and(|old| mode(old) != mode(map)) {
//!         verdict.forbid("data.mode", "may not change");
//!     }
//!     verdict
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("modes").webhook(Webhook::of::<ConfigMap>().defaulting(fill_in).validating(judge))
//! }
//! # assert_eq!(operator().description().webhooks.len(), 2);
//! ```
//!
//! Rules:
//! - What a function does not know it does not lose: only the fields it changed are patched.
//! - All that is wrong is told at once, each with its field, as an `Invalid` status.
//! - A panic or an error is a failed call, never a silent yes.
//! - Reads go to the cache through handles that are declared, as in a controller ([`Reads`](crate::handle::Reads)).
//! - The certificate is issued, kept and renewed by the operator itself; one
//!   that is given in a folder is used, and loaded again when it changes.

mod any;
pub(crate) mod certificate;
mod change;
mod declare;
mod hook;
pub(crate) mod keeper;
mod local;
mod review;
mod reviewer;
mod round_trip;
mod router;
mod server;
pub(crate) mod serving;
mod verdict;
mod versions;

pub use self::{
    any::AnyWebhook,
    hook::Webhook,
    review::{Operation, Review},
    reviewer::{Defaulter, Validator},
    verdict::Verdict,
    versions::Versions,
};
pub(crate) use self::{router::Router, versions::AnyVersions};

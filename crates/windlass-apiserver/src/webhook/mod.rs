//! Webhooks: other programs that have a say in what is stored.
//!
//! | who | when it is called | may |
//! | --- | --- | --- |
//! | mutating admission | after decoding, defaulting and the built-in plug-ins, before validation | change the object by a JSON patch, deny, warn |
//! | validating admission | after validation, just before the store | deny, warn |
//! | conversion | whenever an object of a CRD is wanted in another version than it is in | answer the object in that version |
//!
//! Rules:
//! - Configurations are asked in the order of their names, webhooks in the order they stand in.
//!   Mutating ones are called one after the other and see each other's changes; validating ones
//!   are called at once and the first refusal, in that order, is told.
//! - When a mutating webhook changed something, the built-in plug-ins run once more, and so do
//!   the webhooks before it whose `reinvocationPolicy` is `IfNeeded`.
//! - A call that fails is a refusal (500) unless the `failurePolicy` is `Ignore`. A denial is never
//!   ignored.
//! - A dry run calls only webhooks without side effects; one that has some refuses it.
//! - What a webhook changed belongs to nobody in `managedFields`, as with Kubernetes.
//! - The configurations themselves pass no webhook, so that a broken one can be put right.
//!
//! How a webhook is reached is a [`WebhookTransport`]: [`TlsTransport`] over HTTPS, or
//! [`LocalWebhooks`] in process, where time is virtual and a socket would never answer.

mod address;
mod attributes;
mod call;
mod concern;
mod conditions;
mod configuration;
mod connections;
mod conversion;
mod local;
mod matching;
mod mutating;
mod patch;
mod review;
mod tls;
mod transport;
mod trust;
mod validating;

pub(crate) use attributes::{Attributes, Operation};
pub(crate) use conditions::{Conditions, Seen, seen};
pub(crate) use configuration::Hooks;
pub(crate) use conversion::{Conversion, both as versioned, convert};
pub use local::{LocalRegistration, LocalService, LocalWebhooks};
pub(crate) use matching::{Criteria, is_policy};
pub(crate) use mutating::mutate;
pub(crate) use review::internal as internal_error;
pub use tls::TlsTransport;
pub use transport::{Reply, TransportError, WebhookCall, WebhookTarget, WebhookTransport};
pub(crate) use validating::validate;

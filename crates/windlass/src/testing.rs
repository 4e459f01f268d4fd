//! What a test replaces in a running operator: time, randomness, and how webhooks are served.
//!
//! `windlass-cluster` uses this for its `TestCluster`; an author of an operator does not need it.
//! An [`Environment`] is given to [`Operator::start`](crate::Operator::start): its default is the
//! machine's clock and randomness.

pub use crate::environment::{
    Activity, BusyGuard, Clock, DueGuard, Environment, PlanGuard, Random,
};
#[cfg(feature = "webhooks")]
pub use crate::webhook::serving::{Certificates, HostWebhooks, WebhookServer, WebhookServing};

//! [`Environment`]: what a test replaces.
//!
//! The framework takes wall time from a [`Clock`], randomness from a [`Random`] source, and tells
//! an [`Activity`] what it still has to do. In production the defaults are the machine's clock, a
//! source seeded from the machine, and an activity nobody looks at; in a test they are virtual
//! time, a seed that replays a failure, and the way to know that a cluster has settled.
//! Everything else that takes time goes through tokio's clock, which a test can pause.

mod activity;
mod clock;

pub use self::{
    activity::{Activity, BusyGuard, DueGuard, PlanGuard},
    clock::Clock,
};
pub use windlass_apimachinery::Random;

#[cfg(feature = "webhooks")]
use crate::webhook::serving::WebhookServing;

/// Clock, randomness and activity of one running operator; clones share all three.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Wall time.
    pub clock: Clock,
    /// The source of name suffixes and jitter.
    pub random: Random,
    /// What is left to do.
    pub activity: Activity,
    /// How webhooks are served.
    #[cfg(feature = "webhooks")]
    pub webhooks: WebhookServing,
}

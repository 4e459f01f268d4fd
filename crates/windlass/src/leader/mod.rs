//! Leader election: of several replicas exactly one writes.
//!
//! The replicas agree through a `Lease`. Its holder renews it every two seconds; the others look at
//! it as often. Rules that keep two from writing at once:
//!
//! - Nobody compares clocks. A replica notes, on its own clock that nobody can turn back, when it
//!   saw the lease change; it takes over when the lease has not changed for the holder's fifteen
//!   seconds. What time the lease says it is does not matter.
//! - The holder writes for ten seconds from the moment it *sent* its last successful renewal, and
//!   not a moment longer. Every write checks this just before it is sent
//!   ([`Gate`](crate::client::Gate)), so that a process that was stopped and resumed finds out
//!   before it does harm, whatever it was doing.
//! - Who loses the lease ends, as if it had crashed, and starts anew.

mod elector;

use std::time::Duration;

pub(crate) use self::elector::Elector;

/// How replicas agree on which of them leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// Which replica this is; different for each.
    pub identity: String,
    /// How long the others wait for a holder that is not heard of; 15 s.
    pub lease: Duration,
    /// How long the holder goes on without a successful renewal; 10 s. Less than the lease.
    pub renew: Duration,
    /// How often the lease is renewed, or looked at; 2 s.
    pub retry: Duration,
}

impl LeaderElection {
    /// An election with the times that Kubernetes' own controllers use.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

//! Calls of an operator to a system outside of the cluster, which a test simulates.
//!
//! An operator that runs a database calls the database too, and dies, or hears nothing, between
//! any two of those calls as well. The simulation of such a system asks [`Outside`] what becomes of
//! each call that it is about to carry out, and does that; so the replays of a scenario can disturb
//! each call, as they do each write to the API server.

use std::fmt;
use std::sync::Arc;

use super::faults::{Faults, user_of};

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out and answered.
    Answered,
    /// It is carried out, and the answer gets lost: the caller waits until its deadline.
    AnswerLost,
    /// It gets lost before it arrives: the caller waits until its deadline, and cannot tell.
    CallLost,
    /// It is carried out, and the caller is killed before it hears of it.
    CallerKilled,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answered => "undisturbed",
            Self::AnswerLost => "with the answer lost",
            Self::CallLost => "with the call lost",
            Self::CallerKilled => "killed after it",
        })
    }
}

/// A call that an operator made to a system outside of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideCall {
    /// Who made it.
    pub operator: String,
    /// What was asked, for a person.
    pub what: String,
    /// Whether it changes anything there.
    pub changes: bool,
}

/// Where the simulation of an outside system asks what becomes of the calls made to it. It does not
/// keep its cluster alive.
#[derive(Clone)]
pub struct Outside(Arc<Faults>);

impl Outside {
    pub(super) fn new(faults: Arc<Faults>) -> Self {
        Self(faults)
    }

    /// What becomes of a call that an operator makes now.
    pub fn call(&self, operator: &str, what: impl Into<String>, changes: bool) -> Fate {
        self.0.outside_call(OutsideCall {
            operator: operator.to_owned(),
            what: what.into(),
            changes,
        })
    }

    /// Kills an operator that was started, between two steps of what it is doing; never ready, since
    /// whoever asks for it on the operator's behalf dies with it.
    pub async fn kill(&self, operator: &str) {
        self.0.kill(&user_of(operator));
        std::future::pending::<()>().await;
    }
}

//! [`EtcdError`]: what went wrong, sorted by what can be done about it.
//!
//! The messages are etcd's own: it tells its errors apart by them alone, since several share a
//! code. They have been the same from 3.4 on.

use std::time::Duration;

use super::Call;

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// No member could be reached: nothing has been done.
    #[error("cannot {call}: no member can be reached: {message}")]
    Unreachable {
        /// What was asked.
        call: Call,
        /// What happened at each endpoint.
        message: String,
    },
    /// The call was sent and nobody said how it went: it may have been carried out.
    #[error("cannot tell whether etcd did {call}: {message}")]
    TimedOut {
        /// What was asked.
        call: Call,
        /// How the answer got lost.
        message: String,
    },
    /// The members that could be reached have no majority, and so no leader: nothing has been done.
    #[error("cannot {call}: there is no leader: {message}")]
    NoQuorum {
        /// What was asked.
        call: Call,
        /// What etcd says.
        message: String,
    },
    /// Members are down, have just come back or were never started, and etcd refuses what could
    /// cost the majority.
    #[error("cannot {call}: etcd fears for its majority: {message}")]
    Unhealthy {
        /// What was asked.
        call: Call,
        /// What etcd says.
        message: String,
    },
    /// The learner has not caught up with the leader yet.
    #[error("cannot promote the learner: it has not caught up with the leader")]
    LearnerNotReady,
    /// The member has a vote already.
    #[error("cannot promote the member: it is no learner")]
    NotALearner,
    /// There is no member of that id.
    #[error("there is no such member")]
    MemberNotFound,
    /// There are as many learners as etcd allows.
    #[error("cannot add a learner: there are as many as etcd allows")]
    TooManyLearners,
    /// A member of these peer URLs is there already.
    #[error("cannot add a member: one of its peer URLs is there already")]
    PeerUrlExists,
    /// The member that was asked does not lead.
    #[error("the member that was asked is not the leader")]
    NotLeader,
    /// The member cannot lead: it is a learner, or there is none of that id.
    #[error("cannot move the leadership: the member cannot lead")]
    BadLeaderTransferee,
    /// Anything else.
    #[error("cannot {call}: etcd says {code}: {message}")]
    Other {
        /// What was asked.
        call: Call,
        /// The code of gRPC.
        code: i32,
        /// What etcd says.
        message: String,
    },
}

impl EtcdError {
    /// Whether the call may have been carried out all the same.
    pub fn may_have_been_applied(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// No answer came in time.
    pub(crate) fn no_answer(call: Call, within: Duration) -> Self {
        Self::TimedOut {
            call,
            message: format!("no answer within {within:?}"),
        }
    }

    /// What an answer of etcd that is an error means, by its code of gRPC and its words.
    pub fn answered(call: Call, code: i32, message: &str) -> Self {
        let text = message.strip_prefix("etcdserver: ").unwrap_or(message);
        let message = message.to_owned();
        match text {
            "no leader" | "leader changed" | "raft proposal dropped" => {
                Self::NoQuorum { call, message }
            }
            "unhealthy cluster" | "re-configuration failed due to not enough started members" => {
                Self::Unhealthy { call, message }
            }
            "can only promote a learner member which is in sync with leader" => {
                Self::LearnerNotReady
            }
            "can only promote a learner member" => Self::NotALearner,
            "member not found" => Self::MemberNotFound,
            "too many learner members in cluster" => Self::TooManyLearners,
            "Peer URLs already exists" | "member ID already exist" => Self::PeerUrlExists,
            "not leader" => Self::NotLeader,
            "bad leader transferee" => Self::BadLeaderTransferee,
            "server stopped" | "context deadline exceeded" | "request canceled" => {
                Self::TimedOut { call, message }
            }
            _ if text.starts_with("request timed out") => Self::TimedOut { call, message },
            _ => Self::Other {
                call,
                code,
                message,
            },
        }
    }
}

//! What the operator asks of an etcd cluster, and what etcd answers.
//!
//! Every call has a deadline and goes through tokio's clock. Endpoints are URLs.

use async_trait::async_trait;

/// A member, as the cluster tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id, given by the cluster.
    pub id: u64,
    /// Its name; empty until it has started.
    pub name: String,
    /// Where other members reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it; none until it has started.
    pub client_urls: Vec<String>,
    /// Whether it gets the log but has no vote.
    pub learner: bool,
}

/// The members a majority agrees on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The cluster's id.
    pub cluster_id: u64,
    /// The members.
    pub members: Vec<Member>,
}

/// A member's own view of itself and its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The cluster it belongs to.
    pub cluster_id: u64,
    /// Its id.
    pub member_id: u64,
    /// The leader it follows, if it knows one.
    pub leader: Option<u64>,
    /// The term it is in.
    pub raft_term: u64,
    /// The last entry of its log that is committed.
    pub raft_index: u64,
    /// The last entry it has applied.
    pub applied_index: u64,
    /// The size of its database in bytes.
    pub db_size: i64,
    /// Its version.
    pub version: String,
    /// Whether it has no vote.
    pub learner: bool,
    /// What it complains of.
    pub errors: Vec<String>,
}

/// Why a call to etcd did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// No endpoint could be reached: nothing was done.
    #[error("cannot reach etcd at {endpoint}: {message}")]
    Unreachable {
        /// The endpoint.
        endpoint: String,
        /// What happened.
        message: String,
    },
    /// No answer in time: it may have been done.
    #[error("no answer from etcd to {call} in time")]
    TimedOut {
        /// The call.
        call: &'static str,
    },
    /// A majority of the members does not answer.
    #[error("etcd has no majority: {message}")]
    NoQuorum {
        /// What etcd says.
        message: String,
    },
    /// The learner has not caught up yet.
    #[error("the learner has not caught up with the leader")]
    LearnerNotReady,
    /// There is no member of that id.
    #[error("there is no such member")]
    MemberNotFound,
    /// There are as many learners as there may be.
    #[error("there are too many learners")]
    TooManyLearners,
    /// A member with that peer URL exists.
    #[error("a member with that peer URL exists")]
    PeerUrlExists,
    /// The cluster refuses a change that would endanger its majority.
    #[error("etcd refuses the change: {message}")]
    Unhealthy {
        /// What etcd says.
        message: String,
    },
    /// The member asked is not the leader.
    #[error("the member is not the leader")]
    NotLeader,
    /// Anything else.
    #[error("etcd answers {code}: {message}")]
    Other {
        /// The code of the answer.
        code: i32,
        /// What etcd says.
        message: String,
    },
}

/// The calls the operator makes.
#[async_trait]
pub trait Etcd: Send + Sync + 'static {
    /// The members that a majority agrees on.
    async fn members(&self, endpoints: &[String]) -> Result<Membership, EtcdError>;
    /// What one member says of itself; needs no majority.
    async fn status(&self, endpoint: &str) -> Result<MemberStatus, EtcdError>;
    /// Adds a member.
    async fn add_member(
        &self,
        endpoints: &[String],
        peer_urls: &[String],
        learner: bool,
    ) -> Result<Member, EtcdError>;
    /// Gives a learner its vote.
    async fn promote_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError>;
    /// Removes a member.
    async fn remove_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError>;
    /// Makes another member the leader; asked of the leader itself.
    async fn move_leader(&self, leader_endpoint: &str, to: u64) -> Result<(), EtcdError>;
}

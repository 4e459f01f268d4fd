//! What the operator asks of an etcd cluster, and how it hears of what went wrong.
//!
//! [`Etcd`] is the whole of it: the members and their states, and the few calls that change the
//! membership. [`EtcdClient`] asks real members over gRPC; tests put a simulated etcd in its place.
//!
//! A call that changes something may time out and have been applied all the same
//! ([`EtcdError::TimedOut`]): whoever makes one looks at the members before making it again.

mod client;
mod error;
mod wire;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

pub use client::EtcdClient;
pub use error::EtcdError;

/// A member as the membership of its cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id, which etcd gives it.
    pub id: u64,
    /// Its name; empty until it has been started for the first time.
    pub name: String,
    /// Where the other members reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty until it has been started for the first time.
    pub client_urls: Vec<String>,
    /// Whether it only learns, and has no vote yet.
    pub learner: bool,
}

impl Member {
    /// Whether it has been started for the first time, and told the others its name.
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }
}

/// Who belongs to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The id of the cluster.
    pub cluster_id: u64,
    /// Its members, ordered by id.
    pub members: Vec<Member>,
}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The id of the cluster that it belongs to.
    pub cluster_id: u64,
    /// Its own id.
    pub member_id: u64,
    /// Whom it takes for the leader; nobody when it knows of none.
    pub leader: Option<u64>,
    /// The term it is in.
    pub raft_term: u64,
    /// The newest revision it knows of.
    pub revision: i64,
    /// How far its log goes.
    pub raft_index: u64,
    /// How much of its log it has applied.
    pub applied_index: u64,
    /// The size of its database, in bytes.
    pub db_size: i64,
    /// The version of etcd it runs.
    pub version: String,
    /// Whether it only learns, and has no vote yet.
    pub learner: bool,
    /// What it complains of, as in `etcdserver: no leader` or an alarm.
    pub errors: Vec<String>,
}

/// A piece of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How many bytes of the database come after this one.
    pub remaining: u64,
    /// The bytes.
    pub blob: Bytes,
}

/// A snapshot as it comes: the database, then its SHA-256.
pub type Snapshot = BoxStream<'static, Result<Chunk, EtcdError>>;

/// A call, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`Etcd::members`]
    Members,
    /// [`Etcd::status`]
    Status,
    /// [`Etcd::add_member`]
    AddMember,
    /// [`Etcd::promote_member`]
    PromoteMember,
    /// [`Etcd::remove_member`]
    RemoveMember,
    /// [`Etcd::move_leader`]
    MoveLeader,
    /// [`Etcd::snapshot`]
    Snapshot,
    /// [`EtcdClient::put`]
    Put,
    /// [`EtcdClient::get`]
    Get,
}

impl Call {
    /// Whether it changes the cluster.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Self::Members | Self::Status | Self::Snapshot | Self::Get
        )
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Members => "list the members",
            Self::Status => "ask a member for its status",
            Self::AddMember => "add a member",
            Self::PromoteMember => "promote a learner",
            Self::RemoveMember => "remove a member",
            Self::MoveLeader => "move the leadership",
            Self::Snapshot => "read a snapshot",
            Self::Put => "write a key",
            Self::Get => "read a key",
        })
    }
}

/// What the operator asks of etcd. Every call ends after a deadline of its own.
///
/// Endpoints are client URLs of members. A call that takes several asks the first that can serve
/// it; one that changes something is never sent to a second member while the first may have
/// carried it out.
#[async_trait]
pub trait Etcd: Send + Sync + 'static {
    /// The members as a majority of them agrees on, everything acknowledged before included.
    async fn members(&self, endpoints: &[String]) -> Result<Membership, EtcdError>;

    /// What the member at this endpoint says of itself, also when it has lost the others.
    async fn status(&self, endpoint: &str) -> Result<MemberStatus, EtcdError>;

    /// Adds a member that will be reached by others at these URLs.
    async fn add_member(
        &self,
        endpoints: &[String],
        peer_urls: &[String],
        learner: bool,
    ) -> Result<Member, EtcdError>;

    /// Gives a learner a vote.
    async fn promote_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError>;

    /// Removes a member; its process ends by itself, and its data is of no use any more.
    async fn remove_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError>;

    /// Lets the leader, which is at this endpoint, hand over to another member.
    async fn move_leader(&self, leader_endpoint: &str, to: u64) -> Result<(), EtcdError>;

    /// A snapshot of the data of the member at this endpoint. It has no deadline: whoever reads it
    /// knows how long it may take.
    async fn snapshot(&self, endpoint: &str) -> Result<Snapshot, EtcdError>;
}

//! The messages of etcd's gRPC interface that are used here, with the fields that are read.
//!
//! Written down by hand from etcd's published interface: a dozen messages are less to carry than a
//! compiler for all of them, which every build would need.

use prost::Message;

/// A call on the wire: its messages and where they go.
pub(super) trait Rpc: Message + Default + 'static {
    /// What comes back.
    type Answer: Message + Default + 'static;
    /// Service and method.
    const PATH: &'static str;
}

macro_rules! rpc {
    ($question:ident -> $answer:ident at $path:literal) => {
        impl Rpc for $question {
            type Answer = $answer;
            const PATH: &'static str = $path;
        }
    };
}

rpc!(MemberListRequest -> MemberListResponse at "/etcdserverpb.Cluster/MemberList");
rpc!(MemberAddRequest -> MemberAddResponse at "/etcdserverpb.Cluster/MemberAdd");
rpc!(MemberRemoveRequest -> Acknowledgement at "/etcdserverpb.Cluster/MemberRemove");
rpc!(MemberPromoteRequest -> Acknowledgement at "/etcdserverpb.Cluster/MemberPromote");
rpc!(StatusRequest -> StatusResponse at "/etcdserverpb.Maintenance/Status");
rpc!(MoveLeaderRequest -> Acknowledgement at "/etcdserverpb.Maintenance/MoveLeader");
rpc!(SnapshotRequest -> SnapshotResponse at "/etcdserverpb.Maintenance/Snapshot");
rpc!(RangeRequest -> RangeResponse at "/etcdserverpb.KV/Range");
rpc!(PutRequest -> Acknowledgement at "/etcdserverpb.KV/Put");

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub(super) cluster_id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) member_id: u64,
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

/// An answer of which nothing but its coming matters.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Acknowledgement {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Member {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(super) client_urls: Vec<String>,
    #[prost(bool, tag = "5")]
    pub(super) is_learner: bool,
}

impl From<Member> for super::Member {
    fn from(member: Member) -> Self {
        Self {
            id: member.id,
            name: member.name,
            peer_urls: member.peer_urls,
            client_urls: member.client_urls,
            learner: member.is_learner,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberListRequest {
    /// Not known to 3.4, which answers from its own memory.
    #[prost(bool, tag = "1")]
    pub(super) linearizable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberListResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(super) members: Vec<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberAddRequest {
    #[prost(string, repeated, tag = "1")]
    pub(super) peer_urls: Vec<String>,
    #[prost(bool, tag = "2")]
    pub(super) is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberAddResponse {
    #[prost(message, optional, tag = "2")]
    pub(super) member: Option<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberRemoveRequest {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberPromoteRequest {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(int64, tag = "3")]
    pub(super) db_size: i64,
    #[prost(uint64, tag = "4")]
    pub(super) leader: u64,
    #[prost(uint64, tag = "5")]
    pub(super) raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub(super) raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub(super) raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub(super) errors: Vec<String>,
    #[prost(bool, tag = "10")]
    pub(super) is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MoveLeaderRequest {
    #[prost(uint64, tag = "1")]
    pub(super) target_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SnapshotRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SnapshotResponse {
    #[prost(uint64, tag = "2")]
    pub(super) remaining_bytes: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) blob: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bool, tag = "9")]
    pub(super) count_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

//! [`EtcdClient`]: asks real members, over gRPC.
//!
//! Each call makes a connection of its own: there are few, members come and go, and a connection
//! that was refused is a call that was surely not carried out.

use std::error::Error as _;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use http::uri::PathAndQuery;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::wire::{self, Rpc};
use super::{Call, Chunk, Etcd, EtcdError, Member, MemberStatus, Membership, Snapshot};

/// A member that cannot be connected to in this time is not there.
const CONNECT: Duration = Duration::from_secs(2);
/// A member that says nothing in this time is stuck, or has lost the others.
const READ: Duration = Duration::from_secs(4);
/// What changes something gets more time: etcd itself gives up after 7 seconds, and its word on how
/// it went is worth waiting for.
const CHANGE: Duration = Duration::from_secs(10);
/// How much sooner the member hears that time is over than we stop listening.
const LISTEN: Duration = Duration::from_millis(500);
/// Asks a member that knows of no leader to say so at once.
const REQUIRE_LEADER: &str = "hasleader";
/// What a learner says to nearly everything.
const IS_LEARNER: &str = "etcdserver: rpc not supported for learner";
/// A key that nobody has: reading it costs a majority's agreement and nothing else.
const NO_KEY: &[u8] = b"\0windlass";

/// Asks the members of real clusters.
#[derive(Clone, Copy, Debug, Default)]
pub struct EtcdClient {
    _private: (),
}

/// How a question to one member ended.
enum Failed {
    /// There was no connection.
    Unreachable(String),
    /// It was sent, and its answer is an error, or there is none.
    Answered(EtcdError),
    /// The member only learns.
    Learner,
}

impl EtcdClient {
    /// Writes a key; returns when a majority has it.
    pub async fn put(&self, endpoint: &str, key: &str, value: &str) -> Result<(), EtcdError> {
        let put = wire::PutRequest {
            key: key.into(),
            value: value.into(),
        };
        let asked = ask(endpoint, Call::Put, put, true).await;
        asked.map(drop).map_err(|failed| failed.of(Call::Put))
    }

    /// The value of a key, as a majority knows it.
    pub async fn get(&self, endpoint: &str, key: &str) -> Result<Option<String>, EtcdError> {
        let get = wire::RangeRequest {
            key: key.into(),
            count_only: false,
        };
        let asked = ask(endpoint, Call::Get, get, true).await;
        let found = asked.map_err(|failed| failed.of(Call::Get))?;
        let value = found.kvs.into_iter().next().map(|found| found.value);
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }
}

#[async_trait]
impl Etcd for EtcdClient {
    async fn members(&self, endpoints: &[String]) -> Result<Membership, EtcdError> {
        first(endpoints, Call::Members, members_of).await
    }

    async fn status(&self, endpoint: &str) -> Result<MemberStatus, EtcdError> {
        let asked = ask(endpoint, Call::Status, wire::StatusRequest {}, false).await;
        let status = asked.map_err(|failed| failed.of(Call::Status))?;
        let header = status.header.unwrap_or_default();
        Ok(MemberStatus {
            cluster_id: header.cluster_id,
            member_id: header.member_id,
            leader: Some(status.leader).filter(|leader| *leader != 0),
            revision: header.revision,
            raft_term: status.raft_term,
            raft_index: status.raft_index,
            applied_index: status.raft_applied_index,
            db_size: status.db_size,
            version: status.version,
            learner: status.is_learner,
            errors: status.errors,
        })
    }

    async fn add_member(
        &self,
        endpoints: &[String],
        peer_urls: &[String],
        learner: bool,
    ) -> Result<Member, EtcdError> {
        let add = wire::MemberAddRequest {
            peer_urls: peer_urls.to_vec(),
            is_learner: learner,
        };
        let call = Call::AddMember;
        let added = first(endpoints, call, |endpoint: String| {
            let question = add.clone();
            async move { ask(&endpoint, call, question, true).await }
        });
        let member = added.await?.member.unwrap_or_default();
        Ok(member.into())
    }

    async fn promote_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError> {
        let (call, promote) = (Call::PromoteMember, wire::MemberPromoteRequest { id });
        let promoted = first(endpoints, call, |endpoint: String| {
            let question = promote.clone();
            async move { ask(&endpoint, call, question, true).await }
        });
        promoted.await.map(drop)
    }

    async fn remove_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError> {
        let (call, remove) = (Call::RemoveMember, wire::MemberRemoveRequest { id });
        let removed = first(endpoints, call, |endpoint: String| {
            let question = remove.clone();
            async move { ask(&endpoint, call, question, true).await }
        });
        removed.await.map(drop)
    }

    async fn move_leader(&self, leader_endpoint: &str, to: u64) -> Result<(), EtcdError> {
        let (call, r#move) = (Call::MoveLeader, wire::MoveLeaderRequest { target_id: to });
        let asked = ask(leader_endpoint, call, r#move, true).await;
        asked.map(drop).map_err(|failed| failed.of(call))
    }

    async fn snapshot(&self, endpoint: &str) -> Result<Snapshot, EtcdError> {
        let call = Call::Snapshot;
        let channel = connect(endpoint).await.map_err(|failed| failed.of(call))?;
        let sent = async {
            let mut grpc = Grpc::new(channel);
            let ready = grpc.ready().await;
            ready.map_err(|error| Status::from_error(error.into()))?;
            let path = PathAndQuery::from_static(wire::SnapshotRequest::PATH);
            let codec: ProstCodec<wire::SnapshotRequest, wire::SnapshotResponse> =
                ProstCodec::default();
            let request = Request::new(wire::SnapshotRequest {});
            grpc.server_streaming(request, path, codec).await
        };
        let stream = match timeout(READ, sent).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => return Err(error_of(call, &status)),
            Err(_) => return Err(EtcdError::no_answer(call, READ)),
        };
        let chunks = stream.map(move |message| match message {
            Ok(message) => Ok(Chunk {
                remaining: message.remaining_bytes,
                blob: message.blob,
            }),
            Err(status) => Err(error_of(call, &status)),
        });
        Ok(chunks.boxed())
    }
}

/// The members as one of them knows them that has just heard from a majority.
///
/// Etcd 3.4 answers from its own memory whatever is asked for. A read that a majority agrees to
/// goes before, at the same member: what was acknowledged until then is in its memory afterwards.
async fn members_of(endpoint: String) -> Result<Membership, Failed> {
    let read = wire::RangeRequest {
        key: NO_KEY.to_vec(),
        count_only: true,
    };
    ask(&endpoint, Call::Members, read, true).await?;
    let list = wire::MemberListRequest { linearizable: true };
    let list = ask(&endpoint, Call::Members, list, true).await?;
    let mut members: Vec<Member> = list.members.into_iter().map(Member::from).collect();
    members.sort_by_key(|member| member.id);
    Ok(Membership {
        cluster_id: list.header.unwrap_or_default().cluster_id,
        members,
    })
}

/// The answer of the first member that can give one. What may have been carried out is not asked a
/// second time.
async fn first<T, F: Future<Output = Result<T, Failed>> + Send>(
    endpoints: &[String],
    call: Call,
    ask: impl Fn(String) -> F,
) -> Result<T, EtcdError> {
    let mut unreachable = Vec::new();
    let mut worse: Option<EtcdError> = None;
    for endpoint in endpoints {
        match ask(endpoint.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(Failed::Unreachable(reason)) => unreachable.push(reason),
            Err(Failed::Learner) => unreachable.push(format!("{endpoint} is a learner")),
            Err(Failed::Answered(error)) => {
                let passing = match error {
                    EtcdError::NoQuorum { .. } => true,
                    EtcdError::TimedOut { .. } => !call.changes(),
                    _ => false,
                };
                if !passing {
                    return Err(error);
                }
                worse = Some(error);
            }
        }
    }
    Err(worse.unwrap_or_else(|| Failed::Unreachable(unreachable.join("; ")).of(call)))
}

/// Asks one member.
async fn ask<R: Rpc>(
    endpoint: &str,
    call: Call,
    question: R,
    needs_leader: bool,
) -> Result<R::Answer, Failed> {
    let channel = connect(endpoint).await?;
    let within = if call.changes() { CHANGE } else { READ };
    let mut request = Request::new(question);
    request.set_timeout(within.saturating_sub(LISTEN));
    if needs_leader {
        let yes = MetadataValue::from_static("true");
        request.metadata_mut().insert(REQUIRE_LEADER, yes);
    }
    let sent = async {
        let mut grpc = Grpc::new(channel);
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::from_error(error.into()))?;
        let (path, codec) = (PathAndQuery::from_static(R::PATH), ProstCodec::default());
        grpc.unary(request, path, codec).await
    };
    match timeout(within, sent).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) if status.message() == IS_LEARNER => Err(Failed::Learner),
        Ok(Err(status)) => Err(Failed::Answered(error_of(call, &status))),
        Err(_) => Err(Failed::Answered(EtcdError::no_answer(call, within))),
    }
}

async fn connect(endpoint: &str) -> Result<Channel, Failed> {
    let unreachable = |error: tonic::transport::Error| {
        let cause = error.source().map(ToString::to_string);
        let text = cause.unwrap_or_else(|| error.to_string());
        Failed::Unreachable(format!("{endpoint}: {text}"))
    };
    let made = Endpoint::from_shared(endpoint.to_owned()).map_err(unreachable)?;
    match timeout(CONNECT, made.connect()).await {
        Ok(connected) => connected.map_err(unreachable),
        Err(_) => Err(Failed::Unreachable(format!(
            "{endpoint}: no connection within {CONNECT:?}"
        ))),
    }
}

/// What a failed call means. What has a cause on this side was no answer of etcd.
fn error_of(call: Call, status: &Status) -> EtcdError {
    if let Some(cause) = status.source() {
        let message = format!("the connection broke: {cause}");
        return EtcdError::TimedOut { call, message };
    }
    EtcdError::answered(call, status.code() as i32, status.message())
}

impl Failed {
    fn of(self, call: Call) -> EtcdError {
        match self {
            Self::Unreachable(message) => EtcdError::Unreachable { call, message },
            Self::Learner => EtcdError::Other {
                call,
                code: tonic::Code::FailedPrecondition as i32,
                message: IS_LEARNER.to_owned(),
            },
            Self::Answered(error) => error,
        }
    }
}

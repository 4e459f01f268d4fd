//! Calls: the operator's, and those of a client that reads and writes keys.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_operator::etcd::{
    Call, Chunk, Etcd, EtcdError, Member, MemberStatus, Membership, Snapshot,
};
use futures::StreamExt;
use futures::stream;
use tokio::time::sleep;
use windlass_cluster::Fate;

use super::log::Change;
use super::{Process, State, Version, World};
use crate::database::snapshot_of;

/// How long a caller waits for the answer to a question, and to a change: as the real client does.
const READ: Duration = Duration::from_secs(4);
const CHANGE: Duration = Duration::from_secs(10);
/// A database is never smaller.
const EMPTY_DB: i64 = 20480;
/// The length of the hash at the end of a snapshot, and of the messages it comes in.
const HASH: usize = 32;
const BLOB: usize = 32 * 1024;
const UNAVAILABLE: i32 = 14;
const FAILED_PRECONDITION: i32 = 9;
/// What a learner says to nearly everything.
const IS_LEARNER: &str = "etcdserver: rpc not supported for learner";

/// What is at an endpoint.
enum Door {
    Closed,
    Hanging,
    Open(String),
}

impl World {
    /// Writes a key at one member; returns when a majority has it.
    pub(crate) async fn put(&self, at: &str, key: &str, value: &str) -> Result<(), EtcdError> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.quorum(
            Call::Put,
            Fate::Answered,
            &[at.to_owned()],
            move |state, at| {
                state.commit(at, Change::Put { key, value });
                Ok(())
            },
        )
        .await
    }

    /// The value of a key, as a majority knows it.
    pub(crate) async fn get(&self, at: &str, key: &str) -> Result<Option<String>, EtcdError> {
        self.quorum(Call::Get, Fate::Answered, &[at.to_owned()], |state, at| {
            Ok(state.folder_of(at).log.key(key).cloned())
        })
        .await
    }

    /// Carries out a call that needs a majority, at the first member that has one.
    async fn quorum<T>(
        &self,
        call: Call,
        fate: Fate,
        endpoints: &[String],
        carry_out: impl FnOnce(&mut State, &str) -> Result<T, EtcdError>,
    ) -> Result<T, EtcdError> {
        let within = if call.changes() { CHANGE } else { READ };
        let lost = |message: &str| EtcdError::TimedOut {
            call,
            message: message.to_owned(),
        };
        let one_of_many = !matches!(call, Call::Put | Call::Get | Call::MoveLeader);
        let latency = self.lock().pace.call;
        sleep(latency).await;
        if fate == Fate::CallLost {
            sleep(within).await;
            return Err(lost("the call got lost"));
        }
        let (mut closed, mut worse) = (Vec::new(), None);
        for endpoint in endpoints {
            let door = self.present().door(endpoint);
            match door {
                Door::Closed => closed.push(format!("{endpoint}: connection refused")),
                Door::Hanging => {
                    sleep(within).await;
                    worse = Some(lost("no answer"));
                    if call.changes() {
                        break;
                    }
                }
                Door::Open(at) => {
                    let serves = self.present().serves(call, &at);
                    match serves {
                        Ok(true) => {
                            let done = {
                                let mut state = self.present();
                                let done = carry_out(&mut state, &at);
                                if call.changes() && call != Call::Put {
                                    let folder = state.processes[&at].folder.clone();
                                    state.touch(&folder);
                                    state.catch_up();
                                    self.changed.notify_one();
                                }
                                done
                            };
                            if fate == Fate::CallerKilled {
                                self.fates.kill().await;
                            }
                            if fate == Fate::AnswerLost && done.is_ok() {
                                sleep(within).await;
                                return Err(lost("the answer got lost"));
                            }
                            return done;
                        }
                        // Others may do.
                        Ok(false) if one_of_many => closed.push(format!("{endpoint} is a learner")),
                        Ok(false) => {
                            worse =
                                Some(EtcdError::answered(call, FAILED_PRECONDITION, IS_LEARNER));
                        }
                        Err(error) => worse = Some(error),
                    }
                }
            }
        }
        if fate == Fate::CallerKilled {
            self.fates.kill().await;
        }
        let message = closed.join("; ");
        Err(worse.unwrap_or(EtcdError::Unreachable { call, message }))
    }
}

impl State {
    fn door(&self, endpoint: &str) -> Door {
        if self.hanging.iter().any(|part| endpoint.contains(part)) {
            return Door::Hanging;
        }
        let endpoint = endpoint.trim_end_matches('/');
        let found = self.processes.iter().find(|(_, process)| {
            let is_it = process.arguments.client_url == endpoint || process.address == endpoint;
            process.is_reachable() && is_it
        });
        match found {
            None => Door::Closed,
            // Who starts without a leader has nobody to tell its name.
            Some((_, process)) if !process.ready && !self.is_led(process) => Door::Hanging,
            Some((key, _)) => Door::Open(key.clone()),
        }
    }

    /// Whether the cluster of a process has a leader, whoever knows of it.
    fn is_led(&self, process: &Process) -> bool {
        let folder = self.folders.get(&process.folder);
        let cluster = folder.and_then(|folder| self.clusters.get(&folder.cluster));
        cluster.is_some_and(|cluster| cluster.leader.is_some())
    }

    /// Whether a member serves calls that need a majority: a learner does not.
    fn serves(&self, call: Call, at: &str) -> Result<bool, EtcdError> {
        let (process, folder) = (&self.processes[at], self.folder_of(at));
        let own = folder.log.member(folder.member);
        if own.is_some_and(|own| own.learner) {
            return Ok(false);
        }
        if self.leader_seen_by(process).is_none() {
            let text = "etcdserver: no leader";
            return Err(EtcdError::answered(call, UNAVAILABLE, text));
        }
        Ok(true)
    }

    fn snapshot(&self, at: &str) -> Vec<u8> {
        let line = match self.version {
            Version::V3_4 => "3.4.0",
            Version::V3_6 => "3.6.0",
        };
        snapshot_of(&self.folder_of(at).log.puts(), line)
    }

    fn status(&self, at: &str) -> MemberStatus {
        let process = &self.processes[at];
        let folder = self.folder_of(at);
        let leader = self.leader_seen_by(process);
        let own = folder.log.member(folder.member);
        MemberStatus {
            cluster_id: folder.cluster,
            member_id: folder.member,
            leader,
            revision: folder.log.revision(),
            raft_term: self.clusters.get(&folder.cluster).map_or(0, |one| one.term),
            raft_index: folder.log.len(),
            applied_index: folder.log.len(),
            db_size: EMPTY_DB,
            version: match self.version {
                Version::V3_4 => "3.4.23".to_owned(),
                Version::V3_6 => "3.6.16".to_owned(),
            },
            learner: own.is_some_and(|own| own.learner),
            errors: match leader {
                Some(_) => Vec::new(),
                None => vec!["etcdserver: no leader".to_owned()],
            },
        }
    }
}

#[async_trait]
impl Etcd for World {
    async fn members(&self, endpoints: &[String]) -> Result<Membership, EtcdError> {
        let fate = self.fates.of(Call::Members);
        self.quorum(Call::Members, fate, endpoints, |state, at| {
            let folder = state.folder_of(at);
            Ok(Membership {
                cluster_id: folder.cluster,
                members: folder.log.members().cloned().collect(),
            })
        })
        .await
    }

    async fn status(&self, endpoint: &str) -> Result<MemberStatus, EtcdError> {
        let call = Call::Status;
        let fate = self.fates.of(call);
        let latency = self.lock().pace.call;
        sleep(latency).await;
        let door = self.present().door(endpoint);
        let answer = match door {
            Door::Closed => Err(EtcdError::Unreachable {
                call,
                message: format!("{endpoint}: connection refused"),
            }),
            Door::Hanging => {
                sleep(READ).await;
                Err(EtcdError::TimedOut {
                    call,
                    message: "no answer".to_owned(),
                })
            }
            Door::Open(at) => Ok(self.present().status(&at)),
        };
        if fate == Fate::CallerKilled {
            self.fates.kill().await;
        }
        answer
    }

    async fn add_member(
        &self,
        endpoints: &[String],
        peer_urls: &[String],
        learner: bool,
    ) -> Result<Member, EtcdError> {
        let fate = self.fates.of(Call::AddMember);
        self.quorum(Call::AddMember, fate, endpoints, |state, at| {
            state.add(at, peer_urls, learner)
        })
        .await
    }

    async fn promote_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError> {
        let fate = self.fates.of(Call::PromoteMember);
        self.quorum(Call::PromoteMember, fate, endpoints, |state, at| {
            state.promote(at, id)
        })
        .await
    }

    async fn remove_member(&self, endpoints: &[String], id: u64) -> Result<(), EtcdError> {
        let fate = self.fates.of(Call::RemoveMember);
        self.quorum(Call::RemoveMember, fate, endpoints, |state, at| {
            state.remove(at, id)
        })
        .await
    }

    async fn move_leader(&self, leader_endpoint: &str, to: u64) -> Result<(), EtcdError> {
        let fate = self.fates.of(Call::MoveLeader);
        let endpoints = [leader_endpoint.to_owned()];
        self.quorum(Call::MoveLeader, fate, &endpoints, |state, at| {
            state.move_leader(at, to)
        })
        .await
    }

    async fn snapshot(&self, endpoint: &str) -> Result<Snapshot, EtcdError> {
        let call = Call::Snapshot;
        let fate = self.fates.of(call);
        let latency = self.lock().pace.call;
        sleep(latency).await;
        let door = self.present().door(endpoint);
        let file = match door {
            Door::Closed => {
                return Err(EtcdError::Unreachable {
                    call,
                    message: format!("{endpoint}: connection refused"),
                });
            }
            Door::Hanging => {
                sleep(READ).await;
                return Err(EtcdError::TimedOut {
                    call,
                    message: "no answer".to_owned(),
                });
            }
            Door::Open(at) => self.present().snapshot(&at),
        };
        if fate == Fate::CallerKilled {
            self.fates.kill().await;
        }
        // What gets lost is the end of it: the member, or the way to it, breaks down.
        let whole = fate != Fate::CallLost && fate != Fate::AnswerLost;
        let database = file.len() - HASH;
        let chunks = file[..database].chunks(BLOB).scan(database, |left, blob| {
            *left -= blob.len();
            Some((*left, blob.to_vec()))
        });
        let mut chunks: Vec<(usize, Vec<u8>)> = chunks.collect();
        chunks.push((0, file[database..].to_vec()));
        if !whole {
            chunks.truncate(chunks.len() / 2);
        }
        let chunks = chunks.into_iter().map(|(remaining, blob)| {
            Ok(Chunk {
                remaining: remaining as u64,
                blob: Bytes::from(blob),
            })
        });
        Ok(stream::iter(chunks.collect::<Vec<_>>()).boxed())
    }
}

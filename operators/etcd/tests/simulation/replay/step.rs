//! Steps, and what is compared of the answers to them.

use std::collections::BTreeMap;

use etcd_operator::etcd::{EtcdError, MemberStatus, Membership};

use crate::real::free_ports;
use crate::world::Arguments;

/// How many members there can be.
pub(super) const SLOTS: usize = 4;

/// Something that is done to a cluster. A slot is a member's place: its URLs and its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Starts a process: as a new cluster of its own, or with the members there are; with a stale
    /// list it is told of itself and the first one only.
    Start {
        slot: usize,
        existing: bool,
        stale: bool,
    },
    /// Starts a process without any members to begin or join with, as a member that has joined.
    Rejoin {
        slot: usize,
    },
    Stop {
        slot: usize,
    },
    /// Loses a folder.
    Wipe {
        slot: usize,
    },
    Add {
        slot: usize,
        learner: bool,
    },
    Promote {
        slot: usize,
    },
    Remove {
        slot: usize,
    },
    MoveLeader {
        slot: usize,
    },
    List,
    Status {
        slot: usize,
    },
    Put,
    Get,
}

/// A step and its answer.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) step: Step,
    pub(super) answer: String,
}

/// Where members are reached, and what they are called: the same on both sides.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    token: String,
    ports: Vec<u16>,
}

impl Slots {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            token: format!("replay-{seed}"),
            ports: free_ports(2 * SLOTS),
        }
    }

    pub(super) fn peer(&self, slot: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[2 * slot])
    }

    pub(super) fn client(&self, slot: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[2 * slot + 1])
    }

    pub(super) fn clients(&self) -> Vec<String> {
        (0..SLOTS).map(|slot| self.client(slot)).collect()
    }

    /// The same, one of them last: who is removed may end before it has answered.
    pub(super) fn clients_before(&self, last: usize) -> Vec<String> {
        let mut slots: Vec<usize> = (0..SLOTS).filter(|slot| *slot != last).collect();
        slots.push(last);
        slots.into_iter().map(|slot| self.client(slot)).collect()
    }

    pub(super) fn name(slot: usize) -> String {
        format!("m{slot}")
    }

    /// The slot of a peer URL.
    pub(super) fn slot(&self, peer: &str) -> Option<usize> {
        (0..SLOTS).find(|slot| self.peer(*slot) == peer)
    }

    /// With what a process is started, of the members that it is told of.
    pub(super) fn arguments(&self, slot: usize, existing: bool, members: &[usize]) -> Arguments {
        let cluster = members
            .iter()
            .map(|slot| (Self::name(*slot), self.peer(*slot)));
        let cluster: BTreeMap<String, String> = cluster.collect();
        Arguments {
            name: Self::name(slot),
            token: self.token.clone(),
            existing,
            initial_cluster: cluster,
            peer_url: self.peer(slot),
            client_url: self.client(slot),
            data_dir: String::new(),
        }
    }

    /// Who is told of when a process starts, given who is in the membership.
    pub(super) fn told(slot: usize, existing: bool, stale: bool, members: &[usize]) -> Vec<usize> {
        let mut told: Vec<usize> = match (existing, stale) {
            (false, _) => vec![slot],
            (true, false) => members.to_vec(),
            (true, true) => vec![0, SLOTS - 1],
        };
        told.push(slot);
        told.sort_unstable();
        told.dedup();
        told
    }

    pub(super) fn tell_members(&self, told: &Result<Membership, EtcdError>) -> String {
        let told = match told {
            Ok(told) => told,
            Err(error) => return tell_error(error),
        };
        let mut members: Vec<String> = told
            .members
            .iter()
            .map(|member| {
                let slot = member.peer_urls.first().and_then(|url| self.slot(url));
                let learner = if member.learner { " learner" } else { "" };
                format!("{slot:?} named {:?}{learner}", member.name)
            })
            .collect();
        members.sort_unstable();
        format!("cluster {:x}: {}", told.cluster_id, members.join(", "))
    }
}

pub(super) fn tell_status(told: &Result<MemberStatus, EtcdError>) -> String {
    match told {
        Ok(told) => format!(
            "cluster {:x}, leader {}, learner {}, errors {:?}",
            told.cluster_id,
            told.leader.is_some(),
            told.learner,
            told.errors
        ),
        Err(error) => tell_error(error),
    }
}

pub(super) fn tell<T>(told: &Result<T, EtcdError>) -> String {
    match told {
        Ok(_) => "done".to_owned(),
        Err(error) => tell_error(error),
    }
}

/// The kind of error; what it says where etcd itself says it.
pub(super) fn tell_error(error: &EtcdError) -> String {
    match error {
        EtcdError::Unreachable { .. } => "Unreachable".to_owned(),
        EtcdError::TimedOut { .. } => "TimedOut".to_owned(),
        EtcdError::NoQuorum { .. } => "NoQuorum".to_owned(),
        other => other.to_string(),
    }
}

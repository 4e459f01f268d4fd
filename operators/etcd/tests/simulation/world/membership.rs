//! Changes of the membership: which are allowed, in the words of etcd, and the ids it gives.

use std::time::Duration;

use etcd_operator::etcd::{Call, EtcdError, Member};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::time::Instant;

use super::log::Change;
use super::{State, Version};

/// Who has been connected for so long counts as healthy.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);
/// As many learners as there may be.
const LEARNERS: usize = 1;

/// Codes of gRPC.
const FAILED_PRECONDITION: i32 = 9;
const NOT_FOUND: i32 = 5;
const UNAVAILABLE: i32 = 14;

/// The id of a member: with the second in which it was added, or without for the first ones.
pub(super) fn member_id(peer_url: &str, token: &str, second: Option<u64>) -> u64 {
    let second = second.map(|second| second.to_string()).unwrap_or_default();
    hash(format!("{peer_url}{token}{second}").as_bytes())
}

/// The id of a cluster that begins with these members, in the order of their ids.
pub(super) fn cluster_id(members: &[u64]) -> u64 {
    let bytes: Vec<u8> = members.iter().flat_map(|id| id.to_be_bytes()).collect();
    hash(&bytes)
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_be_bytes(first)
}

fn says(call: Call, code: i32, message: &str) -> EtcdError {
    EtcdError::answered(call, code, &format!("etcdserver: {message}"))
}

fn not_enough_started(call: Call) -> EtcdError {
    let text = "re-configuration failed due to not enough started members";
    says(call, FAILED_PRECONDITION, text)
}

fn unhealthy(call: Call) -> EtcdError {
    says(call, UNAVAILABLE, "unhealthy cluster")
}

fn not_found(call: Call) -> EtcdError {
    says(call, NOT_FOUND, "member not found")
}

impl State {
    /// Adds a member, asked of the member whose process this is.
    pub(super) fn add(
        &mut self,
        at: &str,
        peer_urls: &[String],
        learner: bool,
    ) -> Result<Member, EtcdError> {
        let call = Call::AddMember;
        let log = &self.folder_of(at).log;
        let voters = log.voters().count();
        let started = log.voters().filter(|member| member.has_started()).count();
        let alone = started == 1 && voters == 1;
        if !learner && !alone && started < voters.div_ceil(2) + 1 {
            return Err(not_enough_started(call));
        }
        let connected = self.connected_voters(at);
        let healthy = match self.version {
            Version::V3_4 => connected == voters,
            Version::V3_6 => alone || connected > voters.div_ceil(2),
        };
        if !healthy {
            return Err(unhealthy(call));
        }
        let second = self.began.elapsed().as_secs();
        let log = &self.folder_of(at).log;
        let id = member_id(&peer_urls.concat(), "", Some(second));
        if log.has_removed(id) || log.member(id).is_some() {
            return Err(says(call, FAILED_PRECONDITION, "member ID already exist"));
        }
        let taken = |member: &Member| member.peer_urls.iter().any(|url| peer_urls.contains(url));
        if log.members().any(taken) {
            return Err(says(call, FAILED_PRECONDITION, "Peer URLs already exists"));
        }
        let learners = log.members().filter(|member| member.learner).count();
        if learner && learners >= LEARNERS {
            let text = "too many learner members in cluster";
            return Err(says(call, FAILED_PRECONDITION, text));
        }
        let member = Member {
            id,
            name: String::new(),
            peer_urls: peer_urls.to_vec(),
            client_urls: Vec::new(),
            learner,
        };
        self.commit(at, Change::Add(member.clone()));
        Ok(member)
    }

    pub(super) fn promote(&mut self, at: &str, id: u64) -> Result<(), EtcdError> {
        let call = Call::PromoteMember;
        let folder = self.folder_of(at);
        let Some(member) = folder.log.member(id) else {
            return Err(not_found(call));
        };
        if !member.learner && member.has_started() {
            let text = "can only promote a learner member";
            return Err(says(call, FAILED_PRECONDITION, text));
        }
        // That it has caught up is asked first, also of a voter that never ran.
        let (cluster, length) = (folder.cluster, folder.log.len());
        let caught_up = self.process_of(cluster, id).is_some_and(|process| {
            self.folders[&self.processes[process].folder].log.len() * 10 >= length * 9
        });
        if !caught_up {
            let text = "can only promote a learner member which is in sync with leader";
            return Err(says(call, FAILED_PRECONDITION, text));
        }
        let log = &self.folder_of(at).log;
        let started = log.voters().filter(|member| member.has_started()).count();
        if started + 1 < log.voters().count().div_ceil(2) + 1 {
            return Err(not_enough_started(call));
        }
        self.commit(at, Change::Promote(id));
        Ok(())
    }

    pub(super) fn remove(&mut self, at: &str, id: u64) -> Result<(), EtcdError> {
        let call = Call::RemoveMember;
        let folder = self.folder_of(at);
        let (cluster, log) = (folder.cluster, &folder.log);
        let Some(member) = log.member(id) else {
            return Err(not_found(call));
        };
        if !member.learner {
            let left = || log.voters().filter(|member| member.id != id);
            let started = left().filter(|member| member.has_started()).count();
            if started < left().count() / 2 + 1 {
                return Err(not_enough_started(call));
            }
            let voters = log.voters().count();
            let is_up = self.process_of(cluster, id).is_some();
            if is_up && self.connected_voters(at) < 2 + (voters - 1) / 2 {
                return Err(unhealthy(call));
            }
        }
        self.commit(at, Change::Remove(id));
        Ok(())
    }

    pub(super) fn move_leader(&mut self, at: &str, to: u64) -> Result<(), EtcdError> {
        let call = Call::MoveLeader;
        let folder = self.folder_of(at);
        let cluster = folder.cluster;
        let (own, target) = (folder.member, folder.log.member(to).cloned());
        let leads = |id| {
            self.clusters
                .get(&cluster)
                .is_some_and(|one| one.leader == Some(id))
        };
        if !leads(own) {
            return Err(says(call, FAILED_PRECONDITION, "not leader"));
        }
        if target.is_none_or(|member| member.learner) {
            return Err(says(call, FAILED_PRECONDITION, "bad leader transferee"));
        }
        if own == to {
            return Ok(());
        }
        if self.process_of(cluster, to).is_none() {
            let text = "request timed out, leader transfer took too long";
            return Err(says(call, UNAVAILABLE, text));
        }
        self.elect(cluster, to);
        Ok(())
    }

    /// How many voters the member has been connected with for long enough, itself included.
    fn connected_voters(&self, at: &str) -> usize {
        let folder = self.folder_of(at);
        let (now, own) = (Instant::now(), self.processes[at].connected);
        let connected = |member: &&Member| {
            let process = self.process_of(folder.cluster, member.id);
            let since = process.map(|key| self.processes[key].connected.max(own));
            member.id == folder.member
                || since.is_some_and(|since| now.duration_since(since) >= HEALTHY_AFTER)
        };
        folder.log.voters().filter(connected).count()
    }
}

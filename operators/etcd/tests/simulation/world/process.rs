//! Processes: how a member starts, with which folder it goes on as whom, and how it ends.

use tokio::time::Instant;

use super::arguments::Arguments;
use super::log::{Change, Log};
use super::membership::{cluster_id, member_id};
use super::{Folder, State};
use etcd_operator::etcd::Member;

/// How a process ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) message: String,
}

/// How a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Health {
    /// It does not run, or nobody can reach it.
    Gone,
    /// It runs and has no leader, or has not joined the others yet.
    Alone,
    /// It serves.
    Serving,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) folder: String,
    pub(super) arguments: Arguments,
    /// Where clients find it, beside the URL that it tells.
    pub(super) address: String,
    /// Since when others are connected with it.
    pub(super) connected: Instant,
    /// From when on it has what the others have.
    pub(super) joined: Instant,
    /// Whether that time has come.
    pub(super) has_joined: bool,
    /// Whether it has told its name since it started: before that it answers nobody.
    pub(super) ready: bool,
    pub(super) cut: bool,
    pub(super) exit: Option<Exit>,
}

impl Process {
    /// Whether others can reach it.
    pub(super) fn is_reachable(&self) -> bool {
        !self.cut && self.exit.is_none()
    }
}

fn exit(code: i32, message: impl Into<String>) -> Exit {
    Exit {
        code,
        message: message.into(),
    }
}

impl State {
    pub(super) fn start(
        &mut self,
        process: &str,
        folder: &str,
        arguments: Arguments,
        address: &str,
    ) -> Result<(), Exit> {
        let now = Instant::now();
        let mut joined = now;
        let known = self.folders.get(folder);
        if known.is_some_and(|known| known.corrupt) {
            return Err(exit(2, "panic: the data folder is corrupt"));
        }
        if known.is_none() {
            if arguments.initial_cluster.get(&arguments.name) != Some(&arguments.peer_url) {
                let name = &arguments.name;
                let text = format!(
                    "couldn't find local name {name:?} in the initial cluster configuration"
                );
                return Err(exit(1, text));
            }
            let made = if arguments.existing {
                joined += self.pace.joining;
                self.join(&arguments)?
            } else {
                self.begin(&arguments)?
            };
            self.folders.insert(folder.to_owned(), made);
        }
        let started = Process {
            folder: folder.to_owned(),
            arguments,
            address: address.to_owned(),
            connected: now,
            joined,
            has_joined: false,
            ready: false,
            cut: false,
            exit: None,
        };
        self.processes.insert(process.to_owned(), started);
        self.touch(folder);
        Ok(())
    }

    /// The folder of a member of a new cluster.
    fn begin(&mut self, arguments: &Arguments) -> Result<Folder, Exit> {
        let mut members: Vec<Member> = arguments
            .initial_cluster
            .iter()
            .map(|(name, url)| Member {
                id: member_id(url, &arguments.token, None),
                name: name.clone(),
                peer_urls: vec![url.clone()],
                client_urls: Vec::new(),
                learner: false,
            })
            .collect();
        members.sort_by_key(|member| member.id);
        let own = member_id(&arguments.peer_url, &arguments.token, None);
        let others = self.peers_of(arguments);
        let there = others.iter().any(|folder| {
            let member = folder.log.member(own);
            member.is_some_and(|member| !member.client_urls.is_empty())
        });
        if there {
            let text = format!("member {own:x} has already been bootstrapped");
            return Err(exit(1, text));
        }
        let ids: Vec<u64> = members.iter().map(|member| member.id).collect();
        let mut log = Log::default();
        for member in members {
            log.append(1, Change::Add(member));
        }
        self.begun.push(arguments.token.clone());
        Ok(Folder {
            cluster: cluster_id(&ids),
            member: own,
            log,
            corrupt: false,
        })
    }

    /// A folder that was made from a snapshot, as the only member of another cluster; one that is
    /// there stays as it is.
    pub(super) fn restore(
        &mut self,
        folder: &str,
        arguments: &Arguments,
        puts: &[(String, String)],
    ) {
        if self.folders.contains_key(folder) {
            return;
        }
        let id = member_id(&arguments.peer_url, &arguments.token, None);
        let mut log = Log::default();
        log.append(
            1,
            Change::Add(Member {
                id,
                name: arguments.name.clone(),
                peer_urls: vec![arguments.peer_url.clone()],
                client_urls: Vec::new(),
                learner: false,
            }),
        );
        for (key, value) in puts {
            let (key, value) = (key.clone(), value.clone());
            log.append(1, Change::Put { key, value });
        }
        let made = Folder {
            cluster: cluster_id(&[id]),
            member: id,
            log,
            corrupt: false,
        };
        self.folders.insert(folder.to_owned(), made);
    }

    /// The folder of a member that joins a cluster which knows of it.
    fn join(&mut self, arguments: &Arguments) -> Result<Folder, Exit> {
        let peers = self.peers_of(arguments);
        let Some(peer) = peers.first() else {
            let text = "cannot fetch cluster info from peer urls: could not retrieve cluster \
                        information from the given URLs";
            return Err(exit(1, text));
        };
        let members: Vec<&Member> = peer.log.members().collect();
        if members.len() != arguments.initial_cluster.len() {
            let text = "error validating peerURLs: member count is unequal";
            return Err(exit(1, text));
        }
        let listed = |member: &&Member| {
            let mut urls = arguments.initial_cluster.values();
            urls.any(|url| member.peer_urls.contains(url))
        };
        if !members.iter().all(listed) {
            let text = "error validating peerURLs: unmatched member while checking PeerURLs";
            return Err(exit(1, text));
        }
        let own = |member: &&&Member| member.peer_urls.contains(&arguments.peer_url);
        let Some(own) = members.iter().find(own) else {
            return Err(exit(1, "error validating peerURLs: it is not a member"));
        };
        Ok(Folder {
            cluster: peer.cluster,
            member: own.id,
            log: Log::default(),
            corrupt: false,
        })
    }

    /// The folders of the other members of an initial cluster that can be asked.
    fn peers_of(&self, arguments: &Arguments) -> Vec<&Folder> {
        let mut urls = arguments.initial_cluster.values();
        let mut peers = Vec::new();
        for url in urls.by_ref().filter(|url| **url != arguments.peer_url) {
            let process = self
                .processes
                .values()
                .find(|process| process.is_reachable() && process.arguments.peer_url == *url);
            let folder = process.and_then(|process| self.folders.get(&process.folder));
            // One that has not joined yet knows nothing.
            peers.extend(folder.filter(|folder| folder.log.members().next().is_some()));
        }
        peers
    }

    pub(super) fn health(&self, process: &str) -> Health {
        let Some(process) = self.processes.get(process).filter(|one| one.is_reachable()) else {
            return Health::Gone;
        };
        match self.leader_seen_by(process) {
            Some(_) => Health::Serving,
            None => Health::Alone,
        }
    }
}

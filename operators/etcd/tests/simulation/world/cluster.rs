//! Clusters: who leads, who follows, and what becomes of those that were removed.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::log::Change;
use super::process::{Exit, Process};
use super::{Folder, State};

/// Who leads the members of one cluster id.
#[derive(Clone, Debug, Default)]
pub(super) struct Leadership {
    pub(super) leader: Option<u64>,
    pub(super) term: u64,
    /// Members that this leader has heard from: it remembers how far they were.
    heard: BTreeSet<u64>,
    /// When those that are left choose another.
    election: Option<Instant>,
}

impl State {
    /// Lets everything happen that is due by now.
    pub(super) fn catch_up(&mut self) {
        let now = Instant::now();
        let mut due = std::mem::take(&mut self.touched);
        let elections = self.clusters.iter().filter(|(_, one)| {
            let election = one.election;
            election.is_some_and(|at| at <= now)
        });
        due.extend(elections.map(|(id, _)| *id));
        for process in self.processes.values_mut().filter(|one| !one.has_joined) {
            if process.joined <= now {
                process.has_joined = true;
                due.extend(
                    self.folders
                        .get(&process.folder)
                        .map(|folder| folder.cluster),
                );
            }
        }
        self.epoch += u64::from(!due.is_empty());
        for cluster in due {
            self.bring_up_to_date(cluster);
        }
    }

    /// Something happened to the cluster of a folder.
    pub(super) fn touch(&mut self, folder: &str) {
        let cluster = self.folders.get(folder).map(|folder| folder.cluster);
        self.touched.extend(cluster);
    }

    fn bring_up_to_date(&mut self, cluster: u64) {
        let now = Instant::now();
        let leadership = self.clusters.entry(cluster).or_default().clone();
        if let Some(leader) = leadership.leader
            && !self.has_majority(cluster, leader)
        {
            let at = now + self.pace.election;
            let lost = self.clusters.entry(cluster).or_default();
            (lost.leader, lost.election) = (None, Some(at));
        }
        if self.clusters[&cluster].leader.is_none() {
            let Some(next) = self.candidate(cluster) else {
                // Whoever comes back has to wait for the others again.
                self.clusters.entry(cluster).or_default().election = None;
                return;
            };
            // A member that is its own majority waits for nobody.
            let alone = self.folder_of_member(cluster, next).log.voters().count() == 1;
            let pace = self.pace.election;
            let leadership = self.clusters.entry(cluster).or_default();
            let at = *leadership.election.get_or_insert(now + pace);
            if !alone && now < at {
                return;
            }
            self.elect(cluster, next);
        }
        self.replicate(cluster);
    }

    /// Makes a member the leader.
    pub(super) fn elect(&mut self, cluster: u64, leader: u64) {
        let leadership = self.clusters.entry(cluster).or_default();
        leadership.leader = Some(leader);
        leadership.election = None;
        leadership.heard.clear();
        leadership.term = leadership.term.max(1) + 1;
        if let Some(key) = self.process_of(cluster, leader).map(str::to_owned) {
            self.commit(&key, Change::Lead);
        }
    }

    /// Who may lead: a voter that reaches a majority, and that knows as much as any of them.
    fn candidate(&self, cluster: u64) -> Option<u64> {
        let reachable = self.running(cluster);
        let folders = reachable.map(|(_, process)| &self.folders[&process.folder]);
        let may = |folder: &&Folder| {
            let own = folder.log.member(folder.member);
            own.is_some_and(|own| !own.learner) && self.has_majority(cluster, folder.member)
        };
        let eldest = folders.filter(may).max_by_key(|folder| {
            // Of those that know the same, the one with the least id: nothing is left to chance.
            (folder.log.age(), std::cmp::Reverse(folder.member))
        });
        eldest.map(|folder| folder.member)
    }

    /// Whether a member runs, has a vote and reaches a majority of the voters it knows of.
    fn has_majority(&self, cluster: u64, id: u64) -> bool {
        let Some(key) = self.process_of(cluster, id) else {
            return false;
        };
        let log = &self.folder_of(key).log;
        let voters = log.voters().count();
        let reached = log
            .voters()
            .filter(|member| self.process_of(cluster, member.id).is_some())
            .count();
        log.member(id).is_some_and(|own| !own.learner) && reached > voters / 2
    }

    /// Everybody learns what the leader knows, tells its name, and leaves when it was removed.
    fn replicate(&mut self, cluster: u64) {
        let now = Instant::now();
        let Some(leader) = self.clusters[&cluster].leader else {
            return;
        };
        let Some(leader) = self.process_of(cluster, leader).map(str::to_owned) else {
            return;
        };
        let running: Vec<String> = self
            .running(cluster)
            .map(|(key, _)| key.to_owned())
            .collect();
        let mut published = false;
        for key in &running {
            let process = &self.processes[key];
            let arguments = process.arguments.clone();
            let folder = &self.folders[&process.folder];
            let id = folder.member;
            let known = self.folder_of(&leader).log.clone();
            if known.has_removed(id) {
                self.end(
                    key,
                    0,
                    "the member has been permanently removed from the cluster",
                );
                continue;
            }
            let Some(member) = known.member(id) else {
                continue;
            };
            // A member that has forgotten what this leader has heard from it cannot go on.
            let heard = &self.clusters[&cluster].heard;
            if folder.log.len() == 0 && member.has_started() && heard.contains(&id) {
                self.end(key, 2, "panic: tocommit is out of range [lastIndex(0)]");
                continue;
            }
            if process.joined > now {
                continue;
            }
            let told = member.name == arguments.name
                && member.client_urls == [arguments.client_url.clone()];
            let own = self.processes[key].folder.clone();
            if *key != leader
                && let Some(folder) = self.folders.get_mut(&own)
            {
                folder.log.follow(&known);
            }
            self.clusters.entry(cluster).or_default().heard.insert(id);
            if let Some(process) = self.processes.get_mut(key) {
                process.ready |= told;
            }
            if !told {
                let publish = Change::Publish {
                    id,
                    name: arguments.name,
                    client_url: arguments.client_url,
                };
                self.commit(&leader, publish);
                published = true;
            }
        }
        if published {
            self.replicate(cluster);
        }
    }

    /// Appends to the log of the leader, and of everybody that follows it.
    pub(super) fn commit(&mut self, at: &str, change: Change) {
        let now = Instant::now();
        let cluster = self.folder_of(at).cluster;
        let leadership = self.clusters[&cluster].clone();
        let leader = leadership
            .leader
            .and_then(|id| self.process_of(cluster, id));
        let leader = leader.unwrap_or(at).to_owned();
        let folder = self.processes[&leader].folder.clone();
        if let Some(folder) = self.folders.get_mut(&folder) {
            folder.log.append(leadership.term, change);
        }
        let log = self.folders[&folder].log.clone();
        let followers: Vec<String> = self
            .running(cluster)
            .filter(|(key, process)| {
                let folder = &self.folders[&process.folder];
                let member = log.member(folder.member);
                // What was removed still hears of that.
                let is_one = member.is_some() || log.has_removed(folder.member);
                **key != leader && is_one && process.joined <= now && folder.log.len() > 0
            })
            .map(|(_, process)| process.folder.clone())
            .collect();
        for folder in followers {
            if let Some(folder) = self.folders.get_mut(&folder) {
                folder.log.follow(&log);
            }
        }
    }

    fn end(&mut self, key: &str, code: i32, message: &str) {
        if let Some(process) = self.processes.get_mut(key) {
            let message = message.to_owned();
            process.exit = Some(Exit { code, message });
        }
    }

    /// The leader that a process knows of.
    pub(super) fn leader_seen_by(&self, process: &Process) -> Option<u64> {
        let folder = self.folders.get(&process.folder)?;
        let leader = self.clusters.get(&folder.cluster)?.leader?;
        let knows = folder.log.member(folder.member).is_some() && process.is_reachable();
        knows.then_some(leader)
    }

    /// The processes of a cluster that reach each other.
    pub(super) fn running(&self, cluster: u64) -> impl Iterator<Item = (&String, &Process)> {
        self.processes.iter().filter(move |(_, process)| {
            let folder = self.folders.get(&process.folder);
            process.is_reachable() && folder.is_some_and(|folder| folder.cluster == cluster)
        })
    }

    /// The reachable process of a member.
    pub(super) fn process_of(&self, cluster: u64, id: u64) -> Option<&str> {
        let mut running = self.running(cluster);
        let found = running.find(|(_, process)| self.folders[&process.folder].member == id);
        found.map(|(key, _)| key.as_str())
    }

    /// The folder of a process that runs.
    pub(super) fn folder_of(&self, process: &str) -> &Folder {
        &self.folders[&self.processes[process].folder]
    }

    fn folder_of_member(&self, cluster: u64, id: u64) -> &Folder {
        let process = self.process_of(cluster, id).expect("a member that runs");
        self.folder_of(process)
    }

    /// When something will change by itself: an election, or a member that has joined.
    pub(super) fn next_change(&self) -> Option<Instant> {
        let now = Instant::now();
        let elections = self.clusters.values().filter_map(|one| one.election);
        let joining = self
            .processes
            .values()
            .filter(|process| !process.has_joined);
        let joining = joining.map(|process| process.joined);
        elections.chain(joining).filter(|at| *at > now).min()
    }
}

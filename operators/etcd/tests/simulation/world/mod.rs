//! [`World`]: a simulated etcd. Members without processes, in virtual time.
//!
//! A **folder** is the data of one member: who it is and its log. A **member** is a process that
//! was started with the arguments of etcd and one folder. All members of one cluster id whose
//! processes run and reach each other form that cluster; what a majority of them has in its logs is
//! what the cluster knows. A folder that is lost is lost, and so may be what only it had.
//!
//! Nothing here has a timer of its own: [`State::catch_up`] brings everything up to the present
//! whenever somebody looks. How it behaves is taken from real etcd, and compared with it by
//! `replay`.

mod arguments;
mod calls;
mod cluster;
mod fate;
mod log;
mod membership;
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_operator::etcd::Member;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use arguments::Arguments;
pub(crate) use fate::{Fair, Fates, OfReplay};
pub(crate) use process::{Exit, Health};

use cluster::Leadership;
use log::Log;
use process::Process;

/// Which etcd is simulated: versions differ in how careful they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 3.4: a member is added only while every voter is connected.
    V3_4,
    /// 3.6: a member is added while those that are connected keep the majority.
    V3_6,
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// A call, when all is well.
    pub(crate) call: Duration,
    /// From the loss of a leader until the next one.
    pub(crate) election: Duration,
    /// From the start of a member until it has what the others have.
    pub(crate) joining: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            call: Duration::from_millis(5),
            election: Duration::from_millis(1500),
            joining: Duration::from_millis(700),
        }
    }
}

/// A simulated etcd. Clones are the same one.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    fates: Arc<dyn Fates>,
    /// Told when something may have changed.
    changed: Arc<Notify>,
}

struct State {
    version: Version,
    pace: Pace,
    began: Instant,
    folders: BTreeMap<String, Folder>,
    processes: BTreeMap<String, Process>,
    clusters: BTreeMap<u64, Leadership>,
    /// Every `new` cluster that was ever begun, by the token it was given.
    begun: Vec<String>,
    /// Processes that have ended by themselves.
    ended: BTreeSet<String>,
    /// Clusters to which something has happened.
    touched: BTreeSet<u64>,
    /// How often something has happened.
    epoch: u64,
    /// Members whose calls hang, by a part of their endpoints.
    hanging: Vec<String>,
}

/// The data of one member.
#[derive(Clone, Debug)]
struct Folder {
    cluster: u64,
    member: u64,
    log: Log,
    corrupt: bool,
}

impl World {
    /// An empty world, in which calls end as `fates` says.
    pub(crate) fn new(version: Version, fates: Arc<dyn Fates>) -> Self {
        let state = State {
            version,
            pace: Pace::default(),
            began: Instant::now(),
            folders: BTreeMap::new(),
            processes: BTreeMap::new(),
            clusters: BTreeMap::new(),
            begun: Vec::new(),
            ended: BTreeSet::new(),
            touched: BTreeSet::new(),
            epoch: 0,
            hanging: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            fates,
            changed: Arc::default(),
        }
    }

    /// Waits until something may have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that everything that is due has happened.
    fn present(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.catch_up();
        state
    }

    /// Starts a process with these arguments and this folder, which clients find at this URL too; the
    /// error is how it ended at once.
    pub(crate) fn start(
        &self,
        process: &str,
        folder: &str,
        arguments: Arguments,
        address: &str,
    ) -> Result<(), Exit> {
        let mut state = self.present();
        let started = state.start(process, folder, arguments, address);
        state.catch_up();
        started
    }

    /// Makes a folder from a snapshot, for a process with these arguments.
    pub(crate) fn restore(&self, folder: &str, arguments: &Arguments, puts: &[(String, String)]) {
        self.present().restore(folder, arguments, puts);
    }

    /// Ends a process, as a kill does.
    pub(crate) fn stop(&self, process: &str) {
        let mut state = self.present();
        if let Some(process) = state.processes.remove(process) {
            state.touch(&process.folder);
        }
        state.catch_up();
        self.changed.notify_one();
    }

    /// Loses a folder, and whatever still runs on it.
    pub(crate) fn lose_folder(&self, folder: &str) {
        let mut state = self.present();
        state.touch(folder);
        state.folders.remove(folder);
        state
            .processes
            .retain(|_, process| process.folder != folder);
        state.catch_up();
    }

    /// Empties the folder of a process, which ends with it.
    pub(crate) fn empty_folder_of(&self, process: &str) {
        let state = self.present();
        let folder = state.processes.get(process).map(|one| one.folder.clone());
        drop(state);
        if let Some(folder) = folder {
            self.lose_folder(&folder);
        }
    }

    /// Spoils the folder of a process: nothing can be started on it any more.
    pub(crate) fn corrupt_folder_of(&self, process: &str) {
        let mut state = self.present();
        let folder = state.processes.get(process).map(|one| one.folder.clone());
        if let Some(folder) = folder.and_then(|folder| state.folders.get_mut(&folder)) {
            folder.corrupt = true;
        }
    }

    /// Makes the member of this name the leader.
    pub(crate) fn lead(&self, member: &str) {
        let mut state = self.present();
        let found = state
            .processes
            .values()
            .find(|one| one.arguments.name == member);
        let folder = found.and_then(|one| state.folders.get(&one.folder));
        if let Some((cluster, id)) = folder.map(|folder| (folder.cluster, folder.member)) {
            state.elect(cluster, id);
        }
    }

    /// Where the members are found whose URLs contain this text, as they tell it themselves.
    pub(crate) fn endpoints(&self, part: &str) -> Vec<String> {
        let state = self.lock();
        let urls = state
            .processes
            .values()
            .map(|one| &one.arguments.client_url);
        urls.filter(|url| url.contains(part)).cloned().collect()
    }

    /// What the leader among those members knows.
    fn known<T>(&self, part: &str, of: impl Fn(&Log) -> T) -> Option<T> {
        let state = self.present();
        let leader = state.processes.values().find(|one| {
            let leader = state.leader_seen_by(one);
            let own = state.folders.get(&one.folder).map(|folder| folder.member);
            one.arguments.client_url.contains(part) && leader.is_some() && leader == own
        });
        leader.map(|leader| of(&state.folders[&leader.folder].log))
    }

    /// How many of those members have a vote.
    pub(crate) fn voters(&self, part: &str) -> usize {
        self.known(part, |log| log.voters().count())
            .unwrap_or_default()
    }

    /// What was written to those members, in order.
    pub(crate) fn writes(&self, part: &str) -> Vec<String> {
        self.known(part, Log::writes).unwrap_or_default()
    }

    /// Cuts a process off from everybody, or lets it back.
    pub(crate) fn cut(&self, process: &str, cut: bool) {
        let mut state = self.present();
        if let Some(process) = state.processes.get_mut(process) {
            process.cut = cut;
            process.connected = Instant::now();
            let folder = process.folder.clone();
            state.touch(&folder);
        }
        state.catch_up();
        self.changed.notify_one();
    }

    /// Calls to endpoints that contain this text hang until their deadline.
    pub(crate) fn hang(&self, endpoints: &str) {
        self.lock().hanging.push(endpoints.to_owned());
    }

    /// Nothing hangs any more.
    pub(crate) fn hang_no_more(&self) {
        self.lock().hanging.clear();
    }

    /// How often something has happened: nothing has when it is the same.
    pub(crate) fn epoch(&self) -> u64 {
        self.present().epoch
    }

    /// Processes that have ended by themselves since this was asked last.
    pub(crate) fn ended(&self) -> Vec<(String, Exit)> {
        let mut state = self.present();
        let ended: Vec<(String, Exit)> = state
            .processes
            .iter()
            .filter_map(|(key, process)| Some((key.clone(), process.exit.clone()?)))
            .collect();
        for (key, _) in &ended {
            state.processes.remove(key);
            state.ended.insert(key.clone());
        }
        ended
    }

    /// Whether a process runs.
    pub(crate) fn runs(&self, process: &str) -> bool {
        let state = self.present();
        let found = state.processes.get(process);
        found.is_some_and(|process| process.exit.is_none())
    }

    /// The members, as the folder knows them that knows most.
    pub(crate) fn members_known(&self) -> Vec<Member> {
        let state = self.present();
        let eldest = state.folders.values().max_by_key(|folder| folder.log.age());
        eldest.map_or_else(Vec::new, |folder| folder.log.members().cloned().collect())
    }

    /// Whether a process has ended by itself.
    pub(crate) fn has_ended(&self, process: &str) -> bool {
        self.lock().ended.contains(process)
    }

    /// A process has ended before it was one.
    pub(crate) fn note_end(&self, process: &str) {
        self.lock().ended.insert(process.to_owned());
    }

    /// How a process is.
    pub(crate) fn health(&self, process: &str) -> Health {
        self.present().health(process)
    }

    /// When something may change by itself.
    pub(crate) fn next_change(&self) -> Option<Instant> {
        self.present().next_change()
    }

    /// The tokens of all clusters that were begun as new ones, in that order.
    pub(crate) fn begun(&self) -> Vec<String> {
        self.lock().begun.clone()
    }
}

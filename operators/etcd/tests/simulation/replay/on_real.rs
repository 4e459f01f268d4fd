//! Steps played on real processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcd_operator::etcd::{Etcd, EtcdClient, Member};
use tempfile::TempDir;
use tokio::time::sleep;

use super::step::{SLOTS, Slots, Step, tell, tell_error, tell_status};
use crate::real::{RealProcess, folder, until};
use crate::world::Arguments;

/// Members count as connected for long enough after five seconds.
const CONNECTED: Duration = Duration::from_secs(6);
/// How long a process is given to end, or to find a leader.
const PATIENCE: Duration = Duration::from_secs(12);
/// A leader that is lost is missed after this time, and another found.
const ELECTION: Duration = Duration::from_secs(3);

/// What a new voter knows is known to the leader after this time.
const PROMOTION: Duration = Duration::from_millis(700);

pub(super) struct Real {
    program: PathBuf,
    slots: Slots,
    place: TempDir,
    client: EtcdClient,
    processes: BTreeMap<usize, RealProcess>,
    /// The members as they were last listed by anybody.
    known: Vec<Member>,
    written: u32,
}

impl Real {
    pub(super) fn new(program: &Path, slots: Slots) -> Self {
        Self {
            program: program.to_owned(),
            slots,
            place: folder(),
            client: EtcdClient::default(),
            processes: BTreeMap::new(),
            known: Vec::new(),
            written: 0,
        }
    }

    fn folder(&self, slot: usize) -> PathBuf {
        self.place.path().join(Slots::name(slot))
    }

    fn id(&self, slot: usize) -> u64 {
        let peer = self.slots.peer(slot);
        let found = self.known.iter().find(|one| one.peer_urls.contains(&peer));
        found.map_or(1, |one| one.id)
    }

    /// Lists the members, for names to be found later.
    async fn look(&mut self) {
        if let Ok(told) = self.client.members(&self.slots.clients()).await {
            self.known = told.members;
        }
    }

    /// The last lines that each process has said.
    pub(super) fn logs(&self) -> String {
        let log = |slot: usize| {
            let path = self.folder(slot).with_extension("log");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(4).collect();
            format!("{}: {}", Slots::name(slot), lines.join("\n    "))
        };
        (0..SLOTS).map(log).collect::<Vec<_>>().join("\n")
    }

    fn has_exited(&mut self, slot: usize) -> Option<i32> {
        let code = self.processes.get_mut(&slot)?.exited()?;
        self.processes.remove(&slot);
        Some(code)
    }

    pub(super) async fn play(&mut self, step: &Step) -> String {
        let (clients, client) = (self.slots.clients(), self.client);
        match *step {
            Step::Start {
                slot,
                existing,
                stale,
            } => {
                self.look().await;
                let known = self.members();
                let told = Slots::told(slot, existing, stale, &known);
                self.start(slot, self.slots.arguments(slot, existing, &told))
                    .await
            }
            Step::Rejoin { slot } => {
                self.start(slot, self.slots.arguments(slot, true, &[]))
                    .await
            }
            Step::Stop { slot } => {
                if self.processes.remove(&slot).is_some() {
                    sleep(ELECTION).await;
                }
                "done".to_owned()
            }
            Step::Wipe { slot } => {
                if self.processes.contains_key(&slot) {
                    return "runs".to_owned();
                }
                let _ = std::fs::remove_dir_all(self.folder(slot));
                "done".to_owned()
            }
            Step::Add { slot, learner } => {
                let urls = [self.slots.peer(slot)];
                let added = client.add_member(&clients, &urls, learner).await;
                // Without a majority nobody would tell.
                self.known.extend(added.iter().cloned());
                self.look().await;
                tell(&added)
            }
            Step::Promote { slot } => {
                // A learner is sent the last entries, and says that it has them.
                sleep(PROMOTION).await;
                let promoted = client.promote_member(&clients, self.id(slot)).await;
                // For a moment the leader thinks that it knows nothing.
                sleep(PROMOTION).await;
                tell(&promoted)
            }
            Step::Remove { slot } => {
                let id = self.id(slot);
                let removed = client
                    .remove_member(&self.slots.clients_before(slot), id)
                    .await;
                if removed.is_ok() {
                    self.known.retain(|member| member.id != id);
                }
                let mut ended = false;
                if removed.is_ok() && self.processes.contains_key(&slot) {
                    ended = until(PATIENCE, async || self.has_exited(slot).is_some()).await;
                    sleep(ELECTION).await;
                }
                self.look().await;
                format!("{}, ended {ended}", tell(&removed))
            }
            Step::MoveLeader { slot } => {
                let mut leader = None;
                for url in &clients {
                    let status = client.status(url).await;
                    if status.is_ok_and(|status| status.leader == Some(status.member_id)) {
                        leader = Some(url);
                    }
                }
                match leader {
                    Some(leader) => tell(&client.move_leader(leader, self.id(slot)).await),
                    None => "no leader".to_owned(),
                }
            }
            Step::List => {
                let told = client.members(&clients).await;
                self.slots.tell_members(&told)
            }
            Step::Status { slot } => tell_status(&client.status(&clients[slot]).await),
            Step::Put => {
                self.written += 1;
                let value = self.written.to_string();
                let mut answers = Vec::new();
                for url in &clients {
                    answers.push(tell(&client.put(url, "key", &value).await));
                }
                answers.join(", ")
            }
            Step::Get => {
                let mut answers = Vec::new();
                for url in &clients {
                    let found = client.get(url, "key").await;
                    let told =
                        found.map_or_else(|error| tell_error(&error), |found| format!("{found:?}"));
                    answers.push(told);
                }
                answers.join(", ")
            }
        }
    }

    /// The slots of the members as they were last listed.
    fn members(&self) -> Vec<usize> {
        let known = self.known.iter();
        let slots = known.filter_map(|one| self.slots.slot(one.peer_urls.first()?));
        slots.collect()
    }

    async fn start(&mut self, slot: usize, arguments: Arguments) -> String {
        if self.processes.contains_key(&slot) {
            return "runs already".to_owned();
        }
        let process = RealProcess::start(&self.program, &self.folder(slot), &arguments);
        self.processes.insert(slot, process);
        let (client, url) = (self.client, self.slots.client(slot));
        let mut code = None;
        until(PATIENCE, async || {
            code = self.has_exited(slot);
            let status = client.status(&url).await;
            code.is_some() || status.is_ok_and(|status| status.leader.is_some())
        })
        .await;
        if code.is_none() {
            // Some end a while after they have started.
            sleep(CONNECTED).await;
            code = self.has_exited(slot);
        }
        self.look().await;
        // With which code is chance: whatever fails first while it ends.
        if code.is_some() { "exited" } else { "runs" }.to_owned()
    }
}

//! [`Log`]: what a member knows, as the entries that led there.

use std::collections::{BTreeMap, BTreeSet};

use etcd_operator::etcd::Member;

/// Something that happened to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A leader begins its term.
    Lead,
    Add(Member),
    Promote(u64),
    Remove(u64),
    /// A member tells its name and where clients reach it.
    Publish {
        id: u64,
        name: String,
        client_url: String,
    },
    Put {
        key: String,
        value: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    term: u64,
    change: Change,
}

/// Entries, and what they amount to.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    members: BTreeMap<u64, Member>,
    removed: BTreeSet<u64>,
    keys: BTreeMap<String, String>,
}

impl Log {
    pub(super) fn append(&mut self, term: u64, change: Change) {
        match &change {
            Change::Lead => {}
            Change::Add(member) => {
                self.members.insert(member.id, member.clone());
            }
            Change::Promote(id) => {
                if let Some(member) = self.members.get_mut(id) {
                    member.learner = false;
                }
            }
            Change::Remove(id) => {
                self.members.remove(id);
                self.removed.insert(*id);
            }
            Change::Publish {
                id,
                name,
                client_url,
            } => {
                if let Some(member) = self.members.get_mut(id) {
                    member.name.clone_from(name);
                    member.client_urls = vec![client_url.clone()];
                }
            }
            Change::Put { key, value } => {
                self.keys.insert(key.clone(), value.clone());
            }
        }
        self.entries.push(Entry { term, change });
    }

    /// Becomes the same as the leader's: what differs from it goes.
    pub(super) fn follow(&mut self, leader: &Self) {
        let known = self.entries.len();
        if known > 0 && leader.entries.get(known - 1).map(|entry| entry.term) == self.last_term() {
            for entry in &leader.entries[known..] {
                self.append(entry.term, entry.change.clone());
            }
        } else {
            self.clone_from(leader);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn last_term(&self) -> Option<u64> {
        self.entries.last().map(|entry| entry.term)
    }

    /// What decides who may lead: the later term, then the longer log.
    pub(super) fn age(&self) -> (u64, u64) {
        (self.last_term().unwrap_or_default(), self.len())
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    pub(super) fn member(&self, id: u64) -> Option<&Member> {
        self.members.get(&id)
    }

    pub(super) fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|member| !member.learner)
    }

    pub(super) fn has_removed(&self, id: u64) -> bool {
        self.removed.contains(&id)
    }

    /// The values that were written, in order.
    pub(super) fn writes(&self) -> Vec<String> {
        let puts = self.entries.iter().filter_map(|entry| match &entry.change {
            Change::Put { value, .. } => Some(value.clone()),
            _ => None,
        });
        puts.collect()
    }

    /// What was written, with its keys, in order.
    pub(super) fn puts(&self) -> Vec<(String, String)> {
        let puts = self.entries.iter().filter_map(|entry| match &entry.change {
            Change::Put { key, value } => Some((key.clone(), value.clone())),
            _ => None,
        });
        puts.collect()
    }

    /// The newest revision: an empty database has the first.
    pub(super) fn revision(&self) -> i64 {
        let is_put = |entry: &&Entry| matches!(entry.change, Change::Put { .. });
        1 + i64::try_from(self.entries.iter().filter(is_put).count()).unwrap_or(i64::MAX)
    }

    pub(super) fn key(&self, key: &str) -> Option<&String> {
        self.keys.get(key)
    }
}

//! The race detector: blind writes over a version that their client had not been shown, found in a
//! run that nothing disturbs.
//!
//! The server knows what each client has been shown of each object: by events, by answers, by its
//! own writes. A write that names neither uid nor version of what it means is blind; when it hits
//! an object that has changed since the client was shown it, in a field that the write sets too (or,
//! for a deletion, in anything but status), the client decided by what was no longer so. Nothing may
//! have gone wrong this time; with other timing it does.
//!
//! Not reported: server-side apply, which says whose each field is; writes to what the client was
//! never shown, which it cannot have decided by; changes of status alone, for deletions.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use bytes::Bytes;
use serde_json::Value;
use windlass_apiserver::hooks::{EventKind, Outcome, Written};

use crate::names;
use crate::state::changed_fields;

/// How many fields a race names.
const FIELDS: usize = 4;

/// A blind write over what its client had not been shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Race {
    /// The client.
    pub user: String,
    /// The object: `deployments.apps web in default`.
    pub object: String,
    /// What it did to the object.
    pub deleted: bool,
    /// What had changed without the client having been shown it.
    pub unseen: Vec<String>,
    /// How many revisions the client was behind.
    pub behind: u64,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.deleted { "deleted" } else { "wrote" };
        let fields = self.unseen.join(", ");
        write!(
            f,
            "{} {verb} {} without naming its uid or version, and had not been shown the latest {fields}",
            self.user, self.object
        )
    }
}

type Key = (String, String, String);

#[derive(Clone)]
struct Shown {
    revision: u64,
    object: Option<Bytes>,
}

/// What each client has been shown, and the races found so far.
#[derive(Default)]
pub struct Detector {
    /// The latest version of each object.
    latest: HashMap<Key, Shown>,
    /// By client.
    shown: HashMap<String, HashMap<Key, Shown>>,
    races: BTreeSet<Race>,
}

fn key(written: &Written) -> Key {
    let (resource, namespace) = (written.resource(), written.namespace());
    let name = written.name();
    (resource.to_owned(), namespace.to_owned(), name.to_owned())
}

impl Detector {
    /// The client is shown an object by an event; none when it is gone.
    pub fn event(
        &mut self,
        user: &str,
        object: (&str, &str, &str),
        revision: u64,
        json: Option<&Bytes>,
    ) {
        let (resource, namespace, name) = object;
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.show(user, key, revision, json.cloned());
    }

    fn show(&mut self, user: &str, key: Key, revision: u64, object: Option<Bytes>) {
        let shown = self.shown.entry(user.to_owned()).or_default();
        let known = shown.get(&key).map_or(0, |shown| shown.revision);
        if revision >= known {
            shown.insert(key, Shown { revision, object });
        }
    }

    /// The client is answered the present state of an object, or of all of a resource when no name is
    /// given.
    pub fn read(&mut self, user: &str, resource: &str, namespace: &str, name: &str) {
        if !name.is_empty() {
            let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
            if let Some(Shown { revision, object }) = self.latest.get(&key).cloned() {
                self.show(user, key, revision, object);
            }
            return;
        }
        let is_read = |key: &Key| key.0 == resource && (namespace.is_empty() || key.1 == namespace);
        let present = self.latest.iter().filter(|(key, _)| is_read(key));
        let present: Vec<(Key, Shown)> = present
            .map(|(key, shown)| (key.clone(), shown.clone()))
            .collect();
        for (key, Shown { revision, object }) in present {
            self.show(user, key, revision, object);
        }
    }

    /// The objects that this client has been shown an older version of than there is now.
    pub fn unseen(&self, user: &str) -> Vec<String> {
        let Some(shown) = self.shown.get(user) else {
            return Vec::new();
        };
        let behind = shown.iter().filter(|(key, shown)| {
            let latest = self.latest.get(*key);
            latest.is_some_and(|latest| latest.revision > shown.revision)
        });
        let mut behind: Vec<String> = behind
            .map(|((resource, namespace, name), _)| names::object(resource, namespace, name))
            .collect();
        behind.sort();
        behind
    }

    /// The client has written: answers the race, if it is one. It is shown what it has made.
    pub fn wrote(&mut self, user: &str, outcome: &Outcome, is_watched: bool) -> Option<Race> {
        let mut found = None;
        for change in &outcome.changes {
            let key = key(change);
            let after = (change.kind() != EventKind::Deleted).then(|| change.after().clone());
            if is_watched {
                if !outcome.guarded && !outcome.applied {
                    let race = self.race(user, &key, change);
                    if let Some(race) = race {
                        self.races.insert(race.clone());
                        found = Some(race);
                    }
                }
                self.show(user, key.clone(), change.revision(), after.clone());
            }
            self.latest.insert(
                key,
                Shown {
                    revision: change.revision(),
                    object: after,
                },
            );
        }
        found
    }

    fn race(&self, user: &str, key: &Key, change: &Written) -> Option<Race> {
        let before = change.before()?;
        let shown = self.shown.get(user)?.get(key)?;
        let behind = change.revision_before()?.checked_sub(shown.revision)?;
        let object = shown.object.as_ref()?;
        if behind == 0 {
            return None;
        }
        let parse = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).ok();
        let (shown, before) = (parse(object)?, parse(before)?);
        let missed = changed_fields(&shown, &before);
        let other = shown["metadata"]["uid"] != before["metadata"]["uid"];
        let marks = || {
            let after = parse(change.after()).unwrap_or_default();
            after["metadata"]["deletionTimestamp"].is_string()
                && !before["metadata"]["deletionTimestamp"].is_string()
        };
        let deleted = change.kind() == EventKind::Deleted || marks();
        let unseen: Vec<String> = if other {
            vec!["uid (it is another object of that name)".to_owned()]
        } else if deleted {
            let telling = |field: &&String| {
                !field.starts_with("status") && !field.starts_with("metadata.finalizers")
            };
            missed.iter().filter(telling).cloned().collect()
        } else {
            let written = changed_fields(&before, &parse(change.after())?);
            missed.intersection(&written).cloned().collect()
        };
        let is_race = !unseen.is_empty();
        is_race.then(|| Race {
            user: user.to_owned(),
            object: names::object(&key.0, &key.1, &names::steady(&key.2)),
            deleted,
            unseen: unseen.into_iter().take(FIELDS).collect(),
            behind,
        })
    }

    /// The races so far, each object once.
    pub fn races(&self) -> Vec<Race> {
        let mut seen = BTreeSet::new();
        let first = self.races.iter();
        let first = first
            .filter(|race| seen.insert((race.user.clone(), race.object.clone(), race.deleted)));
        first.cloned().collect()
    }
}

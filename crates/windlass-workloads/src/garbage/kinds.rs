//! The kinds that are watched: all that discovery tells of, as it changes.
//!
//! A kind comes and goes with its custom resource definition. When a definition is seen whose kind
//! is not served, discovery is asked again, a few times and ever later, because a new definition
//! takes a moment to be served and one that is refused never is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use windlass::testing::{Activity, DueGuard};

use super::graph::{Node, Uid};
use super::monitor::{Sight, monitor};
use crate::resource::{self, GroupKind, Resource};

/// How often a definition that is not served yet is looked for.
const RETRIES: u32 = 8;
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// A kind that is watched.
pub(crate) struct Watched {
    /// How its objects are reached.
    pub resource: Resource,
    /// The objects not yet seen in the list under way; `None` when none is under way.
    pub unlisted: Option<BTreeSet<Uid>>,
    /// Whether it has been listed at least once.
    pub listed: bool,
    task: AbortHandle,
}

/// When to ask again which kinds there are, and how often that has been in vain.
struct Discovery {
    tries: u32,
    due: DueGuard,
}

/// All kinds that are watched; their watches end when this is dropped.
pub(crate) struct Kinds {
    client: Client,
    activity: Activity,
    watched: BTreeMap<GroupKind, Watched>,
    tasks: JoinSet<()>,
    sender: UnboundedSender<(GroupKind, Sight)>,
    discovery: Option<Discovery>,
}

impl Kinds {
    /// No kinds yet, and where to receive what will be seen of them.
    pub(crate) fn new(
        client: Client,
        activity: Activity,
    ) -> (Self, UnboundedReceiver<(GroupKind, Sight)>) {
        let (sender, sights) = unbounded_channel();
        let kinds = Self {
            client,
            activity,
            watched: BTreeMap::new(),
            tasks: JoinSet::new(),
            sender,
            discovery: None,
        };
        (kinds, sights)
    }

    /// A kind, if it is watched.
    pub(crate) fn get(&self, kind: &GroupKind) -> Option<&Watched> {
        self.watched.get(kind)
    }

    /// A kind, if it is watched.
    pub(crate) fn get_mut(&mut self, kind: &GroupKind) -> Option<&mut Watched> {
        self.watched.get_mut(kind)
    }

    /// The kinds whose objects may depend on this one: those of namespaces for an owner in one.
    pub(crate) fn beside(&self, owner: &Node) -> Vec<Resource> {
        let all = self.watched.values().map(|watched| &watched.resource);
        let reachable = all.filter(|kind| kind.namespaced || owner.namespace.is_none());
        reachable.cloned().collect()
    }

    /// The names of the resources that have not been listed yet.
    pub(crate) fn unlisted(&self) -> Vec<String> {
        let unlisted = self.watched.values().filter(|watched| !watched.listed);
        unlisted.map(|watched| watched.resource.name()).collect()
    }

    /// Whether the kind of a definition of this name is watched.
    pub(crate) fn serve(&self, definition: &str) -> bool {
        self.watched
            .values()
            .any(|watched| watched.resource.name() == definition)
    }

    /// Asks which kinds there are, and watches those that are new. Returns those that are not
    /// served any more, with the names of their resources.
    pub(crate) async fn discover(&mut self) -> Result<Vec<(GroupKind, String)>, kube::Error> {
        let mut served = resource::discover(&self.client).await?;
        served.retain(|kind, resource| is_collected(kind, resource));
        let obsolete: Vec<GroupKind> = self
            .watched
            .iter()
            .filter(|(kind, watched)| {
                let now = served.get(kind);
                now.is_none_or(|now| !now.is_reached_like(&watched.resource))
            })
            .map(|(kind, _)| kind.clone())
            .collect();
        let mut gone = Vec::new();
        for kind in obsolete {
            let Some(watched) = self.watched.remove(&kind) else {
                continue;
            };
            watched.task.abort();
            if !served.contains_key(&kind) {
                gone.push((kind, watched.resource.name()));
            }
        }
        for (kind, resource) in served {
            if self.watched.contains_key(&kind) {
                continue;
            }
            let watch = monitor(self.client.clone(), resource.clone(), self.sender.clone());
            let task = self.tasks.spawn(watch);
            let watched = Watched {
                resource,
                unlisted: None,
                listed: false,
                task,
            };
            self.watched.insert(kind, watched);
        }
        // Ended watches leave their results behind; nobody asks for them.
        while self.tasks.try_join_next().is_some() {}
        Ok(gone)
    }

    /// Asks again at once.
    pub(crate) fn discover_soon(&mut self) {
        self.discover_in(Duration::ZERO, 0);
    }

    /// Asks again later, unless that has been tried often enough.
    pub(crate) fn discover_later(&mut self, tries: u32) {
        if tries < RETRIES {
            self.discover_in(FIRST_DELAY * (1 << tries), tries + 1);
        }
    }

    fn discover_in(&mut self, delay: Duration, tries: u32) {
        let at = Instant::now() + delay;
        let due = self.activity.due(at, "garbage collector: discovery");
        self.discovery = Some(Discovery { tries, due });
    }

    /// When to ask again, if at all.
    pub(crate) fn discovery_due(&self) -> Option<Instant> {
        self.discovery.as_ref().map(|discovery| discovery.due.at())
    }

    /// Whether it is time to ask again, and how often that has been in vain; says so once.
    pub(crate) fn take_discovery(&mut self) -> Option<u32> {
        let now = Instant::now();
        let discovery = self
            .discovery
            .take_if(|discovery| discovery.due.at() <= now)?;
        Some(discovery.tries)
    }
}

/// Whether objects of a kind can be garbage: not events, which go by themselves and are many.
fn is_collected(kind: &GroupKind, resource: &Resource) -> bool {
    kind.kind != "Event" && resource.allows(&["list", "watch", "delete"])
}

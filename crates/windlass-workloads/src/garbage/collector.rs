//! The collector: watches everything, keeps the graph, and does what the verdicts say.
//!
//! One loop: first take in everything the watches have shown, then do one piece of work, and so
//! on. Nothing is done before every kind has been listed once (or has had its time to be), because
//! an owner that has not been seen yet looks like one that is gone; it would only cost requests,
//! though, since each absence is verified with the API server before it counts.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use windlass::{run::TaskContext, testing::BusyGuard};

use super::graph::{FOREGROUND, Graph, Known, Node, ORPHAN, Uid, Work};
use super::kinds::Kinds;
use super::monitor::Sight;
use super::queue::Queue;
use super::request::{self, RequestError, Target};
use super::verdict::{self, Owner, Verdict};
use crate::resource::GroupKind;

/// How long the first lists may take before work begins without them.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many owners that were found to be gone are remembered, whether they matter or not.
const REMEMBERED: usize = 1000;

/// An object that is gone: its kind, namespace, name and uid.
type Absent = (GroupKind, Option<String>, String, Uid);

/// The collector.
pub(crate) struct Collector {
    ctx: TaskContext,
    graph: Graph,
    queue: Queue,
    kinds: Kinds,
    sights: UnboundedReceiver<(GroupKind, Sight)>,
    /// Owners that were found to be gone: a uid never comes back.
    gone: BTreeSet<Absent>,
    /// How many of them there may be before those that do not matter any more are left out.
    most_gone: usize,
    /// Definitions that went and whose kinds may still be watched.
    withdrawn: BTreeSet<String>,
    started: Instant,
    /// Held until work may begin.
    starting: Option<BusyGuard>,
}

impl Collector {
    pub(crate) fn new(ctx: TaskContext) -> Self {
        let activity = ctx.environment.activity.clone();
        let (kinds, sights) = Kinds::new(ctx.client.clone(), activity.clone());
        Self {
            starting: Some(activity.busy("garbage collector: first lists")),
            queue: Queue::new(activity),
            ctx,
            graph: Graph::default(),
            kinds,
            sights,
            gone: BTreeSet::new(),
            most_gone: REMEMBERED,
            withdrawn: BTreeSet::new(),
            started: Instant::now(),
        }
    }

    /// Collects until the operator stops.
    pub(crate) async fn run(mut self) -> Result<(), kube::Error> {
        self.discover(0).await?;
        loop {
            while let Ok((kind, sight)) = self.sights.try_recv() {
                self.take(&kind, sight);
            }
            if self.ctx.stopping.is_cancelled() {
                return Ok(());
            }
            if let Some(tries) = self.kinds.take_discovery() {
                if let Err(error) = self.discover(tries).await {
                    tracing::debug!(%error, "discovery is tried again");
                    self.kinds.discover_later(tries);
                }
                continue;
            }
            self.queue.promote();
            if self.has_begun()
                && let Some((work, _guard)) = self.queue.pop()
            {
                match self.perform(&work).await {
                    Ok(()) => self.queue.done(&work),
                    Err(error) => {
                        tracing::debug!(%error, "garbage is looked at again");
                        self.queue.retry(work);
                    }
                }
                continue;
            }
            let alarm = self.alarm();
            tokio::select! {
                biased;
                () = self.ctx.stopping.cancelled() => return Ok(()),
                sight = self.sights.recv() => {
                    if let Some((kind, sight)) = sight {
                        self.take(&kind, sight);
                    }
                }
                () = tokio::time::sleep_until(alarm) => {}
            }
        }
    }

    /// When there is something to do even if nothing is seen.
    fn alarm(&self) -> Instant {
        let patience = self.starting.is_some().then(|| self.started + PATIENCE);
        let discovery = self.kinds.discovery_due();
        [patience, discovery, self.queue.next_due()]
            .into_iter()
            .flatten()
            .min()
            // Nothing at all: some time that is far enough not to matter.
            .unwrap_or_else(|| Instant::now() + Duration::from_hours(24))
    }

    /// Whether work may be done: every kind has been listed, or has had its time.
    fn has_begun(&mut self) -> bool {
        if self.starting.is_none() {
            return true;
        }
        let unlisted = self.kinds.unlisted();
        if !unlisted.is_empty() {
            if self.started.elapsed() < PATIENCE {
                return false;
            }
            tracing::warn!(
                ?unlisted,
                "collecting garbage without what cannot be listed"
            );
        }
        self.starting = None;
        true
    }

    /// Asks which kinds there are, forgets what is not served any more, and asks again later if a
    /// definition is not served (yet).
    async fn discover(&mut self, tries: u32) -> Result<(), kube::Error> {
        for (kind, definition) in self.kinds.discover().await? {
            // Objects go before their definition does; their ends may not have been seen. Those of
            // a kind that is not served for another reason are still there.
            let withdrawn = self.withdrawn.remove(&definition);
            for uid in self.graph.of_kind(&kind) {
                if withdrawn {
                    self.lose(&uid);
                } else {
                    self.forget(&uid);
                }
            }
        }
        if self.has_unserved_definitions() {
            self.kinds.discover_later(tries);
        }
        Ok(())
    }

    fn has_unserved_definitions(&self) -> bool {
        self.graph
            .of_kind(&definitions())
            .iter()
            .filter_map(|uid| self.graph.get(uid))
            .any(|definition| !definition.deleted && !self.kinds.serve(&definition.name))
    }

    /// Takes in what a watch has shown.
    fn take(&mut self, kind: &GroupKind, sight: Sight) {
        let Some(watched) = self.kinds.get_mut(kind) else {
            return;
        };
        match sight {
            Sight::Listing => watched.unlisted = Some(self.graph.of_kind(kind)),
            Sight::Listed(object) => {
                if let (Some(unlisted), Some(uid)) = (&mut watched.unlisted, &object.metadata.uid) {
                    unlisted.remove(uid);
                }
                self.observe(Node::new(kind.clone(), object.metadata));
            }
            Sight::Complete => {
                watched.listed = true;
                for uid in watched.unlisted.take().unwrap_or_default() {
                    self.forget(&uid);
                }
            }
            Sight::Changed(object) => self.observe(Node::new(kind.clone(), object.metadata)),
            Sight::Gone(object) => {
                if let Some(uid) = &object.metadata.uid {
                    self.lose(uid);
                }
                if *kind == definitions() {
                    self.withdrawn.extend(object.metadata.name);
                    self.kinds.discover_soon();
                }
            }
            Sight::Unserved => self.kinds.discover_soon(),
        }
    }

    fn observe(&mut self, node: Option<Node>) {
        let Some(node) = node else {
            return;
        };
        let is_definition = node.kind == definitions();
        if is_definition {
            // Another one of that name, whose objects are others.
            self.withdrawn.remove(&node.name);
        }
        let work = self.graph.observe(node);
        self.queue.add(work);
        if is_definition && self.has_unserved_definitions() {
            self.kinds.discover_soon();
        }
    }

    /// Forgets an object whose end is certain. Its dependents may be looked at when its kind is no
    /// longer served and nobody can be asked.
    fn lose(&mut self, uid: &str) {
        let has_dependents = self.graph.dependents(uid).next().is_some();
        if let Some(node) = self.graph.get(uid).filter(|_| has_dependents) {
            let (kind, namespace) = (node.kind.clone(), node.namespace.clone());
            self.remember((kind, namespace, node.name.clone(), uid.to_owned()));
        }
        self.forget(uid);
    }

    fn remember(&mut self, absent: Absent) {
        if self.gone.len() >= self.most_gone {
            let graph = &self.graph;
            // Nobody asks again for one that owns nothing any more.
            self.gone
                .retain(|(_, _, _, uid)| graph.dependents(uid).next().is_some());
            self.most_gone = REMEMBERED.max(2 * self.gone.len());
        }
        self.gone.insert(absent);
    }

    fn forget(&mut self, uid: &str) {
        let work = self.graph.forget(uid);
        self.queue.add(work);
    }

    async fn perform(&mut self, work: &Work) -> Result<(), RequestError> {
        match work {
            Work::Check(uid) => self.check(uid).await,
            Work::Orphan(uid) => self.orphan(uid).await,
        }
    }

    /// Looks whether an object should still be there.
    async fn check(&mut self, uid: &str) -> Result<(), RequestError> {
        let Some(node) = self.graph.get(uid).cloned() else {
            return Ok(());
        };
        let Some(target) = self.target(&node) else {
            return Ok(());
        };
        if node.deleted && !node.awaits_dependents {
            return Ok(());
        }
        if node.awaits_dependents {
            return match verdict::blockers(&self.graph, &node) {
                Some(blockers) => {
                    self.queue.add(blockers.into_iter().map(Work::Check));
                    Ok(())
                }
                None => self.finish(&target, uid, FOREGROUND).await,
            };
        }
        let doubtful = |owner| self.graph.knows(&node, owner) != Known::Present;
        if !node.owners.iter().any(doubtful) {
            return Ok(());
        }
        let Some(meta) = target
            .metadata()
            .await?
            .filter(|meta| meta.uid.as_deref() == Some(uid))
        else {
            self.forget(uid);
            return Ok(());
        };
        // As the API server has it, not as the graph does.
        let Some(node) = Node::new(node.kind, meta.clone()) else {
            return Ok(());
        };
        if node.deleted {
            return Ok(());
        }
        let mut owners = Vec::with_capacity(node.owners.len());
        for reference in &node.owners {
            owners.push((reference.clone(), self.truth(&node, reference).await?));
        }
        let finalizers = meta.finalizers.as_deref().unwrap_or_default();
        match verdict::on_owned(&self.graph, &node, finalizers, &owners) {
            Verdict::Keep => Ok(()),
            Verdict::Strike(struck) => {
                let mut rest = node.owners;
                rest.retain(|owner| !struck.contains(&owner.uid));
                target.set_owners(&meta, &rest).await
            }
            Verdict::Delete { unblock: true, .. } => {
                // Struck first and deleted next time round, when the change has been seen.
                let mut owners = node.owners;
                for owner in &mut owners {
                    owner.block_owner_deletion = Some(false);
                }
                if meta.owner_references.as_ref() == Some(&owners) {
                    return target.delete(&meta, verdict::Propagation::Foreground).await;
                }
                target.set_owners(&meta, &owners).await?;
                self.queue.add([Work::Check(uid.to_owned())]);
                Ok(())
            }
            Verdict::Delete {
                propagation,
                unblock: false,
            } => {
                tracing::debug!(kind = node.kind.kind, name = node.name, "is garbage");
                target.delete(&meta, propagation).await
            }
        }
    }

    /// Cuts the dependents of an object loose, and lets it go.
    async fn orphan(&mut self, uid: &str) -> Result<(), RequestError> {
        let Some(owner) = self.graph.get(uid).cloned() else {
            return Ok(());
        };
        let Some(target) = self.target(&owner) else {
            return Ok(());
        };
        let known = self.graph.dependents(uid);
        let known: Vec<Target> = known.filter_map(|node| self.target(node)).collect();
        for dependent in known {
            if let Some(meta) = dependent.metadata().await? {
                cut_loose(&dependent, &meta, uid).await?;
            }
        }
        // The graph may be behind: a dependent that it does not show yet would be garbage as soon as
        // the owner is gone. So the API server is asked.
        let namespace = owner.namespace.as_deref();
        for kind in self.kinds.beside(&owner) {
            let api = kind.beside(self.ctx.client.clone(), namespace);
            for meta in request::every(&api, &kind.name()).await? {
                let node = Node::new(kind.group_kind(), meta.clone());
                if let Some(dependent) = node.and_then(|node| self.target(&node)) {
                    cut_loose(&dependent, &meta, uid).await?;
                }
            }
        }
        self.finish(&target, uid, ORPHAN).await
    }

    /// Removes the finalizer by which an object waited.
    async fn finish(
        &mut self,
        target: &Target,
        uid: &str,
        finalizer: &str,
    ) -> Result<(), RequestError> {
        match target.metadata().await? {
            Some(meta) if meta.uid.as_deref() == Some(uid) => {
                target.remove_finalizer(&meta, finalizer).await
            }
            _ => {
                self.forget(uid);
                Ok(())
            }
        }
    }

    /// The truth about an owner that `dependent` names: from the graph where it has been seen, and
    /// otherwise from the API server.
    async fn truth(
        &mut self,
        dependent: &Node,
        reference: &OwnerReference,
    ) -> Result<Owner, RequestError> {
        match self.graph.knows(dependent, reference) {
            Known::Present => return Ok(Owner::Solid),
            Known::Awaiting => return Ok(Owner::Awaiting),
            Known::Doubtful => {}
        }
        let kind = GroupKind::named_by(reference);
        let Some(watched) = self.kinds.get(&kind) else {
            // It may have been seen to go before its kind did, in this namespace or in none.
            let seen_to_go = [dependent.namespace.clone(), None]
                .into_iter()
                .map(|namespace| {
                    let (name, uid) = (reference.name.clone(), reference.uid.clone());
                    (kind.clone(), namespace, name, uid)
                })
                .any(|absent| self.gone.contains(&absent));
            return Ok(if seen_to_go {
                Owner::Gone
            } else {
                Owner::Unknown
            });
        };
        let resource = &watched.resource;
        if resource.namespaced && dependent.namespace.is_none() {
            // A reference that cannot be: which namespace would it mean?
            return Ok(Owner::Unknown);
        }
        let namespace = dependent.namespace.clone().filter(|_| resource.namespaced);
        let absent = (
            kind.clone(),
            namespace.clone(),
            reference.name.clone(),
            reference.uid.clone(),
        );
        if self.gone.contains(&absent) {
            return Ok(Owner::Gone);
        }
        let api = resource.beside(self.ctx.client.clone(), namespace.as_deref());
        let owner = Target::new(api, &resource.name(), namespace.as_deref(), &reference.name);
        match owner.metadata().await? {
            Some(meta) if meta.uid.as_deref() == Some(&reference.uid) => {
                let owner = Node::new(kind, meta);
                let awaiting = owner.is_some_and(|owner| owner.awaits_dependents);
                Ok(if awaiting {
                    Owner::Awaiting
                } else {
                    Owner::Solid
                })
            }
            _ => {
                self.remember(absent);
                Ok(Owner::Gone)
            }
        }
    }

    fn target(&self, node: &Node) -> Option<Target> {
        let resource = &self.kinds.get(&node.kind)?.resource;
        let namespace = node.namespace.as_deref();
        let api = resource.beside(self.ctx.client.clone(), namespace);
        Some(Target::new(api, &resource.name(), namespace, &node.name))
    }
}

/// Strikes the owner of this uid from an object, if it is one of its owners.
async fn cut_loose(dependent: &Target, meta: &ObjectMeta, owner: &str) -> Result<(), RequestError> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    if !owners.iter().any(|one| one.uid == owner) {
        return Ok(());
    }
    let mut rest = owners.to_vec();
    rest.retain(|one| one.uid != owner);
    dependent.set_owners(meta, &rest).await
}

/// The kind of custom resource definitions, by which other kinds come and go.
fn definitions() -> GroupKind {
    GroupKind {
        group: "apiextensions.k8s.io".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
    }
}

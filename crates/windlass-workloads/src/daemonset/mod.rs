//! The DaemonSet controller: a pod on every node that wants one.
//!
//! Pods are meant for a node by their affinity, and the scheduler binds them there. Each reconcile
//! finds the revision of the template ([`history`]), decides what to do ([`plan`]), does it, and
//! tells what it saw ([`status`]).

mod place;
mod plan;
mod status;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Error, Event, Key, Reconciler, Result, Watched,
    handle::{Access, Controlled, Delete, Raw, Reads, Verb, Writes},
    watch::Select,
};

use self::plan::{Plan, View};
use self::template::HASH_LABEL;
use crate::history::{self, Newest};
use crate::owner::{self, Claim};
use crate::pending::Pending;
use crate::replicaset::{batches, gone_meanwhile, until};
use crate::{cause, deployment};

/// The first and the longest time after which a failed pod of a node is deleted again.
const BACKOFF: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(1), SignedDuration::from_mins(15));

/// The controller of DaemonSets.
pub(crate) fn controller() -> Controller<DaemonSet> {
    Controller::of_existing::<DaemonSet>()
        .reports_as("daemonset-controller")
        .reconciler(DaemonSets::declare)
}

struct DaemonSets {
    pods: Controlled<Pod>,
    /// Pods that match, though nobody controls them yet: to be adopted.
    _matching: Reads<Pod>,
    nodes: Reads<Node>,
    revisions: Controlled<ControllerRevision>,
    status: Writes<DaemonSet>,
    /// To look past the cache when the name of a revision is taken.
    raw: Raw,
    /// When a failed pod was last deleted, by set and node, and how long to wait then.
    failures: Mutex<BTreeMap<(Key, String), (Timestamp, SignedDuration)>>,
    pending: Pending,
}

type Ctx = Context<DaemonSet>;

impl DaemonSets {
    fn declare(declare: &mut Declare<DaemonSet>) -> Self {
        Self {
            pods: declare.adopts(),
            _matching: declare.reads(Pod::selected_by(|set: &DaemonSet| {
                set.spec.as_ref().map(|spec| spec.selector.clone())
            })),
            nodes: declare.reads(Node::triggering_all()),
            revisions: declare.adopts(),
            status: declare.writes(Access::none().on("status", [Verb::Patch])),
            raw: declare.raw([Access::of::<ControllerRevision>([Verb::Get])]),
            failures: Mutex::default(),
            pending: Pending::default(),
        }
    }

    /// The pods that are ours, after adopting and releasing what has to be.
    async fn claim(&self, set: &DaemonSet, ctx: &Ctx) -> Result<Vec<Arc<Pod>>> {
        let spec = set.spec.as_ref();
        let Some(selector) = spec.and_then(|spec| owner::selector(&spec.selector)) else {
            return Ok(Vec::new());
        };
        let mut claimed = Vec::new();
        for pod in self.pods.candidates(ctx, selector.clone()).await? {
            match owner::claim(&set.metadata, &selector, &pod.metadata) {
                Claim::Keep => claimed.push(pod),
                Claim::Adopt => claimed.extend(gone_meanwhile(self.pods.adopt(ctx, &pod).await)?),
                Claim::Release => {
                    gone_meanwhile(self.pods.release(ctx, &pod).await)?;
                }
                Claim::Ignore => {}
            }
        }
        Ok(claimed)
    }

    /// The revisions of the set, in order, after adopting and releasing what has to be.
    async fn revisions(&self, set: &DaemonSet, ctx: &Ctx) -> Result<Vec<Arc<ControllerRevision>>> {
        let spec = set.spec.as_ref();
        let Some(selector) = spec.and_then(|spec| owner::selector(&spec.selector)) else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for revision in self.revisions.candidates(ctx, selector.clone()).await? {
            match owner::claim(&set.metadata, &selector, &revision.metadata) {
                Claim::Keep => all.push(revision),
                Claim::Adopt => {
                    all.extend(gone_meanwhile(self.revisions.adopt(ctx, &revision).await)?);
                }
                Claim::Release => {
                    gone_meanwhile(self.revisions.release(ctx, &revision).await)?;
                }
                Claim::Ignore => {}
            }
        }
        history::sort(&mut all);
        Ok(all)
    }

    /// The revision with the template of now, made the newest.
    async fn newest(
        &self,
        set: &DaemonSet,
        ctx: &Ctx,
        revisions: &[Arc<ControllerRevision>],
    ) -> Result<Arc<ControllerRevision>> {
        let template = set
            .spec
            .as_ref()
            .map(|spec| spec.template.clone())
            .unwrap_or_default();
        let data = history::data(&template).map_err(Error::other)?;
        match history::newest(revisions, &data) {
            Newest::Is(newest) => Ok(Arc::clone(newest)),
            Newest::Renumber(old, number) => {
                let patch = json!({ "revision": number });
                Ok(Arc::new(self.revisions.patch(ctx, old, patch).await?))
            }
            Newest::Create(number) => {
                let collisions = set
                    .status
                    .as_ref()
                    .and_then(|status| status.collision_count);
                let hash =
                    deployment::template::hash(&template, collisions).map_err(Error::other)?;
                let labels = template.metadata.and_then(|metadata| metadata.labels);
                let mut labels = labels.unwrap_or_default();
                labels.insert(HASH_LABEL.to_owned(), hash.clone());
                let new = history::named(&set.metadata, &hash, labels, &data, number);
                let name = history::name(&new).to_owned();
                match self.revisions.create(ctx, new).await {
                    Err(error) if error.is_already_exists() => {
                        let namespace = ctx.key().namespace().unwrap_or_default();
                        let api: Api<ControllerRevision> =
                            Api::namespaced(self.raw.client(ctx), namespace);
                        let taken = api.get_opt(&name).await?;
                        if let Some(same) = taken.filter(|taken| history::holds(taken, &data)) {
                            return Ok(Arc::new(same));
                        }
                        let mut status = set.status.clone().unwrap_or_default();
                        status.collision_count = Some(collisions.unwrap_or(0) + 1);
                        self.status.status(ctx, set, status).await?;
                        Err(error)
                    }
                    created => created.map(Arc::new),
                }
            }
        }
    }

    /// When the failed pod of a node may be deleted, if not now.
    fn held_back(&self, key: &Key, node: &str, now: Timestamp) -> Option<Timestamp> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (key.clone(), node.to_owned());
        let before = failures.get(&place).copied();
        let (first, longest) = BACKOFF;
        let next = match before {
            Some((last, wait)) => {
                let since = now.duration_since(last);
                if since < wait {
                    return last.checked_add(wait).ok();
                }
                // What has held for long enough begins anew.
                if since > longest + longest {
                    first
                } else {
                    (wait + wait).min(longest)
                }
            }
            None => first,
        };
        failures.insert(place, (now, next));
        None
    }

    async fn create(&self, set: &DaemonSet, ctx: &Ctx, nodes: &[String], hash: &str) -> Result<()> {
        let mut left = nodes;
        for size in batches::sizes(nodes.len()) {
            let (batch, rest) = left.split_at(size);
            left = rest;
            let attempts = batch
                .iter()
                .map(|node| self.pods.create(ctx, template::pod(set, node, hash)));
            let mut failed = None;
            for attempt in join_all(attempts).await {
                match attempt {
                    Ok(pod) => {
                        let note = format!("Created pod: {}", name(&pod));
                        ctx.event(Event::normal("SuccessfulCreate", note));
                    }
                    Err(error) if cause::namespace_is_terminating(&error) => return Ok(()),
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                let note = format!("Error creating: {error}");
                ctx.event(Event::warning("FailedCreate", note));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn delete(&self, ctx: &Ctx, pods: &[&Pod]) -> Result<()> {
        for pod in pods {
            match self.pods.delete(ctx, pod, Delete::background()).await {
                Ok(()) => {
                    let note = format!("Deleted pod: {}", name(pod));
                    ctx.event(Event::normal("SuccessfulDelete", note));
                }
                Err(error) => {
                    let note = format!("Error deleting: {error}");
                    ctx.event(Event::warning("FailedDelete", note));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Does what is planned, and says when more can be done.
    async fn act(&self, ctx: &Ctx, view: &View<'_>, plan: &Plan<'_>) -> Result<Option<Timestamp>> {
        let mut delete = plan.delete.clone();
        let mut wait: Option<Timestamp> = None;
        let namespace = ctx.key().namespace().unwrap_or_default();
        for (node, pod) in &plan.failed {
            if let Some(at) = self.held_back(ctx.key(), node, view.now) {
                wait = Some(wait.map_or(at, |wait| wait.min(at)));
                continue;
            }
            let found = format!("Found failed daemon pod {namespace}/{}", name(pod));
            let note = format!("{found} on node {node}, will try to kill it");
            ctx.event(Event::warning("FailedDaemonPod", note));
            delete.push(pod);
        }
        for (node, pod) in &plan.succeeded {
            let found = format!("Found succeeded daemon pod {namespace}/{}", name(pod));
            let note = format!("{found} on node {node}, will try to delete it");
            ctx.event(Event::normal("SucceededDaemonPod", note));
            delete.push(pod);
        }
        self.create(view.set, ctx, &plan.create, view.hash).await?;
        self.delete(ctx, &delete).await?;
        Ok(wait)
    }

    /// Deletes the revisions that nobody will go back to.
    async fn truncate(
        &self,
        set: &DaemonSet,
        ctx: &Ctx,
        revisions: &[Arc<ControllerRevision>],
        newest: &ControllerRevision,
        pods: &[Arc<Pod>],
    ) -> Result<()> {
        let hash = |labels: Option<&BTreeMap<String, String>>| {
            labels
                .and_then(|labels| labels.get(HASH_LABEL))
                .cloned()
                .unwrap_or_default()
        };
        let used: BTreeSet<String> = pods
            .iter()
            .map(|pod| hash(pod.metadata.labels.as_ref()))
            .collect();
        let is_used = |one: &&Arc<ControllerRevision>| {
            used.contains(&hash(one.metadata.labels.as_ref()))
                || history::name(one) == history::name(newest)
        };
        let live: BTreeSet<&str> = revisions
            .iter()
            .filter(is_used)
            .map(|one| history::name(one))
            .collect();
        let limit = set
            .spec
            .as_ref()
            .and_then(|spec| spec.revision_history_limit);
        for revision in history::surplus(revisions, &live, limit) {
            self.revisions
                .delete(ctx, revision, Delete::background())
                .await?;
        }
        Ok(())
    }
}

impl Reconciler for DaemonSets {
    type Object = DaemonSet;

    async fn reconcile(&self, set: &DaemonSet, ctx: &Ctx) -> Result<Action> {
        let spec = set.spec.as_ref();
        let selector = spec.and_then(|spec| owner::selector(&spec.selector));
        if selector.is_some_and(|selector| selector.selects_all()) {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            ctx.event(Event::warning("SelectingAll", note));
            return Ok(Action::done());
        }
        let revisions = self.revisions(set, ctx).await?;
        let newest = match self.newest(set, ctx, &revisions).await {
            Err(error) if cause::namespace_is_terminating(&error) => return Ok(Action::done()),
            newest => newest?,
        };
        let labels = newest.metadata.labels.as_ref();
        let hash = labels
            .and_then(|labels| labels.get(HASH_LABEL))
            .cloned()
            .unwrap_or_default();
        let pods = self.claim(set, ctx).await?;
        let nodes = self
            .nodes
            .list(ctx, Select::own_namespace().in_all_namespaces())
            .await?;
        let now = ctx.clock().now();
        let view = View {
            set,
            nodes: nodes.iter().map(Arc::as_ref).collect(),
            pods: pods.iter().map(Arc::as_ref).collect(),
            hash: &hash,
            now,
        };
        let mut plan = view.manage();
        if plan.is_empty() {
            plan = view.update();
        }
        let acted = self.act(ctx, &view, &plan).await;
        self.status.status(ctx, set, status::status(&view)).await?;
        let wait = acted?;
        self.truncate(set, ctx, &revisions, &newest, &pods).await?;
        let available = status::next_available(set, &view);
        if let Some(at) = [wait, available].into_iter().flatten().min() {
            let wait = until(at, now).max(Duration::from_millis(1));
            return Ok(self.pending.after(ctx, wait, "wait for a pod"));
        }
        self.pending.clear(ctx.key());
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.pending.clear(key);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|(set, _), _| set != key);
        Ok(())
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

//! A small scheduler: every pod that wants a node gets one that takes it.
//!
//! It looks at pods that name no node and no other scheduler, and binds each to the node that
//! [`fit`] chooses. A pod that fits nowhere is told why in its condition PodScheduled, and is
//! looked at again whenever a node, its volumes or the room there is changes; of those that wait,
//! the more important ones come first. Nobody is sent away to make room.

mod fit;
mod neighbours;
mod occupancy;
mod resources;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{
    Binding, Namespace, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
    PodCondition, PodStatus,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::{Changed, Select},
};

use self::fit::{Cluster, Placement};
use self::occupancy::Occupancy;
use self::volumes::{SELECTED_NODE, Volumes};
use crate::pod;
use crate::protection::claims_of;

/// The name by which pods ask for this scheduler.
const NAME: &str = "default-scheduler";

/// The controller that binds pods to nodes. One pod at a time: each choice counts the ones before.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::of_existing::<Pod>()
        .named("scheduler")
        .reports_as("default-scheduler")
        .concurrency(1)
        .reconciler(Scheduler::declare)
}

struct Scheduler {
    nodes: Reads<Node>,
    pods: Reads<Pod>,
    namespaces: Reads<Namespace>,
    claims: Reads<PersistentVolumeClaim>,
    volumes: Reads<PersistentVolume>,
    classes: Reads<StorageClass>,
    written: Writes<Pod>,
    claims_written: Writes<PersistentVolumeClaim>,
    /// Who is where.
    occupancy: Arc<Mutex<Occupancy>>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Pods that have no node yet, though they were looked at.
#[derive(Default)]
struct Waiting {
    /// Those that fit nowhere, with their priority: to be looked at when others move or leave.
    refused: BTreeMap<Key, i32>,
    /// Those whose claims were told of a node: to be looked at when nodes change.
    told: BTreeSet<Key>,
}

impl Waiting {
    fn forget(&mut self, key: &Key) {
        self.refused.remove(key);
        self.told.remove(key);
    }
}

type Ctx = Context<Pod>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scheduler {
    fn declare(declare: &mut Declare<Pod>) -> Self {
        let occupancy: Arc<Mutex<Occupancy>> = Arc::default();
        let waiting: Arc<Mutex<Waiting>> = Arc::default();
        let (seen, moved) = (Arc::clone(&occupancy), Arc::clone(&waiting));
        let follow = move |change: Changed<'_, Pod>| {
            match change {
                Changed::Added(pod) | Changed::Updated { new: pod, .. } => lock(&seen).observe(pod),
                Changed::Deleted(pod) => lock(&seen).forget(&Key::of(pod)),
            }
            if makes_room(&change) {
                lock(&moved).refused.keys().cloned().collect()
            } else {
                Vec::new()
            }
        };
        let changed = Arc::clone(&waiting);
        let nodes = Node::handled_by(move |_| {
            let waiting = lock(&changed);
            waiting
                .refused
                .keys()
                .chain(&waiting.told)
                .cloned()
                .collect()
        });
        Self {
            nodes: declare.reads(nodes),
            pods: declare.reads(Pod::handled_by(follow)),
            namespaces: declare.reads(Namespace::triggering_none()),
            claims: declare.reads(PersistentVolumeClaim::referenced_by(|pod: &Pod| {
                if wants_node(pod) {
                    claims_of(pod)
                } else {
                    Vec::new()
                }
            })),
            volumes: declare.reads(PersistentVolume::triggering_none()),
            classes: declare.reads(StorageClass::triggering_none()),
            written: declare.writes(
                Access::none()
                    .on("binding", [Verb::Create])
                    .on("status", [Verb::Patch]),
            ),
            claims_written: declare.writes(Access::to([Verb::Patch])),
            occupancy,
            waiting,
        }
    }

    /// What is to be done about a pod, given its volumes.
    async fn look<T>(
        &self,
        ctx: &Ctx,
        pod: &Pod,
        nodes: &[Arc<Node>],
        decide: impl FnOnce(&Pod, &Cluster<'_>, &Volumes<'_>) -> T + Send,
    ) -> Result<T> {
        let namespaces = if neighbours::asks_for_namespaces(pod, &lock(&self.occupancy)) {
            self.namespaces.list(ctx, Select::own_namespace()).await?
        } else {
            Vec::new()
        };
        let names = claims_of(pod);
        let (mut claims, mut volumes, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for name in &names {
            let key = Key::namespaced(namespace, name.as_str());
            claims.extend(self.claims.get(ctx, key).await?);
        }
        if !claims.is_empty() {
            volumes = self.volumes.list(ctx, Select::own_namespace()).await?;
            classes = self.classes.list(ctx, Select::own_namespace()).await?;
        }
        let volumes = Volumes::of(&names, &claims, &volumes, &classes);
        let occupancy = lock(&self.occupancy);
        let cluster = Cluster {
            nodes,
            occupancy: &occupancy,
            namespaces: &namespaces,
        };
        Ok(decide(pod, &cluster, &volumes))
    }

    async fn bind(&self, pod: &Pod, ctx: &Ctx, node: &str) -> Result<()> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: pod.metadata.name.clone(),
                namespace: pod.metadata.namespace.clone(),
                uid: pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        self.written
            .post(ctx, ctx.key(), "binding", &binding)
            .await?;
        lock(&self.occupancy).place(pod, node);
        ctx.event(Event::normal(
            "Scheduled",
            format!("Successfully assigned {} to {node}", ctx.key()),
        ));
        Ok(())
    }

    /// Tells that no node fits, unless that is known already.
    async fn refuse(&self, pod: &Pod, ctx: &Ctx, message: String) -> Result<()> {
        let known = pod::condition(pod, "PodScheduled").is_some_and(|condition| {
            condition.status == "False" && condition.message.as_deref() == Some(&message)
        });
        if known {
            return Ok(());
        }
        let refused = PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            message: Some(message.clone()),
            last_transition_time: Some(ctx.clock().time()),
            ..PodCondition::default()
        };
        let mut status = pod.status.clone().unwrap_or_default();
        replace(&mut status, refused);
        self.written.status(ctx, pod, status).await?;
        ctx.event(Event::warning("FailedScheduling", message));
        Ok(())
    }

    /// Whether a pod that waits and is more important than this one has a place now.
    async fn is_preceded(&self, ctx: &Ctx, pod: &Pod, nodes: &[Arc<Node>]) -> Result<bool> {
        let priority = fit::priority(pod);
        let others: Vec<Key> = {
            let waiting = lock(&self.waiting);
            let more = waiting.refused.iter().filter(|(_, its)| **its > priority);
            more.map(|(key, _)| key.clone()).collect()
        };
        for key in others {
            let other = self.pods.get(ctx, key).await?;
            let Some(other) = other.filter(|other| wants_node(other)) else {
                continue;
            };
            let fits = |other: &Pod, cluster: &Cluster<'_>, volumes: &Volumes<'_>| {
                matches!(fit::place(other, cluster, volumes), Placement::Node(_))
            };
            if self.look(ctx, &other, nodes, fits).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the change of a pod may let another fit that did not. Neighbours may be wanted or not,
/// so one that moves in counts too.
fn makes_room(change: &Changed<'_, Pod>) -> bool {
    match change {
        Changed::Added(pod) => pod::node_name(pod).is_some(),
        Changed::Updated { old, new } => {
            pod::node_name(old) != pod::node_name(new)
                || pod::has_ended(old) != pod::has_ended(new)
                || old.metadata.labels != new.metadata.labels
        }
        Changed::Deleted(_) => true,
    }
}

/// What comes of looking at a pod's volumes.
enum Choice {
    /// Bind it to this node.
    Bind(String),
    /// These claims are told of this node, and the pod waits for them.
    Tell(String, Vec<PersistentVolumeClaim>),
    Refuse(String),
}

fn choose(pod: &Pod, cluster: &Cluster<'_>, volumes: &Volumes<'_>) -> Choice {
    match fit::place(pod, cluster, volumes) {
        Placement::Nowhere(why) => Choice::Refuse(why),
        Placement::Node(node) => {
            let waiting: Vec<PersistentVolumeClaim> = volumes.waiting().cloned().collect();
            if waiting.is_empty() {
                Choice::Bind(node.to_owned())
            } else {
                Choice::Tell(node.to_owned(), waiting)
            }
        }
    }
}

impl Reconciler for Scheduler {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, ctx: &Ctx) -> Result<Action> {
        if !wants_node(pod) || lock(&self.occupancy).has(pod) {
            lock(&self.waiting).forget(ctx.key());
            return Ok(Action::done());
        }
        let nodes = self
            .nodes
            .list(ctx, Select::own_namespace().in_all_namespaces())
            .await?;
        let waits = || {
            let mut waiting = lock(&self.waiting);
            waiting
                .refused
                .insert(ctx.key().clone(), fit::priority(pod));
        };
        match self.look(ctx, pod, &nodes, choose).await? {
            Choice::Refuse(why) => {
                waits();
                self.refuse(pod, ctx, why).await?;
            }
            Choice::Bind(node) => {
                if self.is_preceded(ctx, pod, &nodes).await? {
                    // Its turn comes when the other has been bound.
                    waits();
                    return Ok(Action::done());
                }
                self.bind(pod, ctx, &node).await?;
                lock(&self.waiting).forget(ctx.key());
            }
            Choice::Tell(node, claims) => {
                lock(&self.waiting).told.insert(ctx.key().clone());
                for claim in claims {
                    let chosen = json!({ "metadata": { "annotations": { SELECTED_NODE: node } } });
                    self.claims_written.patch(ctx, &claim, chosen).await?;
                }
            }
        }
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        lock(&self.waiting).forget(key);
        Ok(())
    }
}

/// Whether the pod is ours to place.
fn wants_node(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let scheduler = spec
        .and_then(|spec| spec.scheduler_name.as_deref())
        .unwrap_or(NAME);
    let gated = spec
        .and_then(|spec| spec.scheduling_gates.as_ref())
        .is_some_and(|gates| !gates.is_empty());
    scheduler == NAME && !gated && pod::node_name(pod).is_none() && pod::is_active(pod)
}

/// Puts a condition in the place of the one of its type; its transition time stays with its status.
pub(crate) fn replace(status: &mut PodStatus, mut condition: PodCondition) {
    let conditions = status.conditions.get_or_insert_default();
    match conditions
        .iter_mut()
        .find(|old| old.type_ == condition.type_)
    {
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time.take();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

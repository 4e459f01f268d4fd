//! A small scheduler: every pod that wants a node gets one that takes it.
//!
//! It looks at pods that name no node and no other scheduler, and binds each to the node that
//! [`fit`] chooses. A pod that fits nowhere is told why in its condition PodScheduled, and is
//! looked at again whenever a node, its volumes or the room there is changes; of those that wait,
//! the more important ones come first. Nobody is sent away to make room.

mod fit;
mod neighbours;
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
    Access, Changed, Context, Controller, Declare, Event, Key, Next, Reads, Reconciled, Reconciler,
    Result, Select, Verb, Watched, Writes,
};

use self::fit::{Cluster, Placement};
use self::volumes::{SELECTED_NODE, Volumes};
use crate::pod;
use crate::protection::claims_of;

/// The name by which pods ask for this scheduler.
const NAME: &str = "default-scheduler";

/// The controller that binds pods to nodes. One pod at a time: each choice counts the ones before.
pub(crate) fn controller() -> Controller<Pod, Reconciled<Pod>> {
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
    /// Pods by uid that were bound, though the cache may not show it yet, and their nodes: the next
    /// choice has to count them.
    assumed: Mutex<BTreeMap<String, String>>,
    /// Pods that fit nowhere: to be looked at when others leave.
    waiting: Arc<Mutex<BTreeSet<Key>>>,
}

type Ctx = Context<Pod>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scheduler {
    fn declare(declare: &mut Declare<Pod>) -> Self {
        let waiting: Arc<Mutex<BTreeSet<Key>>> = Arc::default();
        let woken = Arc::clone(&waiting);
        let wake = move |change: Changed<'_, Pod>| {
            let makes_room = match change {
                Changed::Added(pod) => pod::node_name(pod).is_some(),
                // Neighbours may be wanted or not, so one that moves in counts too.
                Changed::Updated { old, new } => {
                    pod::node_name(old) != pod::node_name(new)
                        || pod::has_ended(old) != pod::has_ended(new)
                        || old.metadata.labels != new.metadata.labels
                }
                Changed::Deleted(_) => true,
            };
            if makes_room {
                lock(&woken).iter().cloned().collect()
            } else {
                Vec::new()
            }
        };
        Self {
            nodes: declare.reads(Node::waking_everyone()),
            pods: declare.reads(Pod::handled_by(wake)),
            namespaces: declare.reads(Namespace::waking_nobody()),
            claims: declare.reads(PersistentVolumeClaim::referenced_by(|pod: &Pod| {
                if wants_node(pod) {
                    claims_of(pod)
                } else {
                    Vec::new()
                }
            })),
            volumes: declare.reads(PersistentVolume::waking_nobody()),
            classes: declare.reads(StorageClass::waking_nobody()),
            written: declare.writes(
                Access::none()
                    .on("binding", [Verb::Create])
                    .on("status", [Verb::Patch]),
            ),
            claims_written: declare.writes(Access::to([Verb::Patch])),
            assumed: Mutex::default(),
            waiting,
        }
    }

    /// Forgets assumptions that the cache has caught up with; says whether this pod is one still.
    fn is_assumed(&self, pod: &Pod, pods: &[Pod]) -> bool {
        let unbound: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| pod::node_name(pod).is_none())
            .filter_map(|pod| pod.metadata.uid.as_deref())
            .collect();
        let mut assumed = lock(&self.assumed);
        assumed.retain(|uid, _| unbound.contains(uid.as_str()));
        pod.metadata
            .uid
            .as_ref()
            .is_some_and(|uid| assumed.contains_key(uid))
    }

    async fn volumes_of<T>(
        &self,
        ctx: &Ctx,
        pod: &Pod,
        look: impl FnOnce(&Volumes<'_>) -> T + Send,
    ) -> Result<T> {
        let names = claims_of(pod);
        if names.is_empty() {
            return Ok(look(&Volumes::default()));
        }
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let claims = self
            .claims
            .list(ctx, Select::all().within(namespace))
            .await?;
        let volumes = self.volumes.list(ctx, Select::all()).await?;
        let classes = self.classes.list(ctx, Select::all()).await?;
        Ok(look(&Volumes::of(&names, &claims, &volumes, &classes)))
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
        if let Some(uid) = pod.metadata.uid.clone() {
            lock(&self.assumed).insert(uid, node.to_owned());
        }
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

    /// Whether a pod that waits and comes before this one has a place now.
    async fn is_preceded(
        &self,
        ctx: &Ctx,
        pod: &Pod,
        cluster: &Cluster<'_>,
        pods: &[Pod],
    ) -> Result<bool> {
        let waiting = lock(&self.waiting).clone();
        let others = pods.iter().filter(|other| {
            wants_node(other) && waiting.contains(&Key::of(*other)) && fit::comes_before(other, pod)
        });
        for other in others {
            let placement = |volumes: &Volumes<'_>| {
                matches!(fit::place(other, cluster, volumes), Placement::Node(_))
            };
            if self.volumes_of(ctx, other, placement).await? {
                return Ok(true);
            }
        }
        Ok(false)
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

    async fn reconcile(&self, pod: &Pod, ctx: &Ctx) -> Result<Next> {
        if !wants_node(pod) {
            lock(&self.waiting).remove(ctx.key());
            return Ok(Next::settled());
        }
        let nodes = self.nodes.list(ctx, Select::all().everywhere()).await?;
        let pods = self.pods.list(ctx, Select::all().everywhere()).await?;
        let namespaces = self.namespaces.list(ctx, Select::all()).await?;
        if self.is_assumed(pod, &pods) {
            return Ok(Next::settled());
        }
        let assumed = lock(&self.assumed).clone();
        let placed = fit::placed(&pods, &assumed);
        let cluster = Cluster {
            nodes: &nodes,
            placed,
            namespaces: &namespaces,
        };
        let choice = self
            .volumes_of(ctx, pod, |volumes| choose(pod, &cluster, volumes))
            .await?;
        match choice {
            Choice::Refuse(why) => {
                lock(&self.waiting).insert(ctx.key().clone());
                self.refuse(pod, ctx, why).await?;
            }
            Choice::Bind(node) => {
                if self.is_preceded(ctx, pod, &cluster, &pods).await? {
                    // Its turn comes when the other has been bound.
                    lock(&self.waiting).insert(ctx.key().clone());
                    return Ok(Next::settled());
                }
                self.bind(pod, ctx, &node).await?;
                lock(&self.waiting).remove(ctx.key());
            }
            Choice::Tell(node, claims) => {
                for claim in claims {
                    let chosen = json!({ "metadata": { "annotations": { SELECTED_NODE: node } } });
                    self.claims_written.patch(ctx, &claim, chosen).await?;
                }
            }
        }
        Ok(Next::settled())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        lock(&self.waiting).remove(key);
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

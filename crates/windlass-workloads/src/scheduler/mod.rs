//! A small scheduler: every pod that wants a node gets one that takes it.
//!
//! It looks at pods that name no node and no other scheduler, and binds each to the node that
//! [`fit`] chooses. A pod that fits nowhere is told why in its condition PodScheduled, and is
//! looked at again whenever a node changes.

mod fit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::{
    Access, Context, Controller, Declare, Event, Next, Reads, Reconciled, Reconciler, Result,
    Select, Verb, Watched, Writes,
};

use self::fit::Placement;
use crate::pod;

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
    written: Writes<Pod>,
    /// Pods by uid that were bound, though the cache may not show it yet, and their nodes: the next
    /// choice has to count them.
    assumed: Mutex<BTreeMap<String, String>>,
}

impl Scheduler {
    fn declare(declare: &mut Declare<Pod>) -> Self {
        Self {
            nodes: declare.reads(Node::waking_everyone()),
            pods: declare.reads(Pod::waking_nobody()),
            written: declare.writes(
                Access::none()
                    .on("binding", [Verb::Create])
                    .on("status", [Verb::Patch]),
            ),
            assumed: Mutex::default(),
        }
    }

    fn assumed(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.assumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of pods on each node, those just bound included.
    fn load(&self, pods: &[Pod]) -> BTreeMap<String, usize> {
        let mut assumed = self.assumed();
        let unbound: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| pod::node_name(pod).is_none())
            .filter_map(|pod| pod.metadata.uid.as_deref())
            .collect();
        assumed.retain(|uid, _| unbound.contains(uid.as_str()));
        let shown = pods
            .iter()
            .filter(|pod| !pod::has_ended(pod))
            .filter_map(pod::node_name);
        let mut load: BTreeMap<String, usize> = BTreeMap::new();
        for node in shown.chain(assumed.values().map(String::as_str)) {
            *load.entry(node.to_owned()).or_default() += 1;
        }
        load
    }

    async fn bind(&self, pod: &Pod, ctx: &Context<Pod>, node: &str) -> Result<()> {
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
            self.assumed().insert(uid, node.to_owned());
        }
        ctx.event(Event::normal(
            "Scheduled",
            format!("Successfully assigned {} to {node}", ctx.key()),
        ));
        Ok(())
    }

    /// Tells that no node fits, unless that is known already.
    async fn refuse(&self, pod: &Pod, ctx: &Context<Pod>, message: String) -> Result<()> {
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
}

impl Reconciler for Scheduler {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Next> {
        if !wants_node(pod) {
            return Ok(Next::settled());
        }
        let nodes = self.nodes.list(ctx, Select::all().everywhere()).await?;
        let load = self.load(&self.pods.list(ctx, Select::all().everywhere()).await?);
        if pod
            .metadata
            .uid
            .as_ref()
            .is_some_and(|uid| self.assumed().contains_key(uid))
        {
            return Ok(Next::settled());
        }
        match fit::place(pod, &nodes, &load) {
            Placement::Node(node) => self.bind(pod, ctx, node).await?,
            Placement::Nowhere(why) => self.refuse(pod, ctx, why).await?,
        }
        Ok(Next::settled())
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
fn replace(status: &mut PodStatus, mut condition: PodCondition) {
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

//! The node lifecycle controllers: nodes that are not well are marked, and pods leave them.
//!
//! A node that has been silent for too long is not known to be ready ([`condition`]); taints say
//! what is wrong ([`taint`]), and pods that do not tolerate them leave ([`eviction`]). When a node
//! falls silent, its pods are not ready either, so that nobody sends them anything.

mod condition;
mod eviction;
mod taint;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Operator, Reconciler, Result, Watched,
    handle::{Access, Index, Reads, Verb, Writes},
    watch::{Scope, Select},
};

use self::condition::{Heard, value};
use crate::{cause, pod, scheduler};

/// Where the Leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// Adds the controllers of nodes.
pub(crate) fn add_to(operator: Operator) -> Operator {
    operator
        .controller(controller())
        .controller(eviction::controller())
}

fn controller() -> Controller<Node> {
    Controller::of_existing::<Node>()
        .named("node-lifecycle")
        .reports_as("node-controller")
        .reconciler(Nodes::declare)
}

struct Nodes {
    all: Reads<Node>,
    leases: Reads<Lease>,
    _pods: Reads<Pod>,
    pods_by_node: Index<Pod>,
    written: Writes<Node>,
    pods_written: Writes<Pod>,
    heard: Mutex<BTreeMap<Key, Heard>>,
}

type Ctx = Context<Node>;

impl Nodes {
    fn declare(declare: &mut Declare<Node>) -> Self {
        let leases = Lease::referenced_by(|node: &Node| {
            node.metadata
                .name
                .as_deref()
                .map(|name| Key::namespaced(LEASES, name))
        });
        let pods = declare.reads(Pod::triggering_none());
        let pods_by_node = declare.index(&pods, |pod: &Pod| pod::node_name(pod).map(str::to_owned));
        Self {
            all: declare.reads(Node::triggering_all()),
            leases: declare.reads(leases.scoped(Scope::all().namespace(LEASES))),
            _pods: pods,
            pods_by_node,
            written: declare.writes(Access::to([Verb::Patch]).on("status", [Verb::Patch])),
            pods_written: declare.writes(Access::none().on("status", [Verb::Patch])),
            heard: Mutex::default(),
        }
    }

    async fn hear(&self, ctx: &Ctx) -> Result<Option<Heard>> {
        let lease = self.leases.get(ctx, (LEASES, ctx.key().name())).await?;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let before = heard.get(ctx.key()).copied();
        let now = Heard::after(before, lease.as_deref(), ctx.clock().now());
        match now {
            Some(now) => heard.insert(ctx.key().clone(), now),
            None => heard.remove(ctx.key()),
        };
        Ok(now)
    }

    async fn make_pods_not_ready(&self, ctx: &Ctx) -> Result<()> {
        for pod in self.pods_by_node.find(ctx, ctx.key().name()).await? {
            if !pod::is_ready(&pod) {
                continue;
            }
            let mut status = pod.status.clone().unwrap_or_default();
            let ready = PodCondition {
                status: "False".to_owned(),
                last_transition_time: Some(ctx.clock().time()),
                ..pod::condition(&pod, "Ready").cloned().unwrap_or_default()
            };
            scheduler::replace(&mut status, ready);
            match self.pods_written.status(ctx, &pod, status).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Reconciler for Nodes {
    type Object = Node;

    async fn reconcile(&self, node: &Node, ctx: &Ctx) -> Result<Action> {
        let now = ctx.clock().now();
        let heard = self.hear(ctx).await?;
        let silent_at = heard.map(Heard::silent_at);
        let mut current = node.clone();
        if silent_at.is_some_and(|at| at <= now)
            && let Some(status) = condition::unknown(node, now)
        {
            // Pods first: once the node is told to be unknown, nobody looks at them again.
            if value(node, "Ready") == Some("True") {
                let told = format!("Node {} status is now: NodeNotReady", ctx.key().name());
                ctx.event(Event::normal("NodeNotReady", told));
                self.make_pods_not_ready(ctx).await?;
            }
            current = self.written.status(ctx, node, status).await?;
        }
        let all = self.all.list(ctx, Select::own_namespace()).await?;
        let sends_away = taint::sends_away(&current, &all);
        if let Some(taints) = taint::wanted(&current, sends_away, now) {
            // What was read must still hold: whoever else taints nodes is not undone.
            let patch = json!({
                "metadata": {"resourceVersion": current.metadata.resource_version},
                "spec": {"taints": taints},
            });
            cause::unless_pointless(self.written.patch(ctx, &current, patch).await)?;
        }
        Ok(silent_at
            .filter(|at| *at > now)
            .map_or(Action::done(), |at| Action::done().requeue_at(at)))
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
        Ok(())
    }
}

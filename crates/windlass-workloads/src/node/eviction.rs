//! Taint eviction: pods leave a node whose taints they do not tolerate, or not for longer.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, Taint, Toleration};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Reconciler, Result, Watched,
    handle::{Access, Delete, Reads, Verb, Writes},
    watch::Predicate,
};

use crate::toleration::{of_pod, taints, tolerates};
use crate::{pod, scheduler};

/// The controller that deletes pods that do not tolerate their node.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::of_existing::<Pod>()
        .named("taint-eviction")
        .reports_as("taint-eviction-controller")
        .reconciler(Evictions::declare)
}

struct Evictions {
    nodes: Reads<Node>,
    written: Writes<Pod>,
    /// When pods began to be where they should not, by uid.
    since: Mutex<BTreeMap<Key, (String, Timestamp)>>,
}

impl Evictions {
    fn declare(declare: &mut Declare<Pod>) -> Self {
        let node_of = |pod: &Pod| pod::node_name(pod).map(Key::cluster);
        // A node changes with every heartbeat; its pods are only concerned by what they tolerate.
        let tainted = Predicate::when(|old: Option<&Node>, new: Option<&Node>| {
            old.map(taints) != new.map(taints)
        });
        Self {
            nodes: declare.reads(Node::referenced_by(node_of).only(tainted)),
            written: declare.writes(Access::to([Verb::Delete]).on("status", [Verb::Patch])),
            since: Mutex::default(),
        }
    }

    /// Since when the pod has been where it should not; from now on if that is new.
    fn began(&self, key: &Key, uid: &str, now: Timestamp) -> Timestamp {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match since.get(key) {
            Some((known, began)) if known == uid => *began,
            _ => {
                since.insert(key.clone(), (uid.to_owned(), now));
                now
            }
        }
    }

    /// Forgets a pod; true if it was to be deleted.
    fn forget(&self, key: &Key) -> bool {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.remove(key).is_some()
    }

    async fn evict(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<()> {
        let told = format!("Marking for deletion Pod {}", ctx.key());
        ctx.event(Event::normal("TaintManagerEviction", told));
        let condition = PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            reason: Some("DeletionByTaintManager".to_owned()),
            message: Some("Taint manager: deleting due to NoExecute taint".to_owned()),
            last_transition_time: Some(ctx.clock().time()),
            ..PodCondition::default()
        };
        let mut status = pod.status.clone().unwrap_or_default();
        scheduler::replace(&mut status, condition);
        self.written.status(ctx, pod, status).await?;
        self.written.delete(ctx, pod, Delete::background()).await
    }
}

/// How long the pod may stay with these taints; `None` for ever.
fn may_stay(taints: &[Taint], tolerations: &[Toleration]) -> Option<SignedDuration> {
    let mut shortest: Option<i64> = None;
    for taint in taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let mut used = tolerations
            .iter()
            .filter(|one| tolerates(one, taint))
            .peekable();
        if used.peek().is_none() {
            return Some(SignedDuration::ZERO);
        }
        for seconds in used.filter_map(|one| one.toleration_seconds) {
            shortest = Some(
                shortest
                    .map_or(seconds, |shortest| shortest.min(seconds))
                    .max(0),
            );
        }
    }
    shortest.map(SignedDuration::from_secs)
}

impl Reconciler for Evictions {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        let Some(name) = pod::node_name(pod) else {
            return Ok(Action::done());
        };
        let node = self.nodes.get(ctx, name).await?;
        let stay = node.and_then(|node| may_stay(taints(&node), of_pod(pod)));
        let Some(stay) = stay else {
            if self.forget(ctx.key()) {
                let told = format!("Cancelling deletion of Pod {}", ctx.key());
                ctx.event(Event::normal("TaintManagerEviction", told));
            }
            return Ok(Action::done());
        };
        let now = ctx.clock().now();
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let at = self
            .began(ctx.key(), uid, now)
            .checked_add(stay)
            .unwrap_or(now);
        if at > now {
            return Ok(Action::done().requeue_at(at));
        }
        self.evict(pod, ctx).await?;
        self.forget(ctx.key());
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.forget(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stay(taints: Value, tolerations: Value) -> Option<i64> {
        let taints: Vec<Taint> = serde_json::from_value(taints).unwrap();
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
        may_stay(&taints, &tolerations).map(|stay| stay.as_secs())
    }

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates_every_taint() {
        let two = json!([
            {"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"},
            {"key": "c", "effect": "NoSchedule"},
        ]);
        let a = |seconds: Value| json!({"key": "a", "operator": "Exists", "tolerationSeconds": seconds});
        let b = json!({"key": "b", "operator": "Exists"});
        assert_eq!(stay(json!([]), json!([])), None);
        assert_eq!(stay(two.clone(), json!([b])), Some(0));
        assert_eq!(stay(two.clone(), json!([a(json!(5)), b])), Some(5));
        assert_eq!(stay(two.clone(), json!([a(Value::Null), b])), None);
        assert_eq!(stay(two, json!([a(json!(-1)), b])), Some(0));
    }
}

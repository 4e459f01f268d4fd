//! The node lifecycle controller: a node that is not ready is tainted, so that nothing more is sent
//! there, and one that is ready is not.
//!
//! The API server taints every new node; this takes the taint off once the node says it is ready.

use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::json;
use windlass::{
    Access, Context, Controller, Declare, Next, Reconciled, Reconciler, Result, Verb, Writes,
};

use crate::cause;

/// The taint of a node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

/// The controller of nodes' taints.
pub(crate) fn controller() -> Controller<Node, Reconciled<Node>> {
    Controller::of_existing::<Node>()
        .named("node-lifecycle")
        .reconciler(Nodes::declare)
}

struct Nodes {
    written: Writes<Node>,
}

impl Nodes {
    fn declare(declare: &mut Declare<Node>) -> Self {
        Self {
            written: declare.writes(Access::to([Verb::Patch])),
        }
    }
}

impl Reconciler for Nodes {
    type Object = Node;

    async fn reconcile(&self, node: &Node, ctx: &Context<Node>) -> Result<Next> {
        if let Some(taints) = wanted_taints(node) {
            // What was read must still hold: whoever else taints nodes is not undone.
            let patch = json!({
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": taints},
            });
            cause::unless_pointless(self.written.patch(ctx, node, patch).await)?;
        }
        Ok(Next::settled())
    }
}

/// The taints a node should have, when they are not those it has.
fn wanted_taints(node: &Node) -> Option<Vec<Taint>> {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let ready = conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    let taints = taints.unwrap_or_default();
    let is_ours = |taint: &Taint| taint.key == NOT_READY && taint.effect == EFFECT;
    match (ready, taints.iter().any(is_ours)) {
        (true, true) => Some(
            taints
                .iter()
                .filter(|taint| !is_ours(taint))
                .cloned()
                .collect(),
        ),
        (false, false) => {
            let ours = Taint {
                key: NOT_READY.to_owned(),
                effect: EFFECT.to_owned(),
                ..Taint::default()
            };
            Some(taints.iter().cloned().chain([ours]).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ready: &str, taints: &[&str]) -> Node {
        let taints: Vec<_> = taints
            .iter()
            .map(|key| json!({"key": key, "effect": EFFECT}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    fn keys(taints: Option<Vec<Taint>>) -> Option<Vec<String>> {
        taints.map(|taints| taints.into_iter().map(|taint| taint.key).collect())
    }

    #[test]
    fn a_ready_node_loses_the_taint_and_keeps_the_others() {
        let wanted = wanted_taints(&node("True", &["a", NOT_READY]));
        assert_eq!(keys(wanted), Some(vec!["a".to_owned()]));
        assert_eq!(wanted_taints(&node("True", &["a"])), None);
    }

    #[test]
    fn a_node_that_is_not_ready_has_it() {
        let wanted = wanted_taints(&node("Unknown", &["a"]));
        assert_eq!(
            keys(wanted),
            Some(vec!["a".to_owned(), NOT_READY.to_owned()])
        );
        assert_eq!(wanted_taints(&node("False", &[NOT_READY])), None);
    }
}

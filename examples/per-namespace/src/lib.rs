//! A controller of Nodes, which this operator does not define, that keeps a `ConfigMap` about each
//! Node in every namespace with a label.
//!
//! A Node is cluster-scoped, so it may own objects in any namespace, as long as they name it. What
//! is no longer wanted, because a namespace lost its label, is pruned; all of it goes with the Node.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::ResourceExt;
use windlass::{
    labels, object,
    prelude::*,
    watch::{Predicate, Scope, Selector},
};

/// Namespaces with this label get the maps.
pub const LABEL: &str = "example.com/node-info";

/// The operator.
pub fn operator() -> Operator {
    let labelled: Selector = labels([(LABEL, "wanted")]).into_iter().collect();
    Operator::new("per-namespace")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of_existing::<Node>()
                .only(Predicate::labels_changed())
                .reads(Namespace::triggering_all().scoped(Scope::all().labels(&labelled)))
                .dependent(maps),
        )
}

/// One in every namespace that is not going away.
fn maps(node: &Node, observed: &Observed) -> Vec<ConfigMap> {
    let namespaces = observed.read::<Namespace>();
    let active = namespaces.filter(|one| one.metadata.deletion_timestamp.is_none());
    let labels = node.labels().iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let map = |namespace: &Namespace| {
        object!(ConfigMap {
            metadata: { name: format!("node-{}", node.name_any()), namespace: namespace.name_any() },
            data: { "labels": labels.join("\n") },
        })
    };
    active.map(map).collect()
}

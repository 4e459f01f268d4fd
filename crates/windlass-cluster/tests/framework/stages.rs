//! What is declared after `when_ready` waits for what is declared before it.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::json;
use windlass::{Controller, Operator, labels, object};
use windlass_cluster::TestCluster;

use crate::stage::secret;

/// A deployment whose pods no node takes while the secret says so.
fn first(secret: &Secret) -> Deployment {
    let labels = labels([("app", secret.name_any())]);
    let held = secret.annotations().contains_key("held");
    let selector = held.then(|| windlass::labels([("no-such", "node")]));
    object!(Deployment {
        metadata: { name: secret.name_any() },
        spec: {
            selector: { match_labels: labels.clone() },
            template: {
                metadata: { labels: labels },
                spec: { node_selector: selector, containers: [{ name: "a", image: "a" }] },
            },
        },
    })
}

fn second(secret: &Secret) -> ConfigMap {
    object!(ConfigMap { metadata: { name: secret.name_any() } })
}

fn operator() -> Operator {
    let controller = Controller::of_existing::<Secret>()
        .dependent(first)
        .when_ready()
        .dependent(second);
    Operator::new("stages").controller(controller)
}

#[windlass_cluster::test]
async fn later_stage_waits_until_the_one_before_is_ready(cluster: TestCluster) {
    cluster.start(operator()).await;
    let mut held = secret("s");
    held.metadata.annotations = Some(labels([("held", "yes")]));
    cluster.create(held).await;
    cluster.settle().await;
    assert!(cluster.find::<Deployment>("s").await.is_some());
    assert!(cluster.find::<ConfigMap>("s").await.is_none());
    let free = json!({"metadata": {"annotations": {"held": null}}});
    cluster.patch::<Secret>("s", free).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("s").await.is_some());
    // What was made in a later stage stays while an earlier one is not ready again.
    let held = json!({"metadata": {"annotations": {"held": "yes"}}});
    cluster.patch::<Secret>("s", held).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("s").await.is_some());
}

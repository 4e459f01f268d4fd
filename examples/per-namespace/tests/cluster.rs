//! What the example promises, in a cluster.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::ResourceExt;
use per_namespace_operator::{LABEL, operator};
use serde_json::json;
use windlass::object;
use windlass_cluster::TestCluster;

async fn namespaces(cluster: &TestCluster) -> Vec<String> {
    let maps = cluster.list_all::<ConfigMap>().await;
    let maps = maps.iter().filter(|map| map.name_any() == "node-simulated");
    maps.filter_map(ResourceExt::namespace).collect()
}

async fn create(cluster: &TestCluster, name: &str) {
    cluster
        .create(object!(Namespace { metadata: { name: name, labels: { "example.com/node-info": "wanted" } } }))
        .await;
    cluster.settle().await;
}

#[windlass_cluster::test]
async fn every_labelled_namespace_has_a_map_of_the_node(cluster: TestCluster) {
    cluster.start(operator()).await;
    assert!(namespaces(&cluster).await.is_empty());
    create(&cluster, "one").await;
    create(&cluster, "two").await;
    assert_eq!(namespaces(&cluster).await, ["one", "two"]);

    cluster
        .patch::<Node>("simulated", json!({"metadata": {"labels": {"zone": "a"}}}))
        .await;
    cluster.settle().await;
    let map = cluster.get::<ConfigMap>(("two", "node-simulated")).await;
    assert!(
        map.data.unwrap()["labels"]
            .lines()
            .any(|label| label == "zone=a")
    );
}

#[windlass_cluster::test]
async fn map_goes_with_the_label_and_with_the_namespace(cluster: TestCluster) {
    cluster.start(operator()).await;
    create(&cluster, "one").await;
    create(&cluster, "two").await;
    cluster
        .patch::<Namespace>("one", json!({"metadata": {"labels": {LABEL: null}}}))
        .await;
    cluster.settle().await;
    assert_eq!(namespaces(&cluster).await, ["two"]);
    cluster.delete::<Namespace>("two").await;
    cluster.settle().await;
    assert!(namespaces(&cluster).await.is_empty());
    assert!(cluster.find::<Namespace>("two").await.is_none());
}

//! What a test can do to the simulated node, and what its pods say then.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::{Value, json};
use windlass_cluster::{TestCluster, seconds};

fn pod(name: &str, container: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }))
    .unwrap()
}

fn container() -> Value {
    json!({"name": "main", "image": "x", "readinessProbe": {"tcpSocket": {"port": 80}}})
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions
        .filter(|condition| condition.type_ == "Ready")
        .any(|condition| condition.status == "True")
}

fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|s| s.container_statuses.as_deref());
    statuses
        .and_then(|s| s.first())
        .map_or(-1, |s| s.restart_count)
}

#[windlass_cluster::test]
async fn a_killed_container_starts_again(cluster: TestCluster) {
    cluster.create(pod("one", &container())).await;
    cluster.settle().await;
    let node = cluster.node();
    node.kill_container("default", "one", "main").unwrap();
    cluster.settle().await;
    let pod: Pod = cluster.get("one").await;
    assert!(is_ready(&pod) && restarts(&pod) == 1);
    let last = pod.status.unwrap().container_statuses.unwrap().remove(0);
    let ended = last.last_state.unwrap().terminated.unwrap();
    assert_eq!(ended.exit_code, 137);
    node.lose_disk("default", "one").unwrap();
    cluster.settle().await;
    let pod: Pod = cluster.get("one").await;
    assert!(is_ready(&pod) && restarts(&pod) == 2);
    assert!(node.kill_container("default", "two", "main").is_err());
}

#[windlass_cluster::test]
async fn a_pod_without_a_network_is_not_ready(cluster: TestCluster) {
    cluster.create(pod("probed", &container())).await;
    cluster
        .create(pod("unprobed", &json!({"name": "main", "image": "x"})))
        .await;
    cluster.settle().await;
    let node = cluster.node();
    for name in ["probed", "unprobed"] {
        node.cut_network("default", name).unwrap();
    }
    cluster.settle().await;
    assert!(!is_ready(&cluster.get("probed").await));
    assert!(
        is_ready(&cluster.get("unprobed").await),
        "nobody asks over the network"
    );
    node.restore_network("default", "probed").unwrap();
    cluster.settle().await;
    let pod: Pod = cluster.get("probed").await;
    assert!(is_ready(&pod) && restarts(&pod) == 0);
}

#[windlass_cluster::test]
async fn a_silent_node_reports_nothing_until_it_answers(cluster: TestCluster) {
    cluster.create(pod("before", &container())).await;
    cluster.settle().await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    assert!(leases.get_opt("simulated").await.unwrap().is_none());
    cluster.node().stop_answering();
    cluster.create(pod("during", &container())).await;
    cluster
        .node()
        .kill_container("default", "before", "main")
        .unwrap();
    cluster.advance(seconds(30)).await;
    let before: Pod = cluster.get("before").await;
    assert_eq!(
        restarts(&before),
        0,
        "its pods are as they were last heard of"
    );
    let during: Pod = cluster.get("during").await;
    assert!(!is_ready(&during));
    // What a controller needs to notice it: a Lease that nobody renews.
    assert!(leases.get_opt("simulated").await.unwrap().is_some());
    cluster.node().answer();
    cluster.settle().await;
    let before: Pod = cluster.get("before").await;
    assert!(is_ready(&before) && restarts(&before) == 1);
    assert!(is_ready(&cluster.get("during").await));
    assert!(leases.get_opt("simulated").await.unwrap().is_none());
}

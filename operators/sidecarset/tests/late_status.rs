//! What the status of a pod says is older than what was sent to it. A bad image must not reach a
//! second pod because the first still looks well.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use sidecarset_operator::{SidecarSet, operator};
use windlass_cluster::{Failure, TestCluster, minutes, seconds};

const BAD: &str = "log:bad";

fn set(image: &str) -> SidecarSet {
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
        "metadata": { "name": "logs" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "containers": [{ "name": "log", "image": image }],
        },
    }))
    .unwrap()
}

/// A set with `log:1` and three pods, `web-2` the youngest, which is the first to be upgraded.
async fn begin(cluster: &TestCluster) {
    cluster.node().remove_image(BAD, "there is no such image");
    cluster.start(operator()).await;
    cluster.create(set("log:1")).await;
    cluster.settle().await;
    for number in 0..3 {
        let pod: Value = json!({
            "metadata": { "name": format!("web-{number}"), "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
        });
        cluster
            .create(serde_json::from_value::<Pod>(pod).unwrap())
            .await;
        cluster.advance(seconds(5)).await;
    }
}

async fn release(cluster: &TestCluster, image: &str) {
    let containers = json!([{ "name": "log", "image": image }]);
    let patch = json!({ "spec": { "containers": containers } });
    cluster.patch::<SidecarSet>("logs", patch).await;
}

/// The images of the sidecars, by pod.
async fn images(cluster: &TestCluster) -> Vec<String> {
    let mut pods = cluster.list::<Pod>().await;
    pods.sort_by_key(ResourceExt::name_any);
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
    pods.iter().filter_map(image).collect()
}

async fn updated_and_ready(cluster: &TestCluster) -> (i32, i32) {
    let status = cluster.get::<SidecarSet>("logs").await.status.unwrap();
    (status.updated_pods, status.updated_ready_pods)
}

#[windlass_cluster::test]
async fn bad_image_with_a_late_status_of_a_restart_reaches_one_pod(cluster: TestCluster) {
    begin(&cluster).await;
    cluster.delay_node("pods", seconds(25));
    // The old sidecar of the first pod is started again, and the status of that comes only after the
    // image was sent: another container id, ready, and still the old image.
    cluster.fail(
        Failure::with(503)
            .on("pods/status")
            .writes()
            .lasting(seconds(10)),
    );
    cluster.node().crash("default", "web-2", "log", 1).unwrap();
    tokio::time::sleep(seconds(5)).await;
    release(&cluster, BAD).await;
    cluster.advance(minutes(5)).await;
    assert_eq!(images(&cluster).await, ["log:1", "log:1", BAD]);
    cluster.delay_node("pods", seconds(0));
    release(&cluster, "log:2").await;
    cluster.advance(minutes(10)).await;
    assert_eq!(images(&cluster).await, ["log:2"; 3]);
    assert_eq!(updated_and_ready(&cluster).await, (3, 3));
}

#[windlass_cluster::test]
async fn bad_image_sent_before_the_first_start_reaches_one_pod(cluster: TestCluster) {
    begin(&cluster).await;
    let pod: Value = json!({
        "metadata": { "name": "web-3", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
    });
    cluster.delay_node("pods", seconds(20));
    cluster
        .create(serde_json::from_value::<Pod>(pod).unwrap())
        .await;
    tokio::time::sleep(seconds(15)).await;
    // It has no container yet, so it goes first; the node starts the old image before it sees the bad
    // one.
    release(&cluster, BAD).await;
    cluster.advance(minutes(5)).await;
    assert_eq!(images(&cluster).await, ["log:1", "log:1", "log:1", BAD]);
}

#[windlass_cluster::test]
async fn bad_image_with_slow_watches_reaches_one_pod(cluster: TestCluster) {
    begin(&cluster).await;
    cluster.delay_watch("sidecarset-operator", "pods", seconds(20));
    cluster.delay_node("pods", seconds(10));
    release(&cluster, BAD).await;
    tokio::time::sleep(seconds(5)).await;
    cluster.restart_operators().await;
    cluster.advance(minutes(5)).await;
    assert_eq!(images(&cluster).await, ["log:1", "log:1", BAD]);
}

#[windlass_cluster::test]
async fn image_taken_back_before_the_node_saw_it_is_ready_again(cluster: TestCluster) {
    begin(&cluster).await;
    cluster.delay_node("pods", seconds(20));
    release(&cluster, BAD).await;
    tokio::time::sleep(seconds(2)).await;
    release(&cluster, "log:1").await;
    cluster.advance(minutes(5)).await;
    assert_eq!(images(&cluster).await, ["log:1"; 3]);
    assert_eq!(updated_and_ready(&cluster).await, (3, 3));
}

#[windlass_cluster::test]
async fn bad_image_after_a_good_one_the_node_has_not_seen_reaches_one_pod(cluster: TestCluster) {
    begin(&cluster).await;
    cluster.delay_node("pods", seconds(20));
    release(&cluster, "log:2").await;
    tokio::time::sleep(seconds(10)).await;
    release(&cluster, BAD).await;
    cluster.advance(minutes(5)).await;
    assert_eq!(images(&cluster).await, ["log:1", "log:1", BAD]);
}

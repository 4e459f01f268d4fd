//! Virtual time: it passes when asked to, and a cluster that is never done says why.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt as _;
use serde_json::json;
use windlass_cluster::{Delays, TestCluster, hours, minutes, seconds};

use crate::operators::{hopeless, wish};

/// When an object was created.
fn created(secret: &Secret) -> jiff::Timestamp {
    secret.creation_timestamp().expect("a time").0
}

#[windlass_cluster::test]
async fn advancing_moves_the_servers_clock(cluster: TestCluster) {
    let before = cluster.create(wish("before")).await;
    let begun = std::time::Instant::now();
    cluster.advance(hours(24)).await;
    assert!(begun.elapsed() < minutes(1), "nobody waited for a day");
    let after = cluster.create(wish("after")).await;
    let passed = created(&after).duration_since(created(&before));
    assert!(passed.as_secs() >= 24 * 3600, "{passed}");
    assert!(passed.as_secs() <= 24 * 3600 + 60, "{passed}");
}

#[windlass_cluster::test]
async fn settling_waits_for_what_is_due_later(cluster: TestCluster) {
    cluster.node().set_delays(Delays {
        ready: minutes(20),
        ..Delays::default()
    });
    let pod = json!({
        "metadata": { "name": "slow" },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    });
    cluster
        .create::<Pod>(serde_json::from_value(pod).unwrap())
        .await;
    cluster.settle().await;
    let status = cluster.get::<Pod>("slow").await.status.unwrap();
    let is_ready = |condition: &k8s_openapi::api::core::v1::PodCondition| {
        condition.type_ == "Ready" && condition.status == "True"
    };
    assert!(status.conditions.unwrap().iter().any(is_ready));
}

#[windlass_cluster::test]
async fn settling_does_not_wait_for_what_only_looks_again(cluster: TestCluster) {
    cluster
        .node()
        .remove_image("missing", "there is no such image");
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "missing" }] },
            },
        },
    });
    cluster
        .create::<Deployment>(serde_json::from_value(deployment).unwrap())
        .await;
    cluster.settle().await;
    let progress = |deployment: Deployment| {
        let conditions = deployment.status.unwrap().conditions.unwrap();
        let progressing = conditions
            .into_iter()
            .find(|condition| condition.type_ == "Progressing");
        progressing.unwrap().reason.unwrap()
    };
    assert_eq!(
        progress(cluster.get("web").await),
        "ReplicaSetUpdated",
        "the deadline of ten minutes is not waited for"
    );
    cluster.advance(minutes(10) + seconds(5)).await;
    assert_eq!(
        progress(cluster.get("web").await),
        "ProgressDeadlineExceeded"
    );
}

#[windlass_cluster::test]
#[should_panic(expected = "still at work: [\n    \"secret will try default/doomed again (in ")]
async fn a_cluster_that_never_settles_names_what_is_still_at_work(cluster: TestCluster) {
    cluster.start(hopeless()).await;
    cluster.create(wish("doomed")).await;
    cluster.settle().await;
}

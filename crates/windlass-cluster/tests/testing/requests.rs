//! The log of requests, and operators that are started again.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass_cluster::{Request, TestCluster, Verb, seconds};

use crate::operators::{diligent, wish};

fn writes(requests: &[Request]) -> Vec<(Verb, &str, &str)> {
    requests
        .iter()
        .filter(|request| request.verb.writes())
        .map(|request| {
            (
                request.verb,
                request.resource.as_str(),
                request.name.as_str(),
            )
        })
        .collect()
}

#[windlass_cluster::test]
async fn an_operators_requests_are_told_from_those_of_others(cluster: TestCluster) {
    cluster.start(diligent()).await;
    cluster.create(wish("one")).await;
    cluster.settle().await;
    let requests = cluster.requests_of("diligent");
    assert_eq!(
        writes(&requests),
        [
            (Verb::Patch, "configmaps", "one-first"),
            (Verb::Patch, "configmaps", "one-second"),
        ]
    );
    assert!(requests.iter().all(|request| request.code < 300));
    assert!(requests.len() < cluster.requests().len());
    assert_eq!(cluster.requests_of("nobody"), []);
}

#[windlass_cluster::test]
async fn a_restarted_operator_watches_anew_and_writes_nothing(cluster: TestCluster) {
    cluster.start(diligent()).await;
    cluster.create(wish("one")).await;
    cluster.settle().await;
    let before = cluster.requests_of("diligent").len();
    cluster.restart_operators().await;
    let later = cluster.requests_of("diligent").split_off(before);
    let mut listed: Vec<&str> = later
        .iter()
        .filter(|request| request.verb == Verb::Watch)
        .map(|request| request.resource.as_str())
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, ["configmaps", "secrets"]);
    assert_eq!(writes(&later), []);
    cluster.create(wish("two")).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("two-second").await.is_some());
}

#[windlass_cluster::test]
async fn clones_are_the_same_cluster(cluster: TestCluster) {
    cluster.clone().create(wish("one")).await;
    assert!(cluster.find::<Secret>("one").await.is_some());
}

#[windlass_cluster::test]
async fn a_dropped_cluster_leaves_nothing_running(cluster: TestCluster) {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    cluster.start(diligent()).await;
    assert_ne!(tasks(), 0);
    drop(cluster);
    // Ended tasks are let go of when the runtime next looks at them.
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(tasks(), 0);
}

//! What `--cascade=orphan` left behind belongs to the next owner that selects it.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::sleep;
use windlass_cluster::{TestCluster, minutes};

use crate::scene::{Namespaced, web};

fn api<K: Namespaced>(cluster: &TestCluster) -> Api<K> {
    Api::namespaced(cluster.client(), "default")
}

async fn create<K: Namespaced + serde::Serialize>(cluster: &TestCluster, object: &Value) -> String {
    let object: K = serde_json::from_value(object.clone()).expect("a valid object");
    let api = api::<K>(cluster);
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("created").uid().expect("a uid")
}

/// Creates an owner, deletes it orphaning, and creates it again; returns the uid of the second.
async fn create_twice<K: Namespaced + serde::Serialize>(
    cluster: &TestCluster,
    owner: &Value,
) -> String {
    create::<K>(cluster, owner).await;
    cluster.settle().await;
    let uid = create_after_orphaning::<K>(cluster, owner).await;
    cluster.settle().await;
    uid
}

/// Deletes an owner, orphaning, and creates it again as soon as it is gone; returns the new uid.
async fn create_after_orphaning<K: Namespaced + serde::Serialize>(
    cluster: &TestCluster,
    owner: &Value,
) -> String {
    let api = api::<K>(cluster);
    let orphan = DeleteParams::orphan();
    api.delete("web", &orphan).await.expect("deleted");
    while api.get_opt("web").await.expect("an answer").is_some() {
        sleep(Duration::from_millis(10)).await;
    }
    create::<K>(cluster, owner).await
}

/// Checks that there are this many objects of a kind, all of which this owner controls.
async fn assert_all_controlled<K: Namespaced>(cluster: &TestCluster, uid: &str, count: usize) {
    let list = api::<K>(cluster).list(&ListParams::default()).await;
    let all = list.expect("a list").items;
    assert_eq!(all.len(), count, "{}", K::plural(&()));
    for one in all {
        let owners = one.owner_references();
        let controlled = owners.iter().any(|owner| owner.uid == uid);
        assert!(
            controlled,
            "{} {} has {owners:?}",
            K::kind(&()),
            one.name_any()
        );
    }
}

fn owner(mut spec: Value) -> Value {
    spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    spec["template"] = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    });
    json!({ "metadata": { "name": "web" }, "spec": spec })
}

#[windlass_cluster::test]
async fn stateful_set_created_again_adopts_pods_and_revisions(cluster: TestCluster) {
    let set = owner(json!({ "replicas": 2, "serviceName": "web" }));
    let uid = create_twice::<StatefulSet>(&cluster, &set).await;
    assert_all_controlled::<Pod>(&cluster, &uid, 2).await;
    assert_all_controlled::<ControllerRevision>(&cluster, &uid, 1).await;
}

#[windlass_cluster::test]
async fn stateful_set_created_again_adopts_pods_that_are_not_ready(cluster: TestCluster) {
    let mut set = owner(json!({ "replicas": 2, "serviceName": "web" }));
    set["spec"]["template"]["spec"]["schedulerName"] = json!("absent");
    let uid = create_twice::<StatefulSet>(&cluster, &set).await;
    assert_all_controlled::<Pod>(&cluster, &uid, 1).await;
    assert_all_controlled::<ControllerRevision>(&cluster, &uid, 1).await;
}

#[windlass_cluster::test]
async fn daemon_set_created_again_adopts_pods_and_revisions(cluster: TestCluster) {
    let uid = create_twice::<DaemonSet>(&cluster, &owner(json!({}))).await;
    assert_all_controlled::<Pod>(&cluster, &uid, 1).await;
    assert_all_controlled::<ControllerRevision>(&cluster, &uid, 1).await;
}

#[windlass_cluster::test]
async fn replica_set_created_again_adopts_pods(cluster: TestCluster) {
    let uid = create_twice::<ReplicaSet>(&cluster, &owner(json!({ "replicas": 2 }))).await;
    assert_all_controlled::<Pod>(&cluster, &uid, 2).await;
}

#[windlass_cluster::test]
async fn deployment_created_again_adopts_replica_set(cluster: TestCluster) {
    let uid = create_twice::<Deployment>(&cluster, &web(2, "a")).await;
    assert_all_controlled::<ReplicaSet>(&cluster, &uid, 1).await;
}

/// The new owner may be there before its controller, or the collector, has heard of the old one's end.
#[test]
fn stateful_set_created_again_adopts_pods_when_watches_are_late_at_random() {
    for seed in 1..=5 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(async {
            let cluster = TestCluster::new(seed).await;
            cluster.delay_watches_at_random(Duration::from_secs(3));
            let set = owner(json!({ "replicas": 2, "serviceName": "web" }));
            create::<StatefulSet>(&cluster, &set).await;
            sleep(minutes(3)).await;
            let uid = create_after_orphaning::<StatefulSet>(&cluster, &set).await;
            sleep(minutes(3)).await;
            assert_all_controlled::<Pod>(&cluster, &uid, 2).await;
            assert_all_controlled::<ControllerRevision>(&cluster, &uid, 1).await;
        });
    }
}

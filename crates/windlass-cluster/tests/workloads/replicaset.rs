//! `ReplicaSets` of their own.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::scene::web;
use crate::stage::play;

fn set(replicas: i32) -> Value {
    let mut set = web(replicas, "a");
    set["kind"] = json!("ReplicaSet");
    set
}

fn ready(set: &ReplicaSet) -> Option<i32> {
    set.status.as_ref()?.ready_replicas
}

fn stray() -> Value {
    json!({
        "metadata": { "name": "stray", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    })
}

fn is_owned(pod: &Pod, set: &ReplicaSet) -> bool {
    let mut owners = pod.owner_references().iter();
    owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
}

#[test]
fn a_stray_pod_is_adopted() {
    play("adopted", async |scene| {
        scene.create::<Pod>(stray()).await;
        scene.create::<ReplicaSet>(set(2)).await;
        let set = scene
            .until::<ReplicaSet>("web", "ready", |set| ready(set) == Some(2))
            .await;
        let stray = scene.find::<Pod>("stray").await.unwrap();
        assert!(is_owned(&stray, &set));
        assert_eq!(scene.pods().await.len(), 2, "the stray counts");
    });
}

#[test]
fn a_pod_that_no_longer_matches_is_released_and_replaced() {
    play("released", async |scene| {
        scene.create::<ReplicaSet>(set(2)).await;
        let set = scene
            .until::<ReplicaSet>("web", "ready", |set| ready(set) == Some(2))
            .await;
        let released = scene.pods().await.remove(0).name_any();
        let relabel = json!({ "metadata": { "labels": { "app": "other" } } });
        scene.patch::<Pod>(&released, relabel).await;
        scene
            .until::<Pod>(&released, "released", |pod| !is_owned(pod, &set))
            .await;
        scene
            .until_all::<Pod>("one released and two owned", |pods| {
                pods.len() == 3 && pods.iter().filter(|pod| is_owned(pod, &set)).count() == 2
            })
            .await;
    });
}

#[test]
fn a_ready_pod_is_available_only_after_a_while() {
    play("available-later", async |scene| {
        let mut patient = set(2);
        patient["spec"]["minReadySeconds"] = json!(2);
        scene.create::<ReplicaSet>(patient).await;
        let counts = |set: &ReplicaSet| {
            let status = set.status.clone().unwrap_or_default();
            (status.ready_replicas, status.available_replicas)
        };
        scene
            .until::<ReplicaSet>("web", "ready", |set| counts(set) == (Some(2), None))
            .await;
        scene
            .until::<ReplicaSet>("web", "available", |set| counts(set) == (Some(2), Some(2)))
            .await;
    });
}

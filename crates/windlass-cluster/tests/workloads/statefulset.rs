//! `StatefulSets`: pods with names and storage of their own.

mod rollout;
mod storage;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{Scene, idle};
use crate::stage::play;

/// A set whose pods a node runs.
fn db(replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "db" },
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "labels": { "app": "db" } },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

/// A set whose pods nobody runs.
fn still(replicas: i32) -> Value {
    let mut set = db(replicas, "a");
    set["spec"]["template"]["spec"] = idle();
    set
}

async fn scale(scene: &Scene, replicas: i32) {
    let patch = json!({ "spec": { "replicas": replicas } });
    scene.patch::<StatefulSet>("db", patch).await;
}

/// Waits until the set has this many pods, all ready and of the newest revision.
async fn until_settled(scene: &Scene, replicas: i32) -> StatefulSet {
    let is = |set: &StatefulSet| {
        set.status.as_ref().is_some_and(|status| {
            // Kubernetes' controller may write what it knows of a set that is gone to the next of
            // its name, whose generation is lower; kubectl is content with that, too.
            status.observed_generation >= set.metadata.generation
                && status.replicas == replicas
                && status.ready_replicas.unwrap_or(0) == replicas
                && status.updated_replicas.unwrap_or(0) == replicas
                && status.current_revision == status.update_revision
        })
    };
    scene.until::<StatefulSet>("db", "settled", is).await
}

#[test]
fn pods_come_one_by_one_and_each_waits_for_the_one_before() {
    play("one-by-one", async |scene| {
        scene.create::<StatefulSet>(still(3)).await;
        scene.until_pods(&["db-0"]).await;
        scene.make_ready("db-0").await;
        scene.until_pods(&["db-0", "db-1"]).await;
        scene.make_ready("db-1").await;
        scene.until_pods(&["db-0", "db-1", "db-2"]).await;
        scene.make_ready("db-2").await;
        let set = until_settled(scene, 3).await;
        assert_eq!(set.status.unwrap().available_replicas, Some(3));
    });
}

#[test]
fn parallel_pods_come_at_once() {
    play("parallel", async |scene| {
        let mut set = still(3);
        set["spec"]["podManagementPolicy"] = json!("Parallel");
        scene.create::<StatefulSet>(set).await;
        scene.until_pods(&["db-0", "db-1", "db-2"]).await;
        scale(scene, 1).await;
        scene.until_pods(&["db-0"]).await;
    });
}

#[test]
fn a_pod_knows_who_it_is() {
    play("identity", async |scene| {
        let set = scene.create::<StatefulSet>(db(2, "a")).await;
        let settled = until_settled(scene, 2).await;
        let pod = scene.find::<Pod>("db-1").await.unwrap();
        let labels = pod.labels();
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-1");
        assert_eq!(labels["apps.kubernetes.io/pod-index"], "1");
        let revision = settled.status.unwrap().update_revision;
        assert_eq!(labels.get("controller-revision-hash"), revision.as_ref());
        let [owner] = pod.owner_references() else {
            panic!("one owner")
        };
        assert_eq!(Some(&owner.uid), set.metadata.uid.as_ref());
        assert_eq!(
            (owner.controller, owner.block_owner_deletion),
            (Some(true), Some(true))
        );
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("db-"));
        let spec = pod.spec.unwrap();
        assert_eq!(spec.hostname.as_deref(), Some("db-1"));
        assert_eq!(spec.subdomain.as_deref(), Some("db"));
        let told = "Create Pod db-1 in StatefulSet db successful";
        scene.until_told("db", "SuccessfulCreate", told).await;
    });
}

#[test]
fn pods_go_from_the_end_one_by_one() {
    play("from-the-end", async |scene| {
        scene.create::<StatefulSet>(db(3, "a")).await;
        until_settled(scene, 3).await;
        scale(scene, 1).await;
        scene.until_gone::<Pod>("db-2").await;
        scene.until_gone::<Pod>("db-1").await;
        until_settled(scene, 1).await;
        assert_eq!(scene.pod_names().await, ["db-0"]);
        scene
            .until_told(
                "db",
                "SuccessfulDelete",
                "Delete Pod db-2 in StatefulSet db successful",
            )
            .await;
    });
}

#[test]
fn a_lost_or_ended_pod_comes_back_under_its_name() {
    play("comes-back", async |scene| {
        scene.create::<StatefulSet>(still(1)).await;
        let [first] = &scene.until_pods(&["db-0"]).await[..] else {
            panic!("one pod")
        };
        scene.end("db-0", 1).await;
        let is_new = |pod: &Pod| pod.uid() != first.uid();
        let second = scene.until::<Pod>("db-0", "replaced", is_new).await;
        scene.delete::<Pod>("db-0", &DeleteParams::default()).await;
        let is_new = |pod: &Pod| pod.uid() != second.uid();
        scene.until::<Pod>("db-0", "replaced again", is_new).await;
    });
}

#[test]
fn ordinals_begin_where_they_are_told_to() {
    play("ordinals", async |scene| {
        let mut set = db(2, "a");
        set["spec"]["ordinals"] = json!({ "start": 3 });
        scene.create::<StatefulSet>(set).await;
        until_settled(scene, 2).await;
        assert_eq!(scene.pod_names().await, ["db-3", "db-4"]);
        let patch = json!({ "spec": { "ordinals": { "start": 4 } } });
        scene.patch::<StatefulSet>("db", patch).await;
        scene.until_pods(&["db-4", "db-5"]).await;
        until_settled(scene, 2).await;
    });
}

#[test]
fn the_next_pod_waits_until_the_one_before_is_available() {
    play("available-first", async |scene| {
        let mut set = still(2);
        set["spec"]["minReadySeconds"] = json!(3);
        scene.create::<StatefulSet>(set).await;
        scene.until_pods(&["db-0"]).await;
        scene.make_ready("db-0").await;
        let counts = |set: &StatefulSet| {
            let status = set.status.clone().unwrap_or_default();
            (status.ready_replicas, status.available_replicas)
        };
        let ready = |set: &StatefulSet| counts(set) == (Some(1), Some(0));
        scene.until::<StatefulSet>("db", "ready", ready).await;
        assert_eq!(scene.pod_names().await, ["db-0"]);
        let available = |set: &StatefulSet| counts(set) == (Some(1), Some(1));
        scene
            .until::<StatefulSet>("db", "available", available)
            .await;
        scene.until_pods(&["db-0", "db-1"]).await;
    });
}

#[test]
fn pods_left_behind_are_taken_over() {
    play("left-behind", async |scene| {
        scene.create::<StatefulSet>(db(2, "a")).await;
        until_settled(scene, 2).await;
        let before: Vec<_> = scene.pods().await.iter().map(Pod::uid).collect();
        scene
            .delete::<StatefulSet>("db", &DeleteParams::orphan())
            .await;
        scene.until_gone::<StatefulSet>("db").await;
        assert_eq!(scene.pod_names().await, ["db-0", "db-1"]);
        let again = scene.create::<StatefulSet>(db(2, "a")).await;
        until_settled(scene, 2).await;
        let pods = scene.pods().await;
        let after: Vec<_> = pods.iter().map(Pod::uid).collect();
        assert_eq!(after, before);
        let owners = pods.iter().flat_map(Pod::owner_references);
        assert!(
            owners
                .map(|owner| &owner.uid)
                .all(|uid| Some(uid) == again.metadata.uid.as_ref())
        );
    });
}

#[test]
fn a_pod_that_matches_but_is_not_named_after_it_is_none_of_its_pods() {
    play("stranger", async |scene| {
        let stranger = json!({
            "metadata": { "name": "stranger", "labels": { "app": "db" } },
            "spec": idle(),
        });
        scene.create::<Pod>(stranger).await;
        scene.create::<StatefulSet>(db(1, "a")).await;
        until_settled(scene, 1).await;
        assert_eq!(scene.pod_names().await, ["db-0", "stranger"]);
        let stranger = scene.find::<Pod>("stranger").await.unwrap();
        assert_eq!(stranger.owner_references(), []);
    });
}

//! What the controllers do, one behaviour each.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::cluster::{Cluster, annotation, image, reason, web};
use crate::kubelet::Kubelet;

const REVISION: &str = "deployment.kubernetes.io/revision";

pub(crate) async fn a_namespace_gets_its_account_and_certificate(cluster: &Cluster) {
    let scene = cluster.namespace("account-and-certificate").await;
    let is_whole = |map: &ConfigMap| {
        map.data
            .as_ref()
            .and_then(|data| data.get("ca.crt"))
            .map(String::as_str)
            == Some("a certificate")
    };
    scene
        .until::<ConfigMap>("kube-root-ca.crt", "published", is_whole)
        .await;
    scene
        .patch::<ConfigMap>(
            "kube-root-ca.crt",
            json!({ "data": { "ca.crt": "spoilt", "x": "y" } }),
        )
        .await;
    let map = scene
        .until::<ConfigMap>("kube-root-ca.crt", "repaired", is_whole)
        .await;
    assert_eq!(map.data.unwrap().len(), 1);
    scene
        .delete::<ConfigMap>("kube-root-ca.crt", &DeleteParams::default())
        .await;
    scene
        .until::<ConfigMap>("kube-root-ca.crt", "published again", is_whole)
        .await;
}

pub(crate) async fn a_pod_that_fits_nowhere_is_told_why(cluster: &Cluster) {
    let scene = cluster.namespace("fits-nowhere").await;
    scene
        .create::<Pod>(json!({
            "metadata": { "name": "lonely" },
            "spec": { "containers": [{ "name": "main", "image": "a" }] },
        }))
        .await;
    scene
        .until::<Pod>("lonely", "refused", |pod| {
            let conditions = pod
                .status
                .iter()
                .flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|condition| {
                condition.type_ == "PodScheduled"
                    && condition.reason.as_deref() == Some("Unschedulable")
                    && condition.message.as_deref() == Some("no nodes available to schedule pods")
            })
        })
        .await;
}

pub(crate) async fn a_deployment_becomes_available(cluster: &Cluster) {
    let scene = cluster.namespace("becomes-available").await;
    scene.create::<Deployment>(web(3, "a")).await;
    let deployment = scene.until_rolled_out("web").await;
    assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
    assert_eq!(annotation(&deployment, REVISION), "1");
    assert_eq!(
        deployment.metadata.generation,
        Some(1),
        "the revision bumps no generation"
    );
    let [set] = &scene.sets().await[..] else {
        panic!("one replica set")
    };
    let hash = set.metadata.labels.as_ref().unwrap()["pod-template-hash"].clone();
    assert_eq!(
        set.metadata.name.as_deref(),
        Some(format!("web-{hash}").as_str())
    );
    assert_eq!(annotation(set, REVISION), "1");
    assert_eq!(
        annotation(set, "deployment.kubernetes.io/desired-replicas"),
        "3"
    );
    assert_eq!(
        annotation(set, "deployment.kubernetes.io/max-replicas"),
        "4"
    );
    assert_eq!(annotation(set, "team"), "blue");
    let pods = scene.pods().await;
    assert_eq!(pods.len(), 3);
    for pod in pods {
        assert_eq!(pod.metadata.labels.unwrap()["pod-template-hash"], hash);
        assert!(
            pod.metadata
                .name
                .unwrap()
                .starts_with(&format!("web-{hash}-"))
        );
        let [owner] = &pod.metadata.owner_references.unwrap()[..] else {
            panic!("one owner")
        };
        assert_eq!(
            (owner.controller, owner.block_owner_deletion),
            (Some(true), Some(true))
        );
    }
}

pub(crate) async fn a_deployment_is_scaled(cluster: &Cluster) {
    let scene = cluster.namespace("is-scaled").await;
    scene.create::<Deployment>(web(3, "a")).await;
    scene.until_rolled_out("web").await;
    for replicas in [5, 2, 0, 1] {
        scene
            .patch::<Deployment>("web", json!({ "spec": { "replicas": replicas } }))
            .await;
        scene
            .until("web", "scaled", |deployment: &Deployment| {
                deployment.status.as_ref().is_some_and(|status| {
                    status.observed_generation == deployment.metadata.generation
                        && status.replicas.unwrap_or(0) == replicas
                        && status.available_replicas.unwrap_or(0) == replicas
                })
            })
            .await;
        let [set] = &scene.sets().await[..] else {
            panic!("one replica set")
        };
        assert_eq!(
            annotation(set, "deployment.kubernetes.io/desired-replicas"),
            replicas.to_string()
        );
    }
}

pub(crate) async fn a_template_is_rolled_out_and_back(cluster: &Cluster, kubelet: &Kubelet) {
    let scene = cluster.namespace("rolled-out-and-back").await;
    scene.create::<Deployment>(web(4, "a")).await;
    scene.until_rolled_out("web").await;
    scene.patch::<Deployment>("web", image("b")).await;
    let deployment = scene.until_rolled_out("web").await;
    assert_eq!(annotation(&deployment, REVISION), "2");
    scene.patch::<Deployment>("web", image("a")).await;
    let deployment = scene.until_rolled_out("web").await;
    assert_eq!(annotation(&deployment, REVISION), "3");
    let sets = scene.sets().await;
    assert_eq!(sets.len(), 2, "going back makes no new replica set");
    let history: Vec<&str> = sets
        .iter()
        .map(|set| annotation(set, "deployment.kubernetes.io/revision-history"))
        .collect();
    assert!(history.contains(&"1"), "{history:?}");
    let (most, _) = kubelet.most("rolled-out-and-back");
    // Pods on their way out are not counted by the surge: four, one more, and those that are going.
    assert!(most <= 10, "{most} pods at once");
}

pub(crate) async fn a_roll_out_that_never_gets_ready_stops(cluster: &Cluster, kubelet: &Kubelet) {
    let scene = cluster.namespace("never-ready").await;
    kubelet.break_image("broken");
    let mut deployment = web(4, "a");
    deployment["spec"]["progressDeadlineSeconds"] = json!(2);
    scene.create::<Deployment>(deployment).await;
    scene.until_rolled_out("web").await;
    scene.patch::<Deployment>("web", image("broken")).await;
    let deployment = scene
        .until("web", "timed out", |deployment: &Deployment| {
            reason(deployment, "Progressing") == "ProgressDeadlineExceeded"
        })
        .await;
    let status = deployment.status.as_ref().unwrap();
    assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
    assert_eq!(
        status.available_replicas,
        Some(3),
        "four less one unavailable"
    );
    assert_eq!(
        status.updated_replicas,
        Some(2),
        "one of surge and one for the unavailable"
    );
    scene.patch::<Deployment>("web", image("a")).await;
    scene.until_rolled_out("web").await;
}

pub(crate) async fn recreate_never_runs_two_versions(cluster: &Cluster, kubelet: &Kubelet) {
    let scene = cluster.namespace("recreate").await;
    let mut deployment = web(3, "a");
    deployment["spec"]["strategy"] = json!({ "type": "Recreate" });
    scene.create::<Deployment>(deployment).await;
    scene.until_rolled_out("web").await;
    scene.patch::<Deployment>("web", image("b")).await;
    scene.until_rolled_out("web").await;
    assert_eq!(kubelet.most("recreate"), (3, 1));
}

pub(crate) async fn a_paused_deployment_waits(cluster: &Cluster) {
    let scene = cluster.namespace("paused").await;
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    let mut paused = image("b");
    paused["spec"]["paused"] = json!(true);
    scene.patch::<Deployment>("web", paused).await;
    scene
        .until("web", "paused", |deployment: &Deployment| {
            reason(deployment, "Progressing") == "DeploymentPaused"
        })
        .await;
    scene
        .patch::<Deployment>("web", json!({ "spec": { "replicas": 3 } }))
        .await;
    scene
        .until("web", "scaled though paused", |deployment: &Deployment| {
            deployment
                .status
                .as_ref()
                .and_then(|status| status.available_replicas)
                == Some(3)
        })
        .await;
    assert_eq!(scene.sets().await.len(), 1);
    scene
        .patch::<Deployment>("web", json!({ "spec": { "paused": false } }))
        .await;
    scene.until_rolled_out("web").await;
    assert_eq!(scene.sets().await.len(), 2);
}

pub(crate) async fn a_killed_pod_is_replaced(cluster: &Cluster) {
    let scene = cluster.namespace("replaced").await;
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    let victim = scene.pods().await.remove(0).metadata.name.unwrap();
    scene.delete::<Pod>(&victim, &DeleteParams::default()).await;
    scene.until_gone::<Pod>(&victim).await;
    scene.until_rolled_out("web").await;
    assert_eq!(scene.pods().await.len(), 2);
}

pub(crate) async fn pods_are_adopted_and_released(cluster: &Cluster) {
    let scene = cluster.namespace("adopted").await;
    let pod = json!({
        "metadata": { "name": "stray", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    });
    scene.create::<Pod>(pod).await;
    let mut set = web(2, "a");
    set["kind"] = json!("ReplicaSet");
    scene.create::<ReplicaSet>(set).await;
    let ready =
        |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.ready_replicas) == Some(2);
    let set = scene.until("web", "ready", ready).await;
    let controls = |pod: &Pod| {
        pod.metadata
            .owner_references
            .iter()
            .flatten()
            .any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
    };
    let stray = scene.until("stray", "adopted", controls).await;
    assert_eq!(scene.pods().await.len(), 2, "the stray counts");
    assert!(controls(&stray));
    scene
        .patch::<Pod>(
            "stray",
            json!({ "metadata": { "labels": { "app": "other" } } }),
        )
        .await;
    scene
        .until::<Pod>("stray", "released", |pod| !controls(pod))
        .await;
    scene.until("web", "whole again", ready).await;
    let pods = scene.pods().await;
    assert_eq!(pods.iter().filter(|pod| controls(pod)).count(), 2);
    assert_eq!(pods.len(), 3);
}

pub(crate) async fn a_ready_pod_is_available_only_later(cluster: &Cluster) {
    let scene = cluster.namespace("available-later").await;
    let mut set = web(2, "a");
    set["kind"] = json!("ReplicaSet");
    set["spec"]["minReadySeconds"] = json!(2);
    scene.create::<ReplicaSet>(set).await;
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
}

pub(crate) async fn a_name_that_is_taken_counts_as_a_collision(cluster: &Cluster) {
    let scene = cluster.namespace("collision").await;
    scene.create::<Deployment>(web(1, "a")).await;
    scene.until_rolled_out("web").await;
    let name = scene.sets().await.remove(0).metadata.name.unwrap();
    scene
        .delete::<Deployment>("web", &DeleteParams::foreground())
        .await;
    scene.until_gone::<Deployment>("web").await;
    scene
        .create::<ReplicaSet>(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": { "app": "squatter" } },
                "template": {
                    "metadata": { "labels": { "app": "squatter" } },
                    "spec": { "containers": [{ "name": "main", "image": "a" }] },
                },
            },
        }))
        .await;
    scene.create::<Deployment>(web(1, "a")).await;
    let deployment = scene.until_rolled_out("web").await;
    assert_eq!(deployment.status.unwrap().collision_count, Some(1));
    let squatter = scene
        .until::<ReplicaSet>(&name, "still there", |_| true)
        .await;
    assert_eq!(squatter.metadata.owner_references, None, "never taken over");
    assert_eq!(scene.sets().await.len(), 2);
}

pub(crate) async fn old_revisions_are_forgotten(cluster: &Cluster) {
    let scene = cluster.namespace("revisions").await;
    let mut deployment = web(1, "a");
    deployment["spec"]["revisionHistoryLimit"] = json!(1);
    scene.create::<Deployment>(deployment).await;
    scene.until_rolled_out("web").await;
    for version in ["b", "c", "d"] {
        scene.patch::<Deployment>("web", image(version)).await;
        scene.until_rolled_out("web").await;
    }
    // The clean-up may come a step after the roll-out: the sets themselves tell when it is over.
    for set in scene.sets().await {
        if ["1", "2"].contains(&annotation(&set, REVISION)) {
            scene
                .until_gone::<ReplicaSet>(set.metadata.name.as_deref().unwrap())
                .await;
        }
    }
    let mut kept: Vec<String> = scene
        .sets()
        .await
        .iter()
        .map(|set| annotation(set, REVISION).to_owned())
        .collect();
    kept.sort();
    assert_eq!(kept, ["3", "4"]);
}

pub(crate) async fn deleted_in_the_background(cluster: &Cluster) {
    let scene = cluster.namespace("background").await;
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    let (sets, pods) = (scene.sets().await, scene.pods().await);
    scene
        .delete::<Deployment>("web", &DeleteParams::background())
        .await;
    for set in sets {
        scene
            .until_gone::<ReplicaSet>(&set.metadata.name.unwrap())
            .await;
    }
    for pod in pods {
        scene.until_gone::<Pod>(&pod.metadata.name.unwrap()).await;
    }
}

pub(crate) async fn deleted_in_the_foreground(cluster: &Cluster) {
    let scene = cluster.namespace("foreground").await;
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    scene
        .delete::<Deployment>("web", &DeleteParams::foreground())
        .await;
    scene.until_gone::<Deployment>("web").await;
    assert!(scene.sets().await.is_empty(), "the replica set went first");
    assert!(scene.pods().await.is_empty(), "and its pods before it");
}

pub(crate) async fn deleted_as_an_orphan(cluster: &Cluster) {
    let scene = cluster.namespace("orphan").await;
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    scene
        .delete::<Deployment>("web", &DeleteParams::orphan())
        .await;
    scene.until_gone::<Deployment>("web").await;
    let [set] = &scene.sets().await[..] else {
        panic!("the replica set stays")
    };
    assert_eq!(set.metadata.owner_references, None);
    assert_eq!(scene.pods().await.len(), 2);
    let uid = set.metadata.uid.clone();
    let name = set.metadata.name.clone().unwrap();
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    let [set] = &scene.sets().await[..] else {
        panic!("the replica set was taken over")
    };
    assert_eq!(
        (&set.metadata.uid, set.metadata.name.as_deref()),
        (&uid, Some(name.as_str()))
    );
}

pub(crate) async fn a_namespace_takes_everything_along(cluster: &Cluster) {
    let scene = cluster.namespace("everything").await;
    scene.create::<Deployment>(web(2, "a")).await;
    scene.until_rolled_out("web").await;
    let kept = json!({ "metadata": { "name": "kept", "finalizers": ["example.com/keep"] } });
    scene.create::<ConfigMap>(kept).await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces
        .delete("everything", &DeleteParams::default())
        .await
        .expect("deleted");
    let waits = |namespace: Option<&Namespace>| {
        let status = namespace.and_then(|namespace| namespace.status.as_ref());
        let conditions = status
            .into_iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| {
            condition.type_ == "NamespaceFinalizersRemaining" && condition.status == "True"
        })
    };
    let limit = std::time::Duration::from_secs(40);
    let told = kube::runtime::wait::await_condition(namespaces.clone(), "everything", waits);
    tokio::time::timeout(limit, told)
        .await
        .expect("told in time")
        .expect("a watch");
    scene
        .patch::<ConfigMap>("kept", json!({ "metadata": { "finalizers": null } }))
        .await;
    let gone = kube::runtime::wait::await_condition(
        namespaces,
        "everything",
        |namespace: Option<&Namespace>| namespace.is_none(),
    );
    tokio::time::timeout(limit, gone)
        .await
        .expect("gone in time")
        .expect("a watch");
}

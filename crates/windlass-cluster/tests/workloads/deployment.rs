//! A Deployment and its pods, as long as the template stays.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use crate::scene::{annotation, image, reason, web};
use crate::stage::play;

const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";

#[test]
fn a_deployment_becomes_available() {
    play("becomes-available", async |scene| {
        scene.create::<Deployment>(web(3, "a")).await;
        let deployment = scene.until_rolled_out("web").await;
        assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
        assert_eq!(annotation(&deployment, REVISION), "1");
        let generation = deployment.metadata.generation;
        assert_eq!(generation, Some(1), "the revision bumps no generation");
    });
}

#[test]
fn a_replica_set_says_whose_it_is_and_of_which_template() {
    play("its-replica-set", async |scene| {
        let deployment = scene.create::<Deployment>(web(3, "a")).await;
        scene.until_rolled_out("web").await;
        let [set] = &scene.sets().await[..] else {
            panic!("one replica set")
        };
        let hash = &set.labels()["pod-template-hash"];
        assert_eq!(set.name_any(), format!("web-{hash}"));
        let selector = set.spec.as_ref().unwrap().selector.match_labels.as_ref();
        assert_eq!(selector.unwrap()["pod-template-hash"], *hash);
        assert_eq!(annotation(set, REVISION), "1");
        assert_eq!(annotation(set, DESIRED), "3");
        assert_eq!(
            annotation(set, "deployment.kubernetes.io/max-replicas"),
            "4"
        );
        assert_eq!(annotation(set, "team"), "blue");
        let [owner] = set.owner_references() else {
            panic!("one owner")
        };
        assert_eq!(Some(&owner.uid), deployment.metadata.uid.as_ref());
        assert_eq!(
            (owner.controller, owner.block_owner_deletion),
            (Some(true), Some(true))
        );
    });
}

#[test]
fn pods_are_named_and_labelled_after_their_replica_set() {
    play("its-pods", async |scene| {
        scene.create::<Deployment>(web(3, "a")).await;
        scene.until_rolled_out("web").await;
        let set = scene.sets().await.remove(0);
        let pods = scene.pods().await;
        assert_eq!(pods.len(), 3);
        for pod in pods {
            assert_eq!(
                pod.labels()["pod-template-hash"],
                set.labels()["pod-template-hash"]
            );
            assert!(pod.name_any().starts_with(&format!("{}-", set.name_any())));
            let [owner] = pod.owner_references() else {
                panic!("one owner")
            };
            assert_eq!(Some(&owner.uid), set.metadata.uid.as_ref());
            assert_eq!(
                (owner.controller, owner.block_owner_deletion),
                (Some(true), Some(true))
            );
        }
    });
}

#[test]
fn a_deployment_is_scaled() {
    play("is-scaled", async |scene| {
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
            assert_eq!(annotation(set, DESIRED), replicas.to_string());
        }
    });
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll_out() {
    play("paused", async |scene| {
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
                let status = deployment.status.as_ref();
                status.and_then(|status| status.available_replicas) == Some(3)
            })
            .await;
        assert_eq!(scene.sets().await.len(), 1);
        scene
            .patch::<Deployment>("web", json!({ "spec": { "paused": false } }))
            .await;
        scene.until_rolled_out("web").await;
        assert_eq!(scene.sets().await.len(), 2);
    });
}

#[test]
fn a_deleted_pod_is_replaced() {
    play("replaced", async |scene| {
        scene.create::<Deployment>(web(2, "a")).await;
        scene.until_rolled_out("web").await;
        let victim = scene.pods().await.remove(0).name_any();
        scene.delete::<Pod>(&victim, &DeleteParams::default()).await;
        scene.until_gone::<Pod>(&victim).await;
        scene
            .until_all::<Pod>("two pods again", |pods| pods.len() == 2)
            .await;
        scene.until_rolled_out("web").await;
    });
}

#[test]
fn a_name_that_is_taken_counts_as_a_collision() {
    play("collision", async |scene| {
        scene.create::<Deployment>(web(1, "a")).await;
        scene.until_rolled_out("web").await;
        let name = scene.sets().await.remove(0).name_any();
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
        let squatter = scene.find::<ReplicaSet>(&name).await.unwrap();
        assert_eq!(squatter.owner_references(), [], "never taken over");
        assert_eq!(scene.sets().await.len(), 2);
    });
}

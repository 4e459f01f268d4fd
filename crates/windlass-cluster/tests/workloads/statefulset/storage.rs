//! The claims of a set's pods.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{scale, still};
use crate::scene::Scene;
use crate::stage::play;

/// A set whose pods have a claim each, with what becomes of them when the set is deleted or made
/// smaller.
fn keeping(replicas: i32, deleted: &str, scaled: &str) -> Value {
    let mut set = still(replicas);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({ "whenDeleted": deleted, "whenScaled": scaled });
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data", "labels": { "kind": "disk" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    }]);
    set
}

async fn until_claims(scene: &Scene, names: &[&str]) -> Vec<PersistentVolumeClaim> {
    let what = format!("the claims {names:?}");
    let are = |claims: &[PersistentVolumeClaim]| {
        claims
            .iter()
            .map(PersistentVolumeClaim::name_any)
            .eq(names.iter().copied())
    };
    scene.until_all(&what, are).await
}

fn owners(claim: &PersistentVolumeClaim) -> Vec<&str> {
    claim
        .owner_references()
        .iter()
        .map(|owner| owner.kind.as_str())
        .collect()
}

#[test]
fn each_pod_has_its_claim_and_keeps_it() {
    play("claims", async |scene| {
        scene
            .create::<StatefulSet>(keeping(2, "Retain", "Retain"))
            .await;
        scene.until_pods(&["db-0", "db-1"]).await;
        let claims = until_claims(scene, &["data-db-0", "data-db-1"]).await;
        assert_eq!(claims[1].labels()["app"], "db");
        assert_eq!(claims[1].labels()["kind"], "disk");
        assert_eq!(owners(&claims[1]), [] as [&str; 0]);
        let pod = scene.find::<Pod>("db-1").await.unwrap();
        let volumes = pod.spec.unwrap().volumes.unwrap();
        let volume = volumes.iter().find(|volume| volume.name == "data").unwrap();
        let source = volume.persistent_volume_claim.as_ref().unwrap();
        assert_eq!(source.claim_name, "data-db-1");
        let told = "Create Claim data-db-1 Pod db-1 in StatefulSet db success";
        scene.until_told("db", "SuccessfulCreate", told).await;

        scale(scene, 1).await;
        scene.until_pods(&["db-0"]).await;
        scale(scene, 2).await;
        scene.until_pods(&["db-0", "db-1"]).await;
        let after = until_claims(scene, &["data-db-0", "data-db-1"]).await;
        assert_eq!(after[1].uid(), claims[1].uid(), "the disk of before");
        scene
            .delete::<StatefulSet>("db", &DeleteParams::foreground())
            .await;
        scene.until_gone::<StatefulSet>("db").await;
        until_claims(scene, &["data-db-0", "data-db-1"]).await;
    });
}

#[test]
fn claims_go_when_the_set_is_made_smaller_if_it_says_so() {
    play("claims-scaled", async |scene| {
        scene
            .create::<StatefulSet>(keeping(2, "Retain", "Delete"))
            .await;
        scene.until_pods(&["db-0", "db-1"]).await;
        until_claims(scene, &["data-db-0", "data-db-1"]).await;
        scale(scene, 1).await;
        let claims = until_claims(scene, &["data-db-0"]).await;
        assert_eq!(owners(&claims[0]), [] as [&str; 0]);
        scale(scene, 2).await;
        scene.until_pods(&["db-0", "db-1"]).await;
        until_claims(scene, &["data-db-0", "data-db-1"]).await;
    });
}

#[test]
fn claims_go_with_the_set_if_it_says_so() {
    play("claims-deleted", async |scene| {
        scene
            .create::<StatefulSet>(keeping(1, "Delete", "Retain"))
            .await;
        scene.until_pods(&["db-0"]).await;
        let owned = |claim: &PersistentVolumeClaim| owners(claim) == ["StatefulSet"];
        scene
            .until::<PersistentVolumeClaim>("data-db-0", "owned", owned)
            .await;
        scene
            .delete::<StatefulSet>("db", &DeleteParams::background())
            .await;
        scene.until_gone::<PersistentVolumeClaim>("data-db-0").await;
    });
}

#[test]
fn a_changed_policy_changes_the_owners() {
    play("claims-policy", async |scene| {
        scene
            .create::<StatefulSet>(keeping(1, "Delete", "Retain"))
            .await;
        scene.until_pods(&["db-0"]).await;
        let owned = |claim: &PersistentVolumeClaim| owners(claim) == ["StatefulSet"];
        scene
            .until::<PersistentVolumeClaim>("data-db-0", "owned", owned)
            .await;
        let keep = json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain" } } });
        scene.patch::<StatefulSet>("db", keep).await;
        let free = |claim: &PersistentVolumeClaim| owners(claim).is_empty();
        scene
            .until::<PersistentVolumeClaim>("data-db-0", "free", free)
            .await;
    });
}

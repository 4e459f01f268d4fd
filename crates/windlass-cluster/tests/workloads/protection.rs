//! Storage that is in use stays until it is not.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::scene::{Scene, until};
use crate::stage::play;

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

/// A pod that is on a node from the start, though on none that is there.
fn user(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": {
            "nodeName": "elsewhere",
            "containers": [{ "name": "main", "image": "web" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }],
        },
    })
}

async fn delete_claim(scene: &Scene, name: &str) {
    scene
        .delete::<PersistentVolumeClaim>(name, &DeleteParams::default())
        .await;
}

#[test]
fn a_claim_that_nobody_uses_goes_at_once() {
    play("unused-claim", async |scene| {
        scene.create::<PersistentVolumeClaim>(claim("data")).await;
        delete_claim(scene, "data").await;
        scene.until_gone::<PersistentVolumeClaim>("data").await;
    });
}

#[test]
fn a_claim_stays_until_the_last_pod_that_uses_it_is_gone() {
    play("used-claim", async |scene| {
        let now = DeleteParams::default().grace_period(0);
        scene.create::<PersistentVolumeClaim>(claim("data")).await;
        scene.create::<Pod>(user("one", "data")).await;
        scene.create::<Pod>(user("two", "data")).await;
        delete_claim(scene, "data").await;
        scene.delete::<Pod>("one", &now).await;
        scene.until_gone::<Pod>("one").await;
        // Another claim's coming and going shows that the controller has had its say.
        scene.create::<PersistentVolumeClaim>(claim("other")).await;
        delete_claim(scene, "other").await;
        scene.until_gone::<PersistentVolumeClaim>("other").await;
        let kept = scene.find::<PersistentVolumeClaim>("data").await;
        let kept = kept.expect("a claim that is in use stays");
        assert!(kept.metadata.deletion_timestamp.is_some());
        scene.delete::<Pod>("two", &now).await;
        scene.until_gone::<PersistentVolumeClaim>("data").await;
    });
}

#[test]
fn a_volume_stays_while_it_is_bound() {
    play("bound-volume", async |scene| {
        let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
        let name = format!("{}-volume", scene.namespace);
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": { "storage": "1Gi" },
                "storageClassName": scene.namespace,
                "hostPath": { "path": "/tmp" },
            },
        }))
        .expect("a volume");
        let created = volumes.create(&PostParams::default(), &volume).await;
        created.expect("a new volume");
        let mut wanted = claim("data");
        wanted["spec"]["volumeName"] = json!(name);
        wanted["spec"]["storageClassName"] = json!(scene.namespace);
        scene.create::<PersistentVolumeClaim>(wanted).await;
        let is_bound = |claim: &PersistentVolumeClaim| {
            let status = claim.status.as_ref();
            status.and_then(|status| status.phase.as_deref()) == Some("Bound")
        };
        scene
            .until::<PersistentVolumeClaim>("data", "bound", is_bound)
            .await;
        let deleted = volumes.delete(&name, &DeleteParams::default()).await;
        deleted.expect("a deletion");
        until(
            &volumes,
            &name,
            "terminating",
            |found: Option<&PersistentVolume>| {
                found.is_some_and(|volume| volume.metadata.deletion_timestamp.is_some())
            },
        )
        .await;
        delete_claim(scene, "data").await;
        until(
            &volumes,
            &name,
            "gone",
            |found: Option<&PersistentVolume>| found.is_none(),
        )
        .await;
    });
}

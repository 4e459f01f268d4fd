//! Claims find volumes, and volumes are given back.

mod in_virtual_time;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::scene::{Scene, until};
use crate::stage::play;

fn claim(name: &str, class: &str, size: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "resources": { "requests": { "storage": size } },
        },
    })
}

fn volumes(scene: &Scene) -> Api<PersistentVolume> {
    Api::all(scene.client.clone())
}

/// A volume of a class that only this scene has.
async fn add_volume(scene: &Scene, name: &str, size: &str) -> PersistentVolume {
    let volume = json!({
        "metadata": { "name": format!("{}-{name}", scene.namespace) },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": size },
            "storageClassName": scene.namespace,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": { "path": "/tmp" },
        },
    });
    let volume: PersistentVolume = serde_json::from_value(volume).expect("a volume");
    let created = volumes(scene).create(&PostParams::default(), &volume).await;
    created.expect("a new volume")
}

async fn until_phase(scene: &Scene, volume: &str, phase: &str) -> PersistentVolume {
    let is = |found: Option<&PersistentVolume>| {
        let status = found.and_then(|volume| volume.status.as_ref());
        status.and_then(|status| status.phase.as_deref()) == Some(phase)
    };
    let found = until(&volumes(scene), volume, phase, is).await;
    found.expect("a volume")
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    let status = claim.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

async fn remove(scene: &Scene, names: &[String]) {
    for name in names {
        volumes(scene)
            .delete(name, &DeleteParams::default())
            .await
            .expect("a volume that goes");
    }
}

#[test]
fn a_claim_takes_the_smallest_volume_that_is_large_enough() {
    play("smallest", async |scene| {
        let large = add_volume(scene, "large", "5Gi").await.name_any();
        let right = add_volume(scene, "right", "2Gi").await.name_any();
        let small = add_volume(scene, "small", "1Gi").await.name_any();
        until_phase(scene, &large, "Available").await;
        scene
            .create::<PersistentVolumeClaim>(claim("data", &scene.namespace, "1500Mi"))
            .await;
        let bound = scene
            .until::<PersistentVolumeClaim>("data", "bound", |claim| phase(claim) == "Bound")
            .await;
        assert_eq!(
            bound.spec.as_ref().unwrap().volume_name.as_deref(),
            Some(right.as_str())
        );
        assert_eq!(
            bound.annotations()["pv.kubernetes.io/bind-completed"],
            "yes"
        );
        assert_eq!(
            bound.annotations()["pv.kubernetes.io/bound-by-controller"],
            "yes"
        );
        let status = bound.status.as_ref().unwrap();
        assert_eq!(status.capacity.as_ref().unwrap()["storage"].0, "2Gi");
        assert_eq!(
            status.access_modes.as_deref(),
            Some(&["ReadWriteOnce".to_owned()][..])
        );
        let volume = until_phase(scene, &right, "Bound").await;
        assert_eq!(
            volume.annotations()["pv.kubernetes.io/bound-by-controller"],
            "yes"
        );
        let reference = volume.spec.unwrap().claim_ref.unwrap();
        assert_eq!(reference.uid, bound.metadata.uid);
        assert_eq!(reference.name.as_deref(), Some("data"));
        until_phase(scene, &small, "Available").await;

        // Its data is kept, and nobody else gets it.
        scene
            .delete::<PersistentVolumeClaim>("data", &DeleteParams::default())
            .await;
        until_phase(scene, &right, "Released").await;
        remove(scene, &[large, right, small]).await;
    });
}

#[test]
fn a_claim_for_which_there_is_nothing_waits() {
    play("waits", async |scene| {
        scene
            .create::<PersistentVolumeClaim>(claim("data", "", "900Ti"))
            .await;
        let told = "no persistent volumes available for this claim and no storage class is set";
        scene.until_told("data", "FailedBinding", told).await;
        let is_pending = |claim: &PersistentVolumeClaim| phase(claim) == "Pending";
        scene
            .until::<PersistentVolumeClaim>("data", "pending", is_pending)
            .await;
        let mut later = claim("later", &scene.namespace, "1Gi");
        later["spec"]["storageClassName"] = json!(scene.namespace);
        scene.create::<PersistentVolumeClaim>(later).await;
        let volume = add_volume(scene, "late", "1Gi").await.name_any();
        let is_bound = |claim: &PersistentVolumeClaim| phase(claim) == "Bound";
        scene
            .until::<PersistentVolumeClaim>("later", "bound", is_bound)
            .await;
        scene
            .delete::<PersistentVolumeClaim>("later", &DeleteParams::default())
            .await;
        until_phase(scene, &volume, "Released").await;
        remove(scene, &[volume]).await;
    });
}

#[test]
fn a_claim_whose_volume_is_gone_is_lost() {
    play("lost", async |scene| {
        let volume = add_volume(scene, "fragile", "1Gi").await.name_any();
        scene
            .create::<PersistentVolumeClaim>(claim("data", &scene.namespace, "1Gi"))
            .await;
        let is_bound = |claim: &PersistentVolumeClaim| phase(claim) == "Bound";
        scene
            .until::<PersistentVolumeClaim>("data", "bound", is_bound)
            .await;
        remove(scene, std::slice::from_ref(&volume)).await;
        let free = kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        volumes(scene)
            .patch(&volume, &PatchParams::default(), &free)
            .await
            .expect("a volume that goes");
        let is_lost = |claim: &PersistentVolumeClaim| phase(claim) == "Lost";
        scene
            .until::<PersistentVolumeClaim>("data", "lost", is_lost)
            .await;
        let told = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        scene.until_told("data", "ClaimLost", told).await;
    });
}

#[test]
fn a_class_may_wait_for_the_first_pod_and_another_may_make_the_volume() {
    play("class", async |scene| {
        let classes: Api<StorageClass> = Api::all(scene.client.clone());
        for (name, mode) in [("late", "WaitForFirstConsumer"), ("now", "Immediate")] {
            let class: StorageClass = serde_json::from_value(json!({
                "metadata": { "name": format!("{}-{name}", scene.namespace) },
                "provisioner": "example.com/disks",
                "volumeBindingMode": mode,
            }))
            .expect("a class");
            classes
                .create(&PostParams::default(), &class)
                .await
                .expect("a new class");
        }
        let late = format!("{}-late", scene.namespace);
        scene
            .create::<PersistentVolumeClaim>(claim("late", &late, "1Gi"))
            .await;
        let told = "waiting for first consumer to be created before binding";
        scene.until_told("late", "WaitForFirstConsumer", told).await;
        let now = format!("{}-now", scene.namespace);
        scene
            .create::<PersistentVolumeClaim>(claim("now", &now, "1Gi"))
            .await;
        let told = "Waiting for a volume to be created either by the external provisioner 'example.com/disks' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.";
        scene.until_told("now", "ExternalProvisioning", told).await;
        let claim = scene.find::<PersistentVolumeClaim>("now").await.unwrap();
        assert_eq!(
            claim.annotations()["volume.kubernetes.io/storage-provisioner"],
            "example.com/disks"
        );
        for name in [late, now] {
            classes
                .delete(&name, &DeleteParams::default())
                .await
                .expect("a class that goes");
        }
    });
}

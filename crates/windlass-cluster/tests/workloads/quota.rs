//! Quotas: how much is used.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{Scene, idle};
use crate::stage::play;

async fn until_used(scene: &Scene, quota: &str, used: Value) {
    let what = format!("used as {used}");
    let is = |quota: &ResourceQuota| {
        let status = quota.status.clone().unwrap_or_default();
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone());
        status.hard == hard && serde_json::to_value(status.used).ok().as_ref() == Some(&used)
    };
    scene.until::<ResourceQuota>(quota, &what, is).await;
}

#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn pod(name: &str, requests: Value) -> Value {
    let mut spec = idle();
    spec["containers"][0]["resources"] = json!({ "requests": requests });
    json!({ "metadata": { "name": name }, "spec": spec })
}

#[test]
fn pods_take_what_they_ask_for_until_they_have_ended() {
    play("pods", async |scene| {
        let hard =
            json!({ "pods": "10", "requests.cpu": "4", "memory": "8Gi", "count/pods": "10" });
        let quota = json!({ "metadata": { "name": "quota" }, "spec": { "hard": hard } });
        scene.create::<ResourceQuota>(quota).await;
        let none = json!({ "pods": "0", "requests.cpu": "0", "memory": "0", "count/pods": "0" });
        until_used(scene, "quota", none).await;
        let asked = json!({ "cpu": "500m", "memory": "512Mi" });
        scene.create::<Pod>(pod("one", asked.clone())).await;
        scene.create::<Pod>(pod("two", asked)).await;
        let two = json!({ "pods": "2", "requests.cpu": "1", "memory": "1Gi", "count/pods": "2" });
        until_used(scene, "quota", two).await;
        scene.end("one", 0).await;
        let one =
            json!({ "pods": "1", "requests.cpu": "500m", "memory": "512Mi", "count/pods": "2" });
        until_used(scene, "quota", one).await;
        scene.delete::<Pod>("one", &DeleteParams::default()).await;
        scene.delete::<Pod>("two", &DeleteParams::default()).await;
        let none = json!({ "pods": "0", "requests.cpu": "0", "memory": "0", "count/pods": "0" });
        until_used(scene, "quota", none).await;
    });
}

#[test]
fn objects_are_counted_by_kind() {
    play("counted", async |scene| {
        let hard = json!({
            "configmaps": "10", "services": "5", "services.nodeports": "5",
            "persistentvolumeclaims": "3", "requests.storage": "10Gi", "count/deployments.apps": "2",
        });
        let quota = json!({ "metadata": { "name": "quota" }, "spec": { "hard": hard } });
        scene
            .create::<ConfigMap>(json!({ "metadata": { "name": "settings" } }))
            .await;
        scene.create::<ResourceQuota>(quota).await;
        let service = json!({
            "metadata": { "name": "web" },
            "spec": { "type": "NodePort", "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
        });
        scene.create::<Service>(service).await;
        let claim = json!({
            "metadata": { "name": "data" },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "resources": { "requests": { "storage": "2Gi" } },
            },
        });
        scene.create::<PersistentVolumeClaim>(claim).await;
        // Every namespace has the API server's certificate.
        let used = json!({
            "configmaps": "2", "services": "1", "services.nodeports": "1",
            "persistentvolumeclaims": "1", "requests.storage": "2Gi", "count/deployments.apps": "0",
        });
        until_used(scene, "quota", used).await;
        scene
            .delete::<ConfigMap>("settings", &DeleteParams::default())
            .await;
        let used = json!({
            "configmaps": "1", "services": "1", "services.nodeports": "1",
            "persistentvolumeclaims": "1", "requests.storage": "2Gi", "count/deployments.apps": "0",
        });
        until_used(scene, "quota", used).await;
    });
}

#[test]
fn scopes_choose_the_pods_that_count() {
    play("scopes", async |scene| {
        for scope in ["BestEffort", "NotBestEffort"] {
            let quota = json!({
                "metadata": { "name": scope.to_lowercase() },
                "spec": { "hard": { "pods": "5" }, "scopes": [scope] },
            });
            scene.create::<ResourceQuota>(quota).await;
        }
        scene
            .create::<Pod>(pod("solid", json!({ "cpu": "1" })))
            .await;
        scene.create::<Pod>(pod("light", json!({}))).await;
        scene.create::<Pod>(pod("lighter", json!({}))).await;
        until_used(scene, "besteffort", json!({ "pods": "2" })).await;
        until_used(scene, "notbesteffort", json!({ "pods": "1" })).await;
    });
}

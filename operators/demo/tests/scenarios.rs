//! What the operator promises, one scenario each: played in process, disturbed in every way there
//! is, and, where it needs no running pod, on a real control plane.

use demo_operator::{Demo, DemoSpec, DemoStatus, operator};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};
use windlass_cluster::Stage;

windlass_cluster::scenarios! {
    super::operator,
    anywhere: [
        the_deployment_is_as_asked_for_and_mounts_the_configmap,
        a_missing_configmap_is_degraded_and_heals_when_it_appears,
        the_type_cannot_be_changed,
        a_negative_size_is_refused_with_the_field_named,
        the_type_chooses_the_image,
        a_deployment_edited_or_deleted_by_hand_comes_back,
        the_yaml_of_the_seed_applies_unchanged,
        deleted_takes_everything_with_it,
    ],
    with_pods: [
        the_status_counts_pods_that_are_ready,
        another_configuration_replaces_the_pods,
        a_configmap_that_goes_leaves_the_pods_running,
    ],
}

fn demo(name: &str, size: i32, of: &str) -> Demo {
    let spec = DemoSpec {
        size,
        r#type: of.to_owned(),
        config_map_name: "settings".to_owned(),
    };
    Demo::new(name, spec)
}

async fn configure(stage: &Stage, greeting: &str) {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings" }, "data": { "greeting": greeting },
    });
    stage.apply::<ConfigMap>(&map).await;
}

fn status(demo: &Demo) -> DemoStatus {
    demo.status.clone().unwrap_or_default()
}

/// Whether a condition has this status and reason.
fn is(demo: &Demo, condition: &str, status: &str, reason: &str) -> bool {
    let conditions = self::status(demo).conditions;
    conditions.iter().any(|one| {
        one.type_ == condition
            && one.status == status
            && one.reason == reason
            && one.observed_generation == demo.metadata.generation
    })
}

async fn deployment(stage: &Stage, name: &str) -> Deployment {
    stage.until(name, "there", |_: &Deployment| true).await
}

async fn ready(stage: &Stage, name: &str, size: i32) -> Demo {
    stage
        .until(name, "available", |demo: &Demo| {
            status(demo).ready_replicas == size && is(demo, "Available", "True", "Ready")
        })
        .await
}

async fn the_deployment_is_as_asked_for_and_mounts_the_configmap(stage: Stage) {
    configure(&stage, "hello").await;
    stage.create(&demo("web", 2, "cache")).await;
    let deployment = deployment(&stage, "web").await;
    let spec = serde_json::to_value(deployment.spec.unwrap()).unwrap();
    assert_eq!(spec["replicas"], 2);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "settings");
    assert_eq!(
        pod["containers"][0]["volumeMounts"][0]["mountPath"],
        "/etc/demo"
    );
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(labels["demo.example.com/type"], "cache");
    assert_eq!(labels["app.kubernetes.io/instance"], "web");
    let observed = |demo: &Demo| status(demo).observed_generation == demo.metadata.generation;
    let demo = stage.until("web", "observed", observed).await;
    let hash = &spec["template"]["metadata"]["annotations"]["demo.example.com/config-hash"];
    assert_eq!(*hash, json!(status(&demo).config_hash));
    stage.rest().await;
}

async fn a_missing_configmap_is_degraded_and_heals_when_it_appears(stage: Stage) {
    stage.create(&demo("web", 1, "cache")).await;
    let missing = |demo: &Demo| is(demo, "Degraded", "True", "ConfigMapNotFound");
    let demo = stage.until("web", "degraded", missing).await;
    let conditions = status(&demo).conditions;
    let degraded = conditions
        .iter()
        .find(|one| one.type_ == "Degraded")
        .unwrap();
    assert_eq!(degraded.message, "configmap settings is missing");
    assert!(stage.find::<Deployment>("web").await.is_none());
    stage.rest().await;
    configure(&stage, "hello").await;
    deployment(&stage, "web").await;
    let healed = |demo: &Demo| is(demo, "Degraded", "False", "AsExpected");
    stage.until("web", "healed", healed).await;
    stage.rest().await;
}

async fn the_type_cannot_be_changed(stage: Stage) {
    configure(&stage, "hello").await;
    let made = stage.create(&demo("web", 1, "cache")).await;
    deployment(&stage, "web").await;
    let patch = kube::api::Patch::Merge(json!({ "spec": { "type": "redis" } }));
    let params = kube::api::PatchParams::default();
    let error = stage
        .api::<Demo>()
        .patch("web", &params, &patch)
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("spec.type: Invalid value") && message.contains("type is immutable"),
        "{message}"
    );
    stage
        .patch::<Demo>("web", json!({ "spec": { "size": 2 } }))
        .await;
    let now = stage.find::<Demo>("web").await.unwrap();
    assert_eq!(now.spec.r#type, made.spec.r#type);
    stage.rest().await;
}

async fn a_negative_size_is_refused_with_the_field_named(stage: Stage) {
    let refused = stage.refused(&demo("web", -1, "cache")).await;
    assert!(
        refused.message.contains("spec.size: Invalid value: -1"),
        "{}",
        refused.message
    );
    assert_eq!(refused.code, 422);
}

async fn the_type_chooses_the_image(stage: Stage) {
    configure(&stage, "hello").await;
    for (of, image) in [("redis", "redis:7"), ("anything", "memcached:1.6.6")] {
        stage.create(&demo(of, 1, of)).await;
        let spec = deployment(&stage, of)
            .await
            .spec
            .unwrap()
            .template
            .spec
            .unwrap();
        assert_eq!(spec.containers[0].image.as_deref(), Some(image));
    }
    stage.rest().await;
}

async fn a_deployment_edited_or_deleted_by_hand_comes_back(stage: Stage) {
    configure(&stage, "hello").await;
    stage.create(&demo("web", 1, "cache")).await;
    let first = deployment(&stage, "web").await;
    let broken = json!({ "spec": { "replicas": 7, "template": { "spec": { "containers": [
        { "name": "demo", "image": "other" }] } } } });
    stage.patch::<Deployment>("web", broken).await;
    let repaired = |deployment: &Deployment| {
        let spec = deployment.spec.as_ref().unwrap();
        let pod = spec.template.spec.as_ref().unwrap();
        spec.replicas == Some(1) && pod.containers[0].image.as_deref() == Some("memcached:1.6.6")
    };
    stage.until("web", "repaired", repaired).await;
    stage.rest().await;
    stage.delete::<Deployment>("web").await;
    let another = |deployment: &Deployment| deployment.metadata.uid != first.metadata.uid;
    stage.until("web", "made again", another).await;
    stage.rest().await;
}

async fn the_yaml_of_the_seed_applies_unchanged(stage: Stage) {
    let yaml: Value = serde_saphyr::from_str(include_str!("seed.yaml")).unwrap();
    stage.apply::<Demo>(&yaml).await;
    let missing = |demo: &Demo| is(demo, "Degraded", "True", "ConfigMapNotFound");
    stage.until("demo-sample", "degraded", missing).await;
    let samples = demo_operator::operator().description().samples;
    stage.apply::<ConfigMap>(&samples[0]).await;
    let made = deployment(&stage, "demo-sample").await;
    assert_eq!(made.spec.unwrap().replicas, Some(19));
    stage.rest().await;
}

async fn deleted_takes_everything_with_it(stage: Stage) {
    configure(&stage, "hello").await;
    stage.create(&demo("web", 1, "cache")).await;
    deployment(&stage, "web").await;
    stage.rest().await;
    stage.delete::<Demo>("web").await;
    stage.until_gone::<Deployment>("web").await;
    stage.rest().await;
}

async fn the_status_counts_pods_that_are_ready(stage: Stage) {
    configure(&stage, "hello").await;
    stage.create(&demo("web", 3, "cache")).await;
    ready(&stage, "web", 3).await;
    stage
        .patch::<Demo>("web", json!({ "spec": { "size": 1 } }))
        .await;
    ready(&stage, "web", 1).await;
    stage.rest().await;
    assert_eq!(stage.list::<Pod>().await.len(), 1);
}

async fn another_configuration_replaces_the_pods(stage: Stage) {
    configure(&stage, "hello").await;
    stage.create(&demo("web", 2, "cache")).await;
    let before = ready(&stage, "web", 2).await;
    stage.rest().await;
    let old = stage.list::<Pod>().await;
    configure(&stage, "good evening").await;
    let hash = status(&before).config_hash;
    stage
        .until("web", "told of it", |demo: &Demo| {
            status(demo).config_hash != hash
        })
        .await;
    stage.rest().await;
    ready(&stage, "web", 2).await;
    let new = stage.list::<Pod>().await;
    assert_eq!(new.len(), 2);
    assert!(new.iter().all(|pod| {
        old.iter()
            .all(|other| other.metadata.uid != pod.metadata.uid)
    }));
}

async fn a_configmap_that_goes_leaves_the_pods_running(stage: Stage) {
    configure(&stage, "hello").await;
    stage.create(&demo("web", 2, "cache")).await;
    let hash = status(&ready(&stage, "web", 2).await).config_hash;
    stage.rest().await;
    stage.delete::<ConfigMap>("settings").await;
    let missing = |demo: &Demo| is(demo, "Degraded", "True", "ConfigMapNotFound");
    let demo = stage.until("web", "degraded", missing).await;
    assert_eq!(status(&demo).ready_replicas, 2);
    assert_eq!(status(&demo).config_hash, hash);
    stage.rest().await;
    assert_eq!(stage.list::<Pod>().await.len(), 2);
    // What it cannot follow now it has seen all the same.
    stage
        .patch::<Demo>("web", json!({ "spec": { "size": 1 } }))
        .await;
    let seen = |demo: &Demo| status(demo).observed_generation == Some(2) && missing(demo);
    stage.until("web", "seen", seen).await;
    stage.rest().await;
}

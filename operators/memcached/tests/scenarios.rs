//! What the operator promises, one scenario each: played in process, disturbed in every way there
//! is, and, where it needs no running pod, on a real control plane.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use memcached_operator::{Memcached, MemcachedSpec, MemcachedStatus, operator};
use serde_json::{Value, json};
use windlass_cluster::Stage;

windlass_cluster::scenarios! {
    super::operator,
    anywhere: [
        the_yaml_of_the_seed_applies_unchanged,
        a_deployment_edited_by_hand_is_repaired,
        a_deployment_deleted_by_hand_comes_back,
        a_service_deleted_by_accident_is_recreated,
        the_service_is_there_exactly_while_it_is_asked_for,
        deleted_takes_its_children_with_it,
        two_instances_never_select_each_others_pods,
        a_negative_size_is_refused_with_the_field_named,
        a_name_that_is_no_label_is_refused_with_the_field_named,
        a_size_that_is_left_out_is_one,
        kubectl_scale_resizes,
        a_deployment_of_somebody_else_is_never_taken_over,
    ],
    with_pods: [
        created_names_its_ready_pods_in_the_status,
        resized_up_and_down,
        two_instances_never_count_each_others_pods,
        restarted_in_between_the_operator_goes_on,
        a_pod_that_is_deleted_is_replaced_in_the_status,
    ],
}

fn memcached(name: &str, size: i32) -> Memcached {
    let spec = MemcachedSpec {
        size: Some(size),
        expose: false,
    };
    Memcached::new(name, spec)
}

fn status(memcached: &Memcached) -> MemcachedStatus {
    memcached.status.clone().unwrap_or_default()
}

fn is(memcached: &Memcached, condition: &str, wanted: &str) -> bool {
    let conditions = status(memcached).conditions;
    conditions
        .iter()
        .any(|one| one.type_ == condition && one.status == wanted)
}

async fn deployment(stage: &Stage, name: &str) -> Deployment {
    let name = format!("{name}-deployment");
    stage.until(&name, "there", |_: &Deployment| true).await
}

async fn sized(stage: &Stage, name: &str, size: i32) -> Deployment {
    let name = format!("{name}-deployment");
    let sized = |deployment: &Deployment| {
        let spec = deployment.spec.as_ref();
        spec.and_then(|spec| spec.replicas) == Some(size)
    };
    stage.until(&name, "of that size", sized).await
}

/// Waits until as many nodes are ready, and are all there are.
async fn ready(stage: &Stage, name: &str, size: usize) -> Vec<String> {
    let found = stage
        .until(name, "available", |memcached: &Memcached| {
            let status = status(memcached);
            usize::try_from(status.ready_replicas) == Ok(size)
                && status.nodes.len() == size
                && status.observed_generation == memcached.metadata.generation
                && is(memcached, "Available", "True")
                && is(memcached, "Progressing", "False")
                && is(memcached, "Degraded", "False")
        })
        .await;
    stage.rest().await;
    status(&found).nodes
}

async fn the_yaml_of_the_seed_applies_unchanged(stage: Stage) {
    let yaml: Value = serde_saphyr::from_str(include_str!("seed.yaml")).unwrap();
    stage.apply::<Memcached>(&yaml).await;
    let spec = sized(&stage, "example-memcached", 3).await.spec.unwrap();
    let container = &spec.template.spec.unwrap().containers[0];
    assert_eq!(container.image.as_deref(), Some("memcached:1.6.6"));
    stage.rest().await;
}

async fn a_deployment_edited_by_hand_is_repaired(stage: Stage) {
    stage.create(&memcached("cache", 2)).await;
    deployment(&stage, "cache").await;
    stage.rest().await;
    let broken = json!({"spec": {"replicas": 7, "template": {"spec": {"containers": [
        {"name": "memcached", "image": "memcached:0"}]}}}});
    stage.patch::<Deployment>("cache-deployment", broken).await;
    let repaired = |deployment: &Deployment| {
        let spec = deployment.spec.as_ref().unwrap();
        let container = &spec.template.spec.as_ref().unwrap().containers[0];
        spec.replicas == Some(2)
            && container.image.as_deref() == Some("memcached:1.6.6")
            && container.liveness_probe.is_some()
    };
    stage.until("cache-deployment", "repaired", repaired).await;
    stage.rest().await;
}

async fn a_deployment_deleted_by_hand_comes_back(stage: Stage) {
    stage.create(&memcached("cache", 2)).await;
    let first = deployment(&stage, "cache").await;
    stage.rest().await;
    stage.delete::<Deployment>("cache-deployment").await;
    let another = |deployment: &Deployment| deployment.uid() != first.uid();
    stage.until("cache-deployment", "made again", another).await;
    stage.rest().await;
}

async fn a_service_deleted_by_accident_is_recreated(stage: Stage) {
    let mut exposed = memcached("cache", 1);
    exposed.spec.expose = true;
    stage.create(&exposed).await;
    let first = stage
        .until("cache-service", "there", |_: &Service| true)
        .await;
    stage.rest().await;
    stage.delete::<Service>("cache-service").await;
    let another = |service: &Service| service.uid() != first.uid();
    stage.until("cache-service", "made again", another).await;
    stage.rest().await;
}

async fn the_service_is_there_exactly_while_it_is_asked_for(stage: Stage) {
    stage.create(&memcached("cache", 1)).await;
    deployment(&stage, "cache").await;
    stage.rest().await;
    assert!(stage.find::<Service>("cache-service").await.is_none());
    let expose = |expose: bool| json!({ "spec": { "expose": expose } });
    stage.patch::<Memcached>("cache", expose(true)).await;
    let service = stage
        .until("cache-service", "there", |_: &Service| true)
        .await;
    let spec = service.spec.unwrap();
    assert_eq!(spec.ports.unwrap()[0].port, 11211);
    assert_eq!(spec.selector.unwrap()["memcached"], "cache");
    stage.rest().await;
    stage.patch::<Memcached>("cache", expose(false)).await;
    stage.until_gone::<Service>("cache-service").await;
    stage.rest().await;
}

async fn deleted_takes_its_children_with_it(stage: Stage) {
    let mut exposed = memcached("cache", 1);
    exposed.spec.expose = true;
    stage.create(&exposed).await;
    deployment(&stage, "cache").await;
    stage
        .until("cache-service", "there", |_: &Service| true)
        .await;
    stage.rest().await;
    stage.delete::<Memcached>("cache").await;
    stage.until_gone::<Deployment>("cache-deployment").await;
    stage.until_gone::<Service>("cache-service").await;
    stage.rest().await;
}

async fn two_instances_never_select_each_others_pods(stage: Stage) {
    let mut selectors = Vec::new();
    for name in ["one", "two"] {
        stage.create(&memcached(name, 1)).await;
        let spec = deployment(&stage, name).await.spec.unwrap();
        let labels = spec.template.metadata.unwrap().labels;
        assert_eq!(labels, spec.selector.match_labels);
        selectors.push(labels);
    }
    assert_ne!(selectors[0], selectors[1]);
    stage.rest().await;
}

async fn a_negative_size_is_refused_with_the_field_named(stage: Stage) {
    let refused = stage.refused(&memcached("cache", -1)).await;
    let message = &refused.message;
    assert!(
        message.contains("spec.size: Invalid value: -1"),
        "{message}"
    );
    assert_eq!(refused.code, 422);
}

async fn a_name_that_is_no_label_is_refused_with_the_field_named(stage: Stage) {
    let refused = stage.refused(&memcached(&"n".repeat(64), 1)).await;
    let message = &refused.message;
    assert!(
        message.contains("metadata.name: Invalid value") && message.contains("63 characters"),
        "{message}"
    );
}

async fn a_size_that_is_left_out_is_one(stage: Stage) {
    let mut unsaid = memcached("cache", 1);
    unsaid.spec.size = None;
    assert_eq!(stage.create(&unsaid).await.spec.size, Some(1));
    sized(&stage, "cache", 1).await;
    stage.rest().await;
}

async fn kubectl_scale_resizes(stage: Stage) {
    stage.create(&memcached("cache", 1)).await;
    let told =
        |memcached: &Memcached| status(memcached).selector == "app=memcached,memcached=cache";
    stage.until("cache", "told what its pods are", told).await;
    stage.rest().await;
    let scale = Patch::Merge(json!({ "spec": { "replicas": 4 } }));
    let api = stage.api::<Memcached>();
    api.patch_scale("cache", &PatchParams::default(), &scale)
        .await
        .unwrap();
    sized(&stage, "cache", 4).await;
    let found = api.get_scale("cache").await.unwrap();
    assert_eq!(found.spec.unwrap().replicas, Some(4));
    let selector = found.status.unwrap().selector;
    assert_eq!(selector.as_deref(), Some("app=memcached,memcached=cache"));
    stage.rest().await;
}

async fn a_deployment_of_somebody_else_is_never_taken_over(stage: Stage) {
    let template = memcached("other", 1);
    stage.create(&template).await;
    let mut theirs = deployment(&stage, "other").await;
    theirs.metadata = kube::api::ObjectMeta {
        name: Some("cache-deployment".to_owned()),
        ..kube::api::ObjectMeta::default()
    };
    theirs.status = None;
    let theirs = stage.create(&theirs).await;
    stage.rest().await;
    stage.create(&memcached("cache", 3)).await;
    stage
        .until("cache", "degraded", |memcached: &Memcached| {
            let conditions = status(memcached).conditions;
            conditions.iter().any(|one| {
                one.type_ == "Degraded"
                    && one.reason == "NotOurs"
                    && one.message.contains("it is controlled by nobody")
            })
        })
        .await;
    let now = stage.find::<Deployment>("cache-deployment").await.unwrap();
    assert_eq!(now.spec, theirs.spec);
    stage.rest().await;
    stage.delete::<Deployment>("cache-deployment").await;
    sized(&stage, "cache", 3).await;
    stage.rest().await;
}

async fn created_names_its_ready_pods_in_the_status(stage: Stage) {
    stage.create(&memcached("cache", 3)).await;
    let nodes = ready(&stage, "cache", 3).await;
    let mut names: Vec<String> = stage
        .list::<Pod>()
        .await
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    names.sort();
    assert_eq!(nodes, names);
}

async fn resized_up_and_down(stage: Stage) {
    stage.create(&memcached("cache", 1)).await;
    ready(&stage, "cache", 1).await;
    for size in [4, 2, 0, 3] {
        stage
            .patch::<Memcached>("cache", json!({ "spec": { "size": size } }))
            .await;
        ready(&stage, "cache", size).await;
        assert_eq!(stage.list::<Pod>().await.len(), size);
    }
}

async fn two_instances_never_count_each_others_pods(stage: Stage) {
    stage.create(&memcached("one", 1)).await;
    stage.create(&memcached("two", 2)).await;
    let (one, two) = (ready(&stage, "one", 1).await, ready(&stage, "two", 2).await);
    assert!(one.iter().all(|name| name.starts_with("one-")));
    assert!(two.iter().all(|name| name.starts_with("two-")));
}

async fn restarted_in_between_the_operator_goes_on(stage: Stage) {
    let restart = async || {
        if let Some(cluster) = stage.cluster() {
            cluster.restart_operators().await;
        }
    };
    stage.create(&memcached("cache", 2)).await;
    restart().await;
    ready(&stage, "cache", 2).await;
    stage
        .patch::<Memcached>("cache", json!({ "spec": { "size": 3, "expose": true } }))
        .await;
    restart().await;
    ready(&stage, "cache", 3).await;
    stage.delete::<Deployment>("cache-deployment").await;
    restart().await;
    stage.rest().await;
    ready(&stage, "cache", 3).await;
}

async fn a_pod_that_is_deleted_is_replaced_in_the_status(stage: Stage) {
    stage.create(&memcached("cache", 2)).await;
    let gone = ready(&stage, "cache", 2).await.remove(0);
    stage.delete::<Pod>(&gone).await;
    stage.rest().await;
    assert!(!ready(&stage, "cache", 2).await.contains(&gone));
}

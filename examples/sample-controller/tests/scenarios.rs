//! What the controller promises, one scenario each: played in process, disturbed in every way there
//! is, and, where it needs no running pod, on a real control plane.

#![allow(
    clippy::disallowed_names,
    reason = "the kind of Kubernetes' example is called Foo"
)]

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use sample_controller::{Foo, FooSpec, FooStatus, operator};
use serde_json::{Value, json};
use windlass_cluster::{Failure, Stage, TestCluster, seconds};

windlass_cluster::scenarios! {
    super::operator,
    anywhere: [
        the_yaml_of_the_sample_controller_applies_unchanged,
        a_deployment_of_somebody_else_is_refused_with_an_event,
        renamed_it_leaves_no_deployment_behind,
        too_many_replicas_are_refused_with_the_field_named,
    ],
    with_pods: [the_status_counts_available_pods],
}

fn foo(name: &str, deployment: &str, replicas: i32) -> Foo {
    let spec = FooSpec {
        deployment_name: deployment.to_owned(),
        replicas,
    };
    Foo::new(name, spec)
}

fn status(foo: &Foo) -> FooStatus {
    foo.status.clone().unwrap_or_default()
}

async fn the_yaml_of_the_sample_controller_applies_unchanged(stage: Stage) {
    let yaml: Value = serde_saphyr::from_str(include_str!("example-foo.yaml")).unwrap();
    stage.apply::<Foo>(&yaml).await;
    let made = stage
        .until("example-foo", "there", |_: &Deployment| true)
        .await;
    assert_eq!(made.spec.unwrap().replicas, Some(1));
    stage.rest().await;
}

async fn a_deployment_of_somebody_else_is_refused_with_an_event(stage: Stage) {
    stage.create(&foo("other", "model", 1)).await;
    let mut theirs = stage.until("model", "there", |_: &Deployment| true).await;
    theirs.metadata = kube::api::ObjectMeta {
        name: Some("taken".to_owned()),
        ..kube::api::ObjectMeta::default()
    };
    theirs.status = None;
    let theirs = stage.create(&theirs).await;
    stage.rest().await;
    stage.create(&foo("mine", "taken", 2)).await;
    stage
        .until("mine", "degraded", |foo: &Foo| {
            let conditions = status(foo).conditions;
            conditions
                .iter()
                .any(|one| one.type_ == "Degraded" && one.reason == "NotOurs")
        })
        .await;
    let told = |event: &Event| event.reason.as_deref() == Some("ErrResourceExists");
    stage.rest().await;
    if stage.cluster().is_some() {
        assert!(stage.list::<Event>().await.iter().any(told));
    }
    let now = stage.find::<Deployment>("taken").await.unwrap();
    assert_eq!(now.spec, theirs.spec);
    stage.delete::<Deployment>("taken").await;
    let ours = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(2);
    stage
        .until("taken", "made when the name is free", ours)
        .await;
    stage.rest().await;
}

async fn renamed_it_leaves_no_deployment_behind(stage: Stage) {
    stage.create(&foo("mine", "first", 1)).await;
    stage.until("first", "there", |_: &Deployment| true).await;
    stage.rest().await;
    let renamed = json!({ "spec": { "deploymentName": "second" } });
    stage.patch::<Foo>("mine", renamed).await;
    stage.until("second", "there", |_: &Deployment| true).await;
    stage.until_gone::<Deployment>("first").await;
    stage.rest().await;
}

async fn too_many_replicas_are_refused_with_the_field_named(stage: Stage) {
    let refused = stage.refused(&foo("mine", "many", 11)).await;
    assert!(
        refused.message.contains("spec.replicas: Invalid value: 11"),
        "{}",
        refused.message
    );
}

async fn the_status_counts_available_pods(stage: Stage) {
    stage.create(&foo("mine", "web", 3)).await;
    let available = |foo: &Foo| status(foo).available_replicas == 3;
    stage.until("mine", "available", available).await;
    stage.rest().await;
}

/// A report that could not be written used to be lost with a failure that is not tried again.
#[windlass_cluster::test]
async fn a_refusal_is_reported_though_the_report_fails_at_first(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(foo("one", "taken", 1)).await;
    cluster.settle().await;
    let failure = Failure::with(500).by("sample-controller");
    cluster.fail(failure.on("foos.samplecontroller.k8s.io/status").times(1));
    cluster.create(foo("two", "taken", 1)).await;
    cluster.settle().await;
    let conditions = status(&cluster.get::<Foo>("two").await).conditions;
    assert!(
        conditions
            .iter()
            .any(|one| one.type_ == "Degraded" && one.reason == "NotOurs")
    );
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    const NAME: &str = "sample-controller";
    cluster.start(operator()).await;
    let exceptions = [
        (
            "update foos/finalizers.samplecontroller.k8s.io",
            "asked for by an admission plugin that real clusters may have",
        ),
        (
            "patch foos.samplecontroller.k8s.io",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            cluster.create(foo("one", "web", 1)).await;
            cluster.settle().await;
            let renamed = json!({ "spec": { "deploymentName": "other" } });
            cluster.patch::<Foo>("one", renamed).await;
            cluster.settle().await;
            // Somebody else's, which the cache does not show yet: it is looked at, and left alone.
            let mut other = cluster.get::<Deployment>("other").await;
            other.metadata = kube::api::ObjectMeta {
                name: Some("taken".to_owned()),
                ..kube::api::ObjectMeta::default()
            };
            other.status = None;
            cluster.delay_watch(NAME, "deployments.apps", seconds(30));
            cluster.create(other).await;
            cluster.create(foo("two", "taken", 1)).await;
            cluster.settle().await;
            // It happens again: the event is counted.
            let again = json!({ "spec": { "replicas": 2 } });
            cluster.patch::<Foo>("two", again).await;
            cluster.settle().await;
            // An API server that cannot stream lists is asked for pages.
            for resource in ["deployments.apps", "foos.samplecontroller.k8s.io"] {
                cluster.fail(Failure::with(400).by(NAME).on(resource).times(1));
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 9, "{shown}");
}

#[test]
fn the_manifests_in_the_repository_are_current() {
    windlass_cluster::manifests_are_current(&operator(), env!("CARGO_MANIFEST_DIR"));
}

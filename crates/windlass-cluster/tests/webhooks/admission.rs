//! Defaults and judgement.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_cluster::TestCluster;

use crate::demo::{demo, operator, v2};

fn demos(cluster: &TestCluster) -> Api<v2::Demo> {
    Api::namespaced(cluster.client(), "default")
}

/// What the API server answers to something it refuses.
fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> kube::core::Status {
    match result.expect_err("it was allowed") {
        kube::Error::Api(status) => *status,
        other => panic!("no answer of the API server: {other}"),
    }
}

#[windlass_cluster::test]
async fn what_is_left_out_is_filled_in(cluster: TestCluster) {
    cluster.start(operator()).await;
    let made = cluster.create(demo("one", None)).await;
    assert_eq!(made.spec.replicas, Some(3));
    cluster.settle().await;
    assert_eq!(cluster.get::<v2::Demo>("one").await.status.unwrap().seen, 3);
}

#[windlass_cluster::test]
async fn everything_wrong_is_told_at_once(cluster: TestCluster) {
    cluster.start(operator()).await;
    let mut wrong = demo("one", Some(0));
    wrong.spec.config = Some(String::new());
    let refused = refusal(demos(&cluster).create(&PostParams::default(), &wrong).await);
    assert_eq!(refused.code, 422);
    assert_eq!(refused.reason, "Invalid");
    let causes = refused.details.expect("details").causes;
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, ["spec.replicas", "spec.config"]);
    assert!(
        refused.message.starts_with("admission webhook \"validate.demos.demo.example.com\" denied the request: Demo.demo.example.com \"one\" is invalid:"),
        "{}",
        refused.message
    );
}

#[windlass_cluster::test]
async fn an_update_is_judged_against_what_is_stored(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(demo("one", Some(1))).await;
    cluster
        .patch::<v2::Demo>("one", json!({"spec": {"replicas": 2}}))
        .await;
    let mut other = cluster.get::<v2::Demo>("one").await;
    other.spec.config = Some("other".to_owned());
    let refused = refusal(
        demos(&cluster)
            .replace("one", &PostParams::default(), &other)
            .await,
    );
    assert!(
        refused
            .message
            .contains("spec.config: Forbidden: may not change")
    );
}

#[windlass_cluster::test]
async fn a_deletion_can_be_denied(cluster: TestCluster) {
    cluster.start(operator()).await;
    let mut kept = demo("kept", Some(1));
    kept.labels_mut().insert("keep".into(), "yes".into());
    cluster.create(kept).await;
    let refused = refusal(
        demos(&cluster)
            .delete("kept", &DeleteParams::default())
            .await,
    );
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
    assert!(
        refused
            .message
            .ends_with("denied the request: it is to be kept")
    );
    cluster.create(demo("free", Some(1))).await;
    cluster.delete::<v2::Demo>("free").await;
}

#[windlass_cluster::test]
async fn a_webhook_reads_the_cache(cluster: TestCluster) {
    cluster.start(operator()).await;
    let named = |name: &str| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("of-{name}"));
        map.labels_mut().insert("demo".into(), name.into());
        map
    };
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let refused = refusal(maps.create(&PostParams::default(), &named("one")).await);
    assert!(
        refused.message.contains("there is no such Demo"),
        "{}",
        refused.message
    );
    cluster.create(demo("one", Some(1))).await;
    cluster.settle().await;
    cluster.create(named("one")).await;
}

#[windlass_cluster::test]
async fn a_panic_is_a_failed_call_and_the_next_one_works(cluster: TestCluster) {
    cluster.start(operator()).await;
    let refused = refusal(
        demos(&cluster)
            .create(&PostParams::default(), &demo("bad", Some(666)))
            .await,
    );
    assert_eq!(refused.code, 500);
    assert!(
        refused.message.contains("a webhook panicked"),
        "{}",
        refused.message
    );
    cluster.create(demo("good", Some(1))).await;
}

#[windlass_cluster::test]
async fn webhooks_survive_a_restart(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.restart_operators().await;
    assert_eq!(
        cluster.create(demo("one", None)).await.spec.replicas,
        Some(3)
    );
}

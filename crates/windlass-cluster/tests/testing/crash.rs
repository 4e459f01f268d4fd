//! Killed after any write, operators and controllers end where they would have ended.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass_cluster::TestCluster;

use crate::operators::{diligent, hasty, wish};

#[windlass_cluster::test]
async fn an_operator_that_looks_at_what_is_there_passes(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let replays = cluster
        .crash_after_every_write(|cluster| async move {
            cluster.create(wish("one")).await;
            cluster.settle().await;
            cluster.delete::<ConfigMap>("one-first").await;
            cluster.settle().await;
        })
        .await;
    assert_eq!(replays, 3);
}

#[windlass_cluster::test]
#[should_panic(
    expected = "killed after write 1 of 2 (create configmaps in default), system:serviceaccount:hasty-system:hasty ends differently"
)]
async fn an_operator_that_forgets_its_second_step_is_found_out(cluster: TestCluster) {
    cluster.start(hasty()).await;
    cluster
        .crash_after_every_write(|cluster| async move {
            cluster.create(wish("one")).await;
            cluster.settle().await;
        })
        .await;
}

#[windlass_cluster::test]
#[should_panic(expected = "nothing was written in this scenario")]
async fn a_scenario_without_a_write_proves_nothing(cluster: TestCluster) {
    cluster.start(diligent()).await;
    cluster
        .crash_after_every_write(|cluster| async move { cluster.settle().await })
        .await;
}

#[windlass_cluster::test]
#[should_panic(expected = "start an operator before asking for it to be killed")]
async fn there_has_to_be_somebody_to_kill(cluster: TestCluster) {
    cluster
        .crash_after_every_write(|cluster| async move {
            cluster.create(wish("one")).await;
        })
        .await;
}

fn web() -> Deployment {
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "a" }] },
            },
        },
    });
    serde_json::from_value(web).unwrap()
}

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

#[windlass_cluster::test]
async fn controllers_killed_in_a_roll_out_complete_it(cluster: TestCluster) {
    let replays = cluster
        .crash_controllers_after_every_write(|cluster| async move {
            cluster.create(web()).await;
            cluster.settle().await;
            cluster.patch::<Deployment>("web", image("b")).await;
            cluster.settle().await;
        })
        .await;
    assert!(replays >= 20, "only {replays} writes");
}

#[windlass_cluster::test]
async fn controllers_killed_in_a_deletion_leave_nothing_behind(cluster: TestCluster) {
    let replays = cluster
        .crash_controllers_after_every_write(|cluster| async move {
            cluster.create(web()).await;
            cluster.settle().await;
            let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
            let foreground = DeleteParams::foreground();
            deployments.delete("web", &foreground).await.unwrap();
            cluster.settle().await;
            assert_eq!(cluster.list::<Deployment>().await, []);
        })
        .await;
    assert!(replays >= 10, "only {replays} writes");
}

#[windlass_cluster::test]
async fn controllers_killed_while_a_namespace_goes_empty_it(cluster: TestCluster) {
    let replays = cluster
        .crash_controllers_after_every_write(|cluster| async move {
            let namespaces: Api<Namespace> = Api::all(cluster.client());
            let mut doomed = Namespace::default();
            doomed.metadata.name = Some("doomed".to_owned());
            let params = PostParams::default();
            namespaces.create(&params, &doomed).await.unwrap();
            let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "doomed");
            deployments.create(&params, &web()).await.unwrap();
            let secrets: Api<Secret> = Api::namespaced(cluster.client(), "doomed");
            secrets.create(&params, &wish("one")).await.unwrap();
            cluster.settle().await;
            let now = DeleteParams::default();
            namespaces.delete("doomed", &now).await.unwrap();
            cluster.settle().await;
            assert!(namespaces.get_opt("doomed").await.unwrap().is_none());
        })
        .await;
    assert!(replays >= 10, "only {replays} writes");
}

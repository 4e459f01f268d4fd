//! Releases from the first object to the last.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::ResourceExt as _;
use serde_json::json;
use windlass_charts::Chart;
use windlass_cluster::{TestCluster, minutes};

use crate::web::{
    Web, chart_folder, conditions, history, operator_of, patch, statuses, web, web_operator,
};

#[windlass_cluster::test]
async fn custom_resource_becomes_release_with_objects_conditions_and_notes(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster
        .create(web(json!({"replicas": 2, "page": "Hi"})))
        .await;
    cluster.settle().await;
    let deployment = cluster.get::<Deployment>("shop").await;
    assert_eq!(deployment.spec.as_ref().unwrap().replicas, Some(2));
    assert_eq!(deployment.owner_references()[0].kind, "Web");
    assert_eq!(
        deployment.labels()["helm.sdk.operatorframework.io/chart"],
        "web"
    );
    assert_eq!(
        deployment.annotations()["meta.helm.sh/release-name"],
        "shop"
    );
    let container = &deployment.spec.unwrap().template.spec.unwrap().containers[0];
    assert_eq!(
        container.image.as_deref(),
        Some("nginx:2"),
        "overridden by watches.yaml"
    );
    assert_eq!(
        conditions(&cluster).await,
        ["Initialized=True ", "Deployed=True InstallSuccessful"]
    );
    let status = cluster.get::<Web>("shop").await.status.unwrap();
    let deployed = status
        .conditions
        .iter()
        .find(|one| one["type"] == "Deployed");
    assert_eq!(deployed.unwrap()["message"], "shop serves Hi.\n");
    assert_eq!(status.deployed_release.unwrap()["name"], "shop");
    assert_eq!(statuses(&cluster).await, ["1 deployed"]);
    let finalizers = cluster.get::<Web>("shop").await.finalizers().to_vec();
    assert_eq!(
        finalizers,
        ["helm.sdk.operatorframework.io/uninstall-release"]
    );
}

#[windlass_cluster::test]
async fn deleted_and_changed_objects_are_repaired_and_then_nothing_is_sent(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster.create(web(json!({}))).await;
    cluster.settle().await;
    let before = cluster.get::<Service>("shop").await;
    cluster.delete::<Service>("shop").await;
    let page = json!({"data": {"index.html": "changed"}});
    cluster.patch::<ConfigMap>("shop", page).await;
    cluster.settle().await;
    assert_ne!(cluster.get::<Service>("shop").await.uid(), before.uid());
    let map = cluster.get::<ConfigMap>("shop").await;
    assert_eq!(map.data.unwrap()["index.html"], "Hello");
    assert_eq!(
        statuses(&cluster).await,
        ["1 deployed"],
        "a repair is no revision"
    );
    let sent = cluster.requests_of("webs").len();
    cluster.advance(minutes(30)).await;
    let more: Vec<_> = cluster.requests_of("webs").split_off(sent);
    let more: Vec<_> = more
        .iter()
        .filter(|one| format!("{:?}", one.verb) != "Watch")
        .collect();
    assert!(more.is_empty(), "{more:#?}");
}

#[windlass_cluster::test]
async fn changed_values_upgrade_and_prune_and_random_values_stay(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster
        .create(web(json!({"ingress": {"enabled": true}})))
        .await;
    cluster.settle().await;
    let password = cluster.get::<Secret>("shop").await.data;
    patch(
        &cluster,
        json!({"page": "New", "ingress": {"enabled": false}}),
    )
    .await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 superseded", "2 deployed"]);
    assert_eq!(
        conditions(&cluster).await[1],
        "Deployed=True UpgradeSuccessful"
    );
    let map = cluster.get::<ConfigMap>("shop").await;
    assert_eq!(map.data.unwrap()["index.html"], "New");
    let ingress = cluster
        .find::<k8s_openapi::api::networking::v1::Ingress>("shop")
        .await;
    assert!(ingress.is_none(), "it is not wanted any more");
    assert_eq!(cluster.get::<Secret>("shop").await.data, password);
    cluster.restart_operators().await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 superseded", "2 deployed"]);
}

#[windlass_cluster::test]
async fn deletion_removes_everything_but_what_is_kept(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster.create(web(json!({}))).await;
    cluster.settle().await;
    cluster.delete::<Web>("shop").await;
    cluster.settle().await;
    assert!(cluster.find::<Web>("shop").await.is_none());
    assert!(cluster.find::<Deployment>("shop").await.is_none());
    assert!(cluster.find::<Service>("shop").await.is_none());
    assert!(history(&cluster).await.is_empty());
    assert!(
        cluster.find::<Secret>("shop").await.is_some(),
        "helm.sh/resource-policy: keep"
    );
    // And is taken by a release of that name.
    cluster.create(web(json!({}))).await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 deployed"]);
}

#[windlass_cluster::test]
async fn finalizer_of_old_operators_holds_nothing_up(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    let mut old = web(json!({}));
    old.finalizers_mut().push("uninstall-helm-release".into());
    cluster.create(old).await;
    cluster.settle().await;
    cluster.delete::<Web>("shop").await;
    cluster.settle().await;
    assert!(cluster.find::<Web>("shop").await.is_none());
    assert!(cluster.find::<Service>("shop").await.is_none());
}

/// The pod of the hook's Job.
async fn hook_pod(cluster: &TestCluster) -> String {
    let pods = cluster.list::<Pod>().await;
    let pod = pods
        .iter()
        .find(|pod| pod.name_any().starts_with("shop-migrate"));
    pod.expect("the hook runs").name_any()
}

#[windlass_cluster::test]
async fn hook_runs_before_the_objects_and_goes_when_it_succeeded(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster
        .create(web(json!({"migrate": {"enabled": true}})))
        .await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 pending-install"]);
    assert!(cluster.find::<Deployment>("shop").await.is_none());
    let pod = hook_pod(&cluster).await;
    cluster.node().stop("default", &pod).unwrap();
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 deployed"]);
    assert!(cluster.find::<Deployment>("shop").await.is_some());
    assert!(cluster.find::<Job>("shop-migrate").await.is_none());
}

#[windlass_cluster::test]
async fn hook_before_deletion_runs_while_the_objects_are_there(cluster: TestCluster) {
    let mut files = windlass_charts::chart::files(&chart_folder()).unwrap();
    let hook = files
        .iter_mut()
        .find(|file| file.name == "templates/migrate.yaml")
        .unwrap();
    let text = String::from_utf8(hook.data.clone()).unwrap();
    hook.data = text.replace("pre-install,pre-upgrade", "pre-delete").into();
    let chart = Chart::from_files(files).unwrap();
    cluster.start(operator_of(chart)).await;
    cluster
        .create(web(json!({"migrate": {"enabled": true}})))
        .await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 deployed"]);
    cluster.delete::<Web>("shop").await;
    cluster.settle().await;
    let pod = hook_pod(&cluster).await;
    assert!(cluster.find::<Service>("shop").await.is_some());
    let kept = cluster.get::<Secret>("shop").await;
    assert!(kept.owner_references().is_empty());
    cluster.node().stop("default", &pod).unwrap();
    cluster.settle().await;
    assert!(cluster.find::<Web>("shop").await.is_none());
    assert!(cluster.find::<Service>("shop").await.is_none());
    assert!(cluster.find::<Job>("shop-migrate").await.is_none());
    assert!(cluster.find::<Secret>("shop").await.is_some());
}

#[windlass_cluster::test]
async fn failed_upgrade_is_rolled_back(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster.create(web(json!({}))).await;
    cluster.settle().await;
    patch(
        &cluster,
        json!({"page": "New", "migrate": {"enabled": true}}),
    )
    .await;
    cluster.settle().await;
    assert_eq!(
        statuses(&cluster).await,
        ["1 deployed", "2 pending-upgrade"]
    );
    let pod = hook_pod(&cluster).await;
    cluster
        .node()
        .fail("default", &pod, "Evicted", "no room")
        .unwrap();
    cluster.settle().await;
    assert_eq!(
        statuses(&cluster).await,
        ["1 superseded", "2 failed", "3 deployed"]
    );
    let map = cluster.get::<ConfigMap>("shop").await;
    assert_eq!(map.data.unwrap()["index.html"], "Hello");
    let conditions = conditions(&cluster).await;
    assert!(
        conditions.contains(&"ReleaseFailed=True UpgradeError".to_owned()),
        "{conditions:?}"
    );
}

#[windlass_cluster::test]
async fn object_the_server_refuses_fails_the_install_and_is_undone(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    let bad = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Bad_Name"}});
    cluster.create(web(json!({"extra": [bad]}))).await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 failed"]);
    assert!(
        cluster.find::<Deployment>("shop").await.is_none(),
        "a failed install is uninstalled"
    );
    assert_eq!(
        conditions(&cluster).await,
        ["Initialized=True ", "ReleaseFailed=True InstallError"]
    );
    patch(&cluster, json!({"extra": null})).await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 failed", "2 deployed"]);
}

#[windlass_cluster::test]
async fn chart_that_does_not_render_is_reported_and_deletes_nothing(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    cluster.create(web(json!({}))).await;
    cluster.settle().await;
    let host = json!({"ingress": {"enabled": true, "host": "a: b: c"}});
    patch(&cluster, host).await;
    cluster.settle().await;
    assert!(cluster.find::<Deployment>("shop").await.is_some());
    let conditions = conditions(&cluster).await;
    assert!(
        conditions.contains(&"Irreconcilable=True ReconcileError".to_owned()),
        "{conditions:?}"
    );
    cluster.delete::<Web>("shop").await;
    cluster.settle().await;
    assert!(
        cluster.find::<Web>("shop").await.is_none(),
        "deletion needs no rendering"
    );
}

async fn install_upgrade_and_delete(cluster: TestCluster) {
    cluster
        .create(web(json!({"ingress": {"enabled": true}})))
        .await;
    cluster.settle().await;
    patch(
        &cluster,
        json!({"page": "New", "ingress": {"enabled": false}}),
    )
    .await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await, ["1 superseded", "2 deployed"]);
    cluster.delete::<Web>("shop").await;
    cluster.settle().await;
    assert!(cluster.find::<Web>("shop").await.is_none());
    assert!(cluster.find::<Deployment>("shop").await.is_none());
    // What is kept has another password in each run, and the uid of another owner.
    cluster.delete::<Secret>("shop").await;
}

#[windlass_cluster::test]
async fn operator_killed_after_every_write_ends_alike(cluster: TestCluster) {
    cluster.start(web_operator()).await;
    let replays = cluster
        .crash_after_every_write(install_upgrade_and_delete)
        .await;
    assert!(replays > 10, "{replays}");
}

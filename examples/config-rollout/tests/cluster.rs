//! What the example promises, in a cluster.

use config_rollout_operator::{App, AppSpec, operator};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;
use windlass::object;
use windlass_cluster::TestCluster;

fn shared(level: &str) -> ConfigMap {
    object!(ConfigMap { metadata: { name: "shared" }, data: { "region": level } })
}

fn app() -> App {
    let spec = AppSpec {
        image: "nginx:1.29".to_owned(),
        shared_config: "shared".to_owned(),
        log_level: "info".to_owned(),
    };
    App::new("web", spec)
}

async fn generation(cluster: &TestCluster) -> i64 {
    let deployment = cluster.get::<Deployment>("web").await;
    deployment.metadata.generation.unwrap()
}

#[windlass_cluster::test]
async fn change_of_either_config_rolls_the_pods(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(shared("north")).await;
    cluster.create(app()).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<App>("web").await.status.unwrap().ready, 1);
    let config = cluster.get::<ConfigMap>("web-config").await.data.unwrap();
    assert_eq!(
        (config["region"].as_str(), config["logLevel"].as_str()),
        ("north", "info")
    );
    let before = generation(&cluster).await;

    cluster
        .patch::<ConfigMap>("shared", json!({"data": {"region": "south"}}))
        .await;
    cluster.settle().await;
    assert_eq!(generation(&cluster).await, before + 1);

    cluster
        .patch::<App>("web", json!({"spec": {"logLevel": "debug"}}))
        .await;
    cluster.settle().await;
    assert_eq!(generation(&cluster).await, before + 2);
}

#[windlass_cluster::test]
async fn app_without_shared_config_waits_and_keeps_its_pods(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(app()).await;
    cluster.settle().await;
    let conditions = cluster.get::<App>("web").await.status.unwrap().conditions;
    let degraded = conditions
        .iter()
        .find(|one| one.type_ == "Degraded")
        .unwrap();
    assert_eq!(
        (degraded.status.as_str(), degraded.reason.as_str()),
        ("True", "ConfigMapNotFound")
    );

    cluster.create(shared("north")).await;
    cluster.settle().await;
    cluster.delete::<ConfigMap>("shared").await;
    cluster.settle().await;
    assert_eq!(cluster.get::<App>("web").await.status.unwrap().ready, 1);
}

#[windlass_cluster::test]
async fn operator_killed_after_any_write_ends_alike(cluster: TestCluster) {
    cluster.start(operator()).await;
    let scenario = async |cluster: TestCluster| {
        cluster.create(shared("north")).await;
        cluster.create(app()).await;
        cluster.settle().await;
        cluster
            .patch::<ConfigMap>("shared", json!({"data": {"region": "south"}}))
            .await;
        cluster.settle().await;
    };
    assert!(cluster.crash_after_every_write(scenario).await > 3);
}

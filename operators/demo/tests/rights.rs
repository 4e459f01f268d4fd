//! The role: exactly what the operator needs; and the manifests that grant it.

use demo_operator::{Demo, DemoSpec, operator};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use windlass_cluster::{Failure, TestCluster, seconds};

const NAME: &str = "demo-operator";

fn demo(name: &str) -> Demo {
    let spec = DemoSpec {
        size: 1,
        r#type: "cache".to_owned(),
        config_map_name: "settings".to_owned(),
    };
    Demo::new(name, spec)
}

fn settings() -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("settings".to_owned());
    map
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    cluster.start(operator()).await;
    let exceptions = [
        (
            "update demoes/finalizers.demo.example.com",
            "asked for by an admission plugin that real clusters may have",
        ),
        (
            "patch demoes.demo.example.com",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
        (
            "delete deployments.apps",
            "every Demo has its Deployment as long as it lives",
        ),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            cluster.create(demo("one")).await;
            cluster.settle().await;
            cluster.create(settings()).await;
            cluster.settle().await;
            // Somebody else's, which the cache does not show yet: it is looked at, and left alone.
            let mut other = cluster.get::<Deployment>("one").await;
            other.metadata = kube::api::ObjectMeta {
                name: Some("two".to_owned()),
                ..kube::api::ObjectMeta::default()
            };
            other.status = None;
            cluster.delay_watch(NAME, "deployments.apps", seconds(30));
            cluster.create(other).await;
            cluster.create(demo("two")).await;
            cluster.settle().await;
            // An API server that cannot stream lists is asked for pages.
            for resource in ["configmaps", "deployments.apps", "demoes.demo.example.com"] {
                cluster.fail(Failure::with(400).by(NAME).on(resource).times(1));
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 10, "{shown}");
}

#[test]
fn the_manifests_in_the_repository_are_current() {
    windlass_cluster::manifests_are_current(&operator(), env!("CARGO_MANIFEST_DIR"));
}

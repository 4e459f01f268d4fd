//! The controllers against the real kube-apiserver, without kube-controller-manager.
//!
//! Not part of a plain `cargo test`, because that server takes minutes to build. To run it:
//!
//! ```text
//! REAL_DIR=/tmp/real scripts/real-control-plane start --no-controllers
//! WINDLASS_REAL_KUBECONFIG=/tmp/real/kubeconfig cargo test -p windlass-workloads --test real -- --ignored --nocapture
//! ```
//!
//! There is no node either: [`kubelet`] makes bound pods ready and lets deleted ones go.

mod cluster;
mod kubelet;
mod scenarios;

use windlass::Environment;
use windlass_workloads::{WorkloadsConfig, operator};

use self::cluster::Cluster;

#[tokio::test]
#[ignore = "needs the real kube-apiserver: see the module's documentation"]
async fn behaves_on_the_real_api_server() {
    let Some(path) = std::env::var_os("WINDLASS_REAL_KUBECONFIG") else {
        panic!("WINDLASS_REAL_KUBECONFIG names no kubeconfig");
    };
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let cluster = Cluster::connect(path.as_ref()).await;
    let workloads = operator(WorkloadsConfig {
        root_ca: Some("a certificate".to_owned()),
    });
    let running = workloads.start(cluster.client.clone(), Environment::default());
    running.synced().await;

    Box::pin(scenarios::a_namespace_gets_its_account_and_certificate(
        &cluster,
    ))
    .await;
    Box::pin(scenarios::a_pod_that_fits_nowhere_is_told_why(&cluster)).await;
    let kubelet = kubelet::start(&cluster).await;
    Box::pin(scenarios::a_deployment_becomes_available(&cluster)).await;
    Box::pin(scenarios::a_deployment_is_scaled(&cluster)).await;
    Box::pin(scenarios::a_template_is_rolled_out_and_back(
        &cluster, &kubelet,
    ))
    .await;
    Box::pin(scenarios::a_roll_out_that_never_gets_ready_stops(
        &cluster, &kubelet,
    ))
    .await;
    Box::pin(scenarios::recreate_never_runs_two_versions(
        &cluster, &kubelet,
    ))
    .await;
    Box::pin(scenarios::a_paused_deployment_waits(&cluster)).await;
    Box::pin(scenarios::a_killed_pod_is_replaced(&cluster)).await;
    Box::pin(scenarios::pods_are_adopted_and_released(&cluster)).await;
    Box::pin(scenarios::a_ready_pod_is_available_only_later(&cluster)).await;
    Box::pin(scenarios::a_name_that_is_taken_counts_as_a_collision(
        &cluster,
    ))
    .await;
    Box::pin(scenarios::old_revisions_are_forgotten(&cluster)).await;
    Box::pin(scenarios::deleted_in_the_background(&cluster)).await;
    Box::pin(scenarios::deleted_in_the_foreground(&cluster)).await;
    Box::pin(scenarios::deleted_as_an_orphan(&cluster)).await;
    Box::pin(scenarios::a_namespace_takes_everything_along(&cluster)).await;

    running.stop().await;
}

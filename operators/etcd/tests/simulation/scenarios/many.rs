//! Many clusters at once, and those that are in trouble.

use std::time::Duration;

use etcd_operator::EtcdCluster;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::Instant;

use super::play::{Scene, because, etcd, play};

#[test]
fn a_hundred_clusters_of_three_converge() {
    play(async |scene: Scene| {
        let before = Instant::now();
        for number in 0..100 {
            scene.create(&etcd(&format!("etcd-{number}"), 3)).await;
        }
        for number in 0..100 {
            let name = format!("etcd-{number}");
            scene
                .until(&name, "ready", |status| status.members.ready.len() == 3)
                .await;
        }
        println!(
            "100 clusters of 3 are ready after {:?} of virtual time",
            before.elapsed()
        );
        scene.stage.rest().await;
        assert_eq!(scene.pods().await.len(), 300);
        scene.nothing_is_lost();
    });
}

/// How long a cluster of three takes to be ready.
async fn time_of(scene: &Scene, name: &str) -> Duration {
    let before = Instant::now();
    scene.create(&etcd(name, 3)).await;
    scene
        .until(name, "ready", |status| status.members.ready.len() == 3)
        .await;
    before.elapsed()
}

#[test]
fn a_cluster_whose_calls_hang_delays_no_other() {
    play(async |scene: Scene| {
        let alone = time_of(&scene, "alone").await;
        scene.create(&etcd("slow", 3)).await;
        scene
            .until("slow", "there", |status| status.members.ready.len() == 3)
            .await;
        scene.hang("slow").await;
        scene
            .stage
            .patch::<EtcdCluster>("slow", json!({"spec": {"size": 5}}))
            .await;
        for number in 0..5 {
            let beside = time_of(&scene, &format!("beside-{number}")).await;
            let more = beside.saturating_sub(alone);
            assert!(
                more <= Duration::from_secs(1),
                "{beside:?} beside a slow one, {alone:?} alone"
            );
        }
        scene.world.hang_no_more();
        scene.ready("slow", 5).await;
        scene.nothing_is_lost();
    });
}

#[test]
fn ten_clusters_at_once_one_of_them_broken() {
    play(async |scene: Scene| {
        for number in 0..10 {
            scene.create(&etcd(&format!("etcd-{number}"), 3)).await;
        }
        for number in 0..10 {
            scene.ready(&format!("etcd-{number}"), 3).await;
        }
        scene.nothing_is_lost();
        for pod in scene.pods_of("etcd-4").await.iter().take(2) {
            scene.stage.delete::<Pod>(pod).await;
        }
        let given_up =
            |status: &etcd_operator::EtcdClusterStatus| because(status, "Degraded", "QuorumLost");
        scene.until("etcd-4", "given up", given_up).await;
        for number in (0..10).filter(|number| *number != 4) {
            let name = format!("etcd-{number}");
            let size = if number % 2 == 0 { 5 } else { 1 };
            scene
                .stage
                .patch::<EtcdCluster>(&name, json!({"spec": {"size": size}}))
                .await;
        }
        for number in (0..10).filter(|number| *number != 4) {
            let size = if number % 2 == 0 { 5 } else { 1 };
            scene.ready(&format!("etcd-{number}"), size).await;
        }
        scene.only_one_was_begun();
    });
}

#[test]
fn sizes_that_cannot_be_are_refused_with_the_field_named() {
    play(async |scene: Scene| {
        for size in [-1, 0, 8] {
            let refused = scene.stage.refused(&etcd("etcd", size)).await;
            assert_eq!(refused.code, 422);
            assert!(refused.message.contains("spec.size"), "{}", refused.message);
        }
    });
}

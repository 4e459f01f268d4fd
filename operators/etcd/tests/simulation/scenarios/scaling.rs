//! Making clusters and resizing them.

use etcd_operator::EtcdCluster;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;

use super::play::{Scene, etcd, is, with_volumes};

async fn created(scene: &Scene, size: i32) {
    scene.create(&etcd("etcd", size)).await;
    let size = usize::try_from(size).unwrap();
    scene.ready("etcd", size).await;
    assert_eq!(scene.pods().await.len(), size);
    scene.nothing_is_lost();
}

pub(crate) async fn one_member(scene: Scene) {
    created(&scene, 1).await;
}

pub(crate) async fn three_members(scene: Scene) {
    created(&scene, 3).await;
}

pub(crate) async fn five_members(scene: Scene) {
    created(&scene, 5).await;
}

pub(crate) async fn seven_members(scene: Scene) {
    created(&scene, 7).await;
}

pub(crate) async fn three_members_with_volumes(scene: Scene) {
    scene.create(&with_volumes(etcd("etcd", 3))).await;
    scene.ready("etcd", 3).await;
    assert_eq!(scene.stage.list::<PersistentVolumeClaim>().await.len(), 3);
    scene.nothing_is_lost();
}

pub(crate) async fn paused_nothing_is_done(scene: Scene) {
    scene.create(&etcd("etcd", 1)).await;
    scene.ready("etcd", 1).await;
    let pause = |paused: bool, size: i32| json!({"spec": {"paused": paused, "size": size}});
    scene
        .stage
        .patch::<EtcdCluster>("etcd", pause(true, 3))
        .await;
    scene
        .until("etcd", "paused", |status| status.phase == "Paused")
        .await;
    scene.stage.rest().await;
    assert_eq!(scene.pods().await.len(), 1);
    scene
        .stage
        .patch::<EtcdCluster>("etcd", pause(false, 3))
        .await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
}

pub(crate) async fn the_status_names_the_members_that_are_ready(scene: Scene) {
    scene.create(&etcd("etcd", 3)).await;
    let status = scene.ready("etcd", 3).await;
    let mut pods = scene.pods().await;
    pods.sort_unstable();
    assert_eq!(status.members.ready, pods);
    let unready = pods[1].clone();
    scene.cut(&unready, true).await;
    let told = |status: &etcd_operator::EtcdClusterStatus| {
        status.members.unready == [unready.clone()] && is(status, "Available", "True")
    };
    scene.until("etcd", "short of one member", told).await;
    scene.cut(&unready, false).await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
}

async fn resized(scene: &Scene, sizes: &[i32]) {
    scene.create(&etcd("etcd", sizes[0])).await;
    for size in sizes {
        let patch = json!({"spec": {"size": size}});
        scene.stage.patch::<EtcdCluster>("etcd", patch).await;
        let size = usize::try_from(*size).unwrap();
        scene.ready("etcd", size).await;
        assert_eq!(scene.pods().await.len(), size);
    }
    scene.nothing_is_lost();
}

pub(crate) async fn resized_from_three_to_five(scene: Scene) {
    resized(&scene, &[3, 5]).await;
}

pub(crate) async fn resized_from_five_to_three(scene: Scene) {
    resized(&scene, &[5, 3]).await;
}

pub(crate) async fn resized_from_three_to_one_to_three(scene: Scene) {
    resized(&scene, &[3, 1, 3]).await;
}

/// Whoever is to go when one does is made the leader before.
pub(crate) async fn the_leader_is_the_one_removed(scene: Scene) {
    scene.create(&etcd("etcd", 3)).await;
    let status = scene.ready("etcd", 3).await;
    let last = status.roster.last().unwrap().name.clone();
    scene.lead(&last);
    scene
        .until("etcd", "led by the last", |status| {
            status.leader.as_ref() == Some(&last)
        })
        .await;
    scene
        .stage
        .patch::<EtcdCluster>("etcd", json!({"spec": {"size": 2}}))
        .await;
    let status = scene.ready("etcd", 2).await;
    assert!(status.roster.iter().all(|member| member.name != last));
    scene.nothing_is_lost();
}

pub(crate) async fn deleted_takes_everything_with_it(scene: Scene) {
    scene.create(&with_volumes(etcd("etcd", 3))).await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
    scene.stage.delete::<EtcdCluster>("etcd").await;
    scene.stage.rest().await;
    assert_eq!(scene.stage.list::<Pod>().await.len(), 0);
    assert_eq!(scene.stage.list::<PersistentVolumeClaim>().await.len(), 0);
    assert_eq!(scene.stage.list::<PodDisruptionBudget>().await.len(), 0);
    let services = scene.stage.list::<Service>().await;
    assert!(
        services
            .iter()
            .all(|one| one.metadata.name.as_deref() == Some("kubernetes"))
    );
}

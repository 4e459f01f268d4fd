//! Members that fail, and what comes back.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;

use super::play::{Scene, because, etcd, is, with_volumes};

pub(crate) async fn one_member_recovers(scene: Scene) {
    scene.create(&etcd("etcd", 3)).await;
    scene.ready("etcd", 3).await;
    let gone = scene.pods().await.remove(0);
    scene.stage.delete::<Pod>(&gone).await;
    scene
        .until("etcd", "short of a member", |status| {
            status.members.ready.len() < 3
        })
        .await;
    let status = scene.ready("etcd", 3).await;
    assert!(
        !status.members.ready.contains(&gone),
        "its data is gone, and so is it"
    );
    scene.nothing_is_lost();
}

pub(crate) async fn one_member_recovers_on_its_volume(scene: Scene) {
    scene.create(&with_volumes(etcd("etcd", 3))).await;
    scene.ready("etcd", 3).await;
    let gone = scene.pods().await.remove(0);
    scene.stage.delete::<Pod>(&gone).await;
    scene
        .until("etcd", "short of a member", |status| {
            status.members.ready.len() < 3
        })
        .await;
    let status = scene.ready("etcd", 3).await;
    assert!(
        status.members.ready.contains(&gone),
        "its data is there, and so is it"
    );
    scene.nothing_is_lost();
}

pub(crate) async fn two_of_five_recover(scene: Scene) {
    scene.create(&etcd("etcd", 5)).await;
    scene.ready("etcd", 5).await;
    let pods = scene.pods().await;
    for gone in &pods[..2] {
        scene.stage.delete::<Pod>(gone).await;
    }
    scene
        .until("etcd", "short of members", |status| {
            status.members.ready.len() < 5
        })
        .await;
    scene.ready("etcd", 5).await;
    scene.nothing_is_lost();
}

async fn pods_lost(scene: &Scene, count: usize) {
    scene.create(&with_volumes(etcd("etcd", 3))).await;
    let before = scene.ready("etcd", 3).await;
    for gone in scene.pods().await.iter().take(count) {
        scene.stage.delete::<Pod>(gone).await;
    }
    let silent = |status: &etcd_operator::EtcdClusterStatus| !is(status, "Available", "True");
    scene.until("etcd", "without a majority", silent).await;
    let after = scene.ready("etcd", 3).await;
    assert_eq!(
        before.members.ready, after.members.ready,
        "each on its own volume"
    );
    scene.nothing_is_lost();
}

pub(crate) async fn all_pods_deleted_with_volumes(scene: Scene) {
    pods_lost(&scene, 3).await;
}

pub(crate) async fn the_majority_lost_with_volumes(scene: Scene) {
    pods_lost(&scene, 2).await;
}

async fn data_lost(scene: &Scene, count: usize) {
    scene.create(&etcd("etcd", 3)).await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
    for gone in scene.pods().await.iter().take(count) {
        scene.stage.delete::<Pod>(gone).await;
    }
    let lost = |status: &etcd_operator::EtcdClusterStatus| {
        status.phase == "Failed" && because(status, "Degraded", "QuorumLost")
    };
    scene.until("etcd", "given up", lost).await;
    scene.stage.rest().await;
    scene.until("etcd", "still given up", lost).await;
    assert_eq!(
        scene.pods().await.len(),
        3 - count,
        "nothing was started in their place"
    );
    scene.only_one_was_begun();
    let events = scene.stage.list::<Event>().await;
    let told = events
        .iter()
        .any(|event| event.reason.as_deref() == Some("QuorumLost"));
    assert!(told, "an event says so");
}

pub(crate) async fn all_pods_deleted_without_volumes(scene: Scene) {
    data_lost(&scene, 3).await;
}

pub(crate) async fn the_majority_lost_without_volumes(scene: Scene) {
    data_lost(&scene, 2).await;
}

pub(crate) async fn a_data_folder_corrupted(scene: Scene) {
    scene.create(&with_volumes(etcd("etcd", 3))).await;
    scene.ready("etcd", 3).await;
    let spoilt = scene.pods().await.remove(0);
    scene.corrupt(&spoilt).await;
    scene
        .until("etcd", "short of a member", |status| {
            status.members.ready.len() < 3
        })
        .await;
    let status = scene.ready("etcd", 3).await;
    assert!(
        !status.members.ready.contains(&spoilt),
        "another took its place"
    );
    scene.nothing_is_lost();
}

/// The pod of the first member is the one that was made to begin the cluster.
pub(crate) async fn first_member_with_emptied_folder_begins_no_second_cluster(scene: Scene) {
    scene.create(&etcd("etcd", 3)).await;
    let before = scene.ready("etcd", 3).await;
    let first = before.roster[0].name.clone();
    scene.empty(&first).await;
    let replaced = |status: &etcd_operator::EtcdClusterStatus| {
        let mut names = status.roster.iter().map(|member| &member.name);
        names.all(|name| *name != first)
    };
    scene
        .until("etcd", "without its first member", replaced)
        .await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
}

pub(crate) async fn member_with_emptied_folder_is_replaced_on_its_volume(scene: Scene) {
    scene.create(&with_volumes(etcd("etcd", 3))).await;
    let before = scene.ready("etcd", 3).await;
    let emptied = before.roster[2].name.clone();
    scene.empty(&emptied).await;
    let replaced = |status: &etcd_operator::EtcdClusterStatus| {
        let mut names = status.roster.iter().map(|member| &member.name);
        names.all(|name| *name != emptied)
    };
    scene.until("etcd", "without that member", replaced).await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
}

/// Two members have the last writes. One of them forgets them, the other is away: the third must
/// not be elected by one that does not know what it has agreed to.
pub(crate) async fn member_without_its_data_does_not_vote(scene: Scene) {
    scene.create(&etcd("etcd", 3)).await;
    let before = scene.ready("etcd", 3).await;
    let names: Vec<String> = before.roster.iter().map(|one| one.name.clone()).collect();
    let [first, behind, newest] = &names[..] else {
        panic!("{names:?}");
    };
    scene.lead(first);
    scene.cut(behind, true).await;
    scene.progress().await;
    scene.empty(newest).await;
    scene.cut(first, true).await;
    scene.cut(behind, false).await;
    scene.refused(newest).await;
    let silent = |status: &etcd_operator::EtcdClusterStatus| {
        because(status, "Degraded", "NoQuorum") && !is(status, "Available", "True")
    };
    scene.until("etcd", "without a majority", silent).await;
    scene.cut(first, false).await;
    scene.ready("etcd", 3).await;
    scene.nothing_is_lost();
}

async fn single_member_emptied(scene: Scene, cluster: etcd_operator::EtcdCluster) {
    scene.create(&cluster).await;
    scene.ready("etcd", 1).await;
    scene.nothing_is_lost();
    let pod = scene.pods().await.remove(0);
    scene.empty(&pod).await;
    let lost = |status: &etcd_operator::EtcdClusterStatus| {
        status.phase == "Failed"
            && because(status, "Degraded", "QuorumLost")
            && !is(status, "Available", "True")
    };
    scene.until("etcd", "given up", lost).await;
    scene.refused(&pod).await;
    scene.until("etcd", "still given up", lost).await;
    scene.only_one_was_begun();
    // Kubelet goes on trying, so nothing comes to rest before this.
    scene
        .stage
        .delete::<etcd_operator::EtcdCluster>("etcd")
        .await;
    scene.stage.rest().await;
    scene.only_one_was_begun();
}

pub(crate) async fn single_member_with_emptied_folder_is_not_started_empty(scene: Scene) {
    single_member_emptied(scene, etcd("etcd", 1)).await;
}

pub(crate) async fn single_member_with_emptied_volume_is_not_started_empty(scene: Scene) {
    single_member_emptied(scene, with_volumes(etcd("etcd", 1))).await;
}

pub(crate) async fn a_member_cut_off_comes_back(scene: Scene) {
    scene.create(&etcd("etcd", 3)).await;
    let before = scene.ready("etcd", 3).await;
    let leader = before.leader.clone().unwrap();
    scene.cut(&leader, true).await;
    scene
        .until("etcd", "led by another", |status| {
            status.leader.as_ref() != Some(&leader)
        })
        .await;
    scene.cut(&leader, false).await;
    let after = scene.ready("etcd", 3).await;
    assert_eq!(before.members.ready, after.members.ready);
    scene.nothing_is_lost();
}

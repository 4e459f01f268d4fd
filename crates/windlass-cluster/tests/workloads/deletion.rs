//! A Deployment is deleted: what becomes of its `ReplicaSets` and pods.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;

use crate::scene::web;
use crate::stage::play;

#[test]
fn deleted_in_the_background_it_goes_first() {
    play("background", async |scene| {
        scene.create::<Deployment>(web(2, "a")).await;
        scene.until_rolled_out("web").await;
        scene
            .delete::<Deployment>("web", &DeleteParams::background())
            .await;
        assert!(scene.find::<Deployment>("web").await.is_none());
        scene
            .until_all::<ReplicaSet>("no replica set", <[_]>::is_empty)
            .await;
        scene.until_all::<Pod>("no pod", <[_]>::is_empty).await;
    });
}

#[test]
fn deleted_in_the_foreground_it_goes_last() {
    play("foreground", async |scene| {
        scene.create::<Deployment>(web(2, "a")).await;
        scene.until_rolled_out("web").await;
        scene
            .delete::<Deployment>("web", &DeleteParams::foreground())
            .await;
        let deployment = scene.find::<Deployment>("web").await.unwrap();
        assert_eq!(deployment.finalizers(), ["foregroundDeletion"]);
        scene.until_gone::<Deployment>("web").await;
        assert!(scene.sets().await.is_empty(), "the replica set went first");
        assert!(scene.pods().await.is_empty(), "and its pods before it");
    });
}

#[test]
fn deleted_as_an_orphan_it_leaves_all_behind_for_another_to_take_over() {
    play("orphan", async |scene| {
        scene.create::<Deployment>(web(2, "a")).await;
        scene.until_rolled_out("web").await;
        scene
            .delete::<Deployment>("web", &DeleteParams::orphan())
            .await;
        scene.until_gone::<Deployment>("web").await;
        let [left] = &scene.sets().await[..] else {
            panic!("the replica set stays")
        };
        assert_eq!(left.owner_references(), []);
        assert_eq!(scene.pods().await.len(), 2);
        scene.create::<Deployment>(web(2, "a")).await;
        scene.until_rolled_out("web").await;
        let [set] = &scene.sets().await[..] else {
            panic!("the replica set was taken over")
        };
        assert_eq!((set.uid(), set.name_any()), (left.uid(), left.name_any()));
    });
}

//! From one template of a set to the next.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::{db, still, until_settled};
use crate::scene::{BROKEN, Scene, image};
use crate::stage::play;

/// What the real controller calls the first revision of the first test.
const NAME: &str = "db-69c44fb4b6";

fn image_of(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref().expect("a spec");
    spec.containers[0].image.as_deref().unwrap_or_default()
}

async fn images(scene: &Scene) -> Vec<String> {
    scene
        .pods()
        .await
        .iter()
        .map(|pod| image_of(pod).to_owned())
        .collect()
}

async fn until_images(scene: &Scene, images: &[&str]) {
    let what = format!("the images {images:?}");
    let are = |pods: &[Pod]| pods.iter().map(image_of).eq(images.iter().copied());
    scene.until_all::<Pod>(&what, are).await;
}

async fn revisions(scene: &Scene) -> Vec<i64> {
    let mut numbers: Vec<i64> = scene
        .list::<ControllerRevision>()
        .await
        .iter()
        .map(|one| one.revision)
        .collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn the_name_of_a_revision_is_the_one_kubernetes_gives_it() {
    play("revision-name", async |scene| {
        let mut set = db(0, "a");
        set["metadata"]["annotations"] = json!({ "team": "blue" });
        set["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["<a & b>"]);
        scene.create::<StatefulSet>(set).await;
        let is_named = |set: &StatefulSet| {
            let status = set.status.as_ref();
            status.is_some_and(|status| status.update_revision.is_some())
        };
        let set = scene.until::<StatefulSet>("db", "observed", is_named).await;
        let status = set.status.unwrap();
        let [revision] = &scene.list::<ControllerRevision>().await[..] else {
            panic!("one revision")
        };
        assert_eq!(revision.name_any(), NAME);
        assert_eq!(status.update_revision.as_deref(), Some(NAME));
        assert_eq!(status.collision_count, Some(0));
        assert_eq!(
            revision.labels()["controller.kubernetes.io/hash"],
            NAME["db-".len()..]
        );
        assert_eq!(revision.labels()["app"], "db");
        assert_eq!(revision.annotations()["team"], "blue");
        assert_eq!(revision.revision, 1);
        let data = &revision.data.as_ref().unwrap().0;
        assert_eq!(data["spec"]["template"]["$patch"], "replace");
        assert_eq!(data["spec"]["template"]["spec"]["restartPolicy"], "Always");
    });
}

#[test]
fn a_template_is_rolled_out_from_the_end_and_back() {
    play("out-and-back", async |scene| {
        scene.create::<StatefulSet>(db(2, "a")).await;
        let first = until_settled(scene, 2)
            .await
            .status
            .unwrap()
            .current_revision;
        scene.patch::<StatefulSet>("db", image("b")).await;
        let second = until_settled(scene, 2)
            .await
            .status
            .unwrap()
            .current_revision;
        assert_eq!(images(scene).await, ["b", "b"]);
        assert_ne!(first, second);
        assert_eq!(revisions(scene).await, [1, 2]);
        scene.patch::<StatefulSet>("db", image("a")).await;
        let third = until_settled(scene, 2)
            .await
            .status
            .unwrap()
            .current_revision;
        assert_eq!(third, first, "an old revision is used again");
        assert_eq!(revisions(scene).await, [2, 3], "under a new number");
    });
}

#[test]
fn an_update_stops_at_a_pod_that_does_not_get_ready() {
    play("stops", async |scene| {
        scene.create::<StatefulSet>(db(2, "a")).await;
        until_settled(scene, 2).await;
        scene.patch::<StatefulSet>("db", image(BROKEN)).await;
        until_images(scene, &["a", BROKEN]).await;
        let stuck = |set: &StatefulSet| {
            let status = set.status.as_ref();
            status.is_some_and(|status| {
                (
                    status.ready_replicas,
                    status.updated_replicas,
                    status.current_replicas,
                ) == (Some(1), Some(1), Some(1))
            })
        };
        scene.until::<StatefulSet>("db", "stuck", stuck).await;
        assert_eq!(images(scene).await, ["a", BROKEN]);
    });
}

#[test]
fn a_partition_holds_the_lower_pods_back() {
    play("partition", async |scene| {
        let mut set = db(3, "a");
        set["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 2 } });
        scene.create::<StatefulSet>(set).await;
        until_settled(scene, 3).await;
        scene.patch::<StatefulSet>("db", image("b")).await;
        until_images(scene, &["a", "a", "b"]).await;
        // One that is lost below the partition comes back as it was.
        scene.delete::<Pod>("db-1", &DeleteParams::default()).await;
        let counts = |set: &StatefulSet| {
            let status = set.status.clone().unwrap_or_default();
            (
                status.ready_replicas,
                status.current_replicas,
                status.updated_replicas,
            ) == (Some(3), Some(2), Some(1))
        };
        scene.until::<StatefulSet>("db", "held back", counts).await;
        until_images(scene, &["a", "a", "b"]).await;
        let all = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } });
        scene.patch::<StatefulSet>("db", all).await;
        until_settled(scene, 3).await;
        assert_eq!(images(scene).await, ["b", "b", "b"]);
    });
}

#[test]
fn on_delete_waits_until_somebody_deletes() {
    play("on-delete", async |scene| {
        let mut set = db(2, "a");
        set["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
        scene.create::<StatefulSet>(set).await;
        until_settled(scene, 2).await;
        scene.patch::<StatefulSet>("db", image("b")).await;
        let observed = |set: &StatefulSet| {
            let status = set.status.as_ref();
            status.is_some_and(|status| {
                status.observed_generation == set.metadata.generation
                    && status.updated_replicas.is_none()
            })
        };
        scene.until::<StatefulSet>("db", "observed", observed).await;
        assert_eq!(images(scene).await, ["a", "a"]);
        scene.delete::<Pod>("db-0", &DeleteParams::default()).await;
        until_images(scene, &["b", "a"]).await;
    });
}

#[test]
fn revisions_beyond_the_limit_are_forgotten() {
    play("limit", async |scene| {
        let mut set = still(0);
        set["spec"]["revisionHistoryLimit"] = json!(1);
        scene.create::<StatefulSet>(set).await;
        for version in ["a", "b", "c", "d"] {
            let set = scene.patch::<StatefulSet>("db", image(version)).await;
            let observed = |now: &StatefulSet| {
                let status = now.status.as_ref();
                status.is_some_and(|status| {
                    status.observed_generation == set.metadata.generation
                        && status.current_revision == status.update_revision
                })
            };
            scene.until::<StatefulSet>("db", "observed", observed).await;
        }
        let numbers = |revisions: &[ControllerRevision]| {
            let mut numbers: Vec<i64> = revisions.iter().map(|one| one.revision).collect();
            numbers.sort_unstable();
            numbers
        };
        // The clean-up may come a step after the roll-out.
        scene
            .until_all::<ControllerRevision>("two revisions", |all| numbers(all) == [3, 4])
            .await;
    });
}

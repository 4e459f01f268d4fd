//! From one template to the next.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::json;

use crate::scene::{BROKEN, annotation, image, reason, web};
use crate::spectator::{Most, Spectator};
use crate::stage::play;

const REVISION: &str = "deployment.kubernetes.io/revision";

#[test]
fn a_template_is_rolled_out_and_back() {
    play("out-and-back", async |scene| {
        scene.create::<Deployment>(web(4, "a")).await;
        scene.until_rolled_out("web").await;
        scene.patch::<Deployment>("web", image("b")).await;
        let deployment = scene.until_rolled_out("web").await;
        assert_eq!(annotation(&deployment, REVISION), "2");
        scene.patch::<Deployment>("web", image("a")).await;
        let deployment = scene.until_rolled_out("web").await;
        assert_eq!(annotation(&deployment, REVISION), "3");
        let sets = scene.sets().await;
        assert_eq!(sets.len(), 2, "going back makes no new replica set");
        let history: Vec<&str> = sets
            .iter()
            .map(|set| annotation(set, "deployment.kubernetes.io/revision-history"))
            .collect();
        assert!(history.contains(&"1"), "{history:?}");
    });
}

#[test]
fn a_rolling_update_stays_within_its_limits() {
    play("within-limits", async |scene| {
        let spectator = Spectator::of(scene);
        let mut deployment = web(4, "a");
        deployment["spec"]["strategy"] =
            json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
        scene.create::<Deployment>(deployment).await;
        scene.until_rolled_out("web").await;
        scene.patch::<Deployment>("web", image("b")).await;
        let limits = |deployment: &Deployment| {
            let status = deployment.status.clone().unwrap_or_default();
            assert!(status.replicas <= Some(5), "{status:?}");
            assert!(status.available_replicas >= Some(4), "{status:?}");
            status.updated_replicas == Some(4)
                && status.replicas == Some(4)
                && status.observed_generation == deployment.metadata.generation
        };
        scene.until("web", "rolled out within limits", limits).await;
        // Pods on their way out are not counted by the surge.
        assert!(spectator.most().pods <= 8, "{:?}", spectator.most());
        assert_eq!(spectator.most().images, 2);
    });
}

#[test]
fn a_roll_out_that_never_gets_ready_stops_and_can_be_taken_back() {
    play("never-ready", async |scene| {
        let mut deployment = web(4, "a");
        deployment["spec"]["progressDeadlineSeconds"] = json!(2);
        scene.create::<Deployment>(deployment).await;
        scene.until_rolled_out("web").await;
        scene.patch::<Deployment>("web", image(BROKEN)).await;
        let deployment = scene
            .until("web", "timed out", |deployment: &Deployment| {
                reason(deployment, "Progressing") == "ProgressDeadlineExceeded"
            })
            .await;
        let status = deployment.status.as_ref().unwrap();
        assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
        assert_eq!(
            status.available_replicas,
            Some(3),
            "four less one unavailable"
        );
        assert_eq!(
            status.updated_replicas,
            Some(2),
            "one of surge and one for the unavailable"
        );
        scene.patch::<Deployment>("web", image("a")).await;
        scene.until_rolled_out("web").await;
    });
}

#[test]
fn recreate_never_runs_two_versions() {
    play("recreate", async |scene| {
        let spectator = Spectator::of(scene);
        let mut deployment = web(3, "a");
        deployment["spec"]["strategy"] = json!({ "type": "Recreate" });
        scene.create::<Deployment>(deployment).await;
        scene.until_rolled_out("web").await;
        scene.patch::<Deployment>("web", image("b")).await;
        scene.until_rolled_out("web").await;
        assert_eq!(spectator.most(), Most { pods: 3, images: 1 });
    });
}

#[test]
fn old_revisions_are_forgotten() {
    play("revisions", async |scene| {
        let mut deployment = web(1, "a");
        deployment["spec"]["revisionHistoryLimit"] = json!(1);
        scene.create::<Deployment>(deployment).await;
        scene.until_rolled_out("web").await;
        for version in ["b", "c", "d"] {
            scene.patch::<Deployment>("web", image(version)).await;
            scene.until_rolled_out("web").await;
        }
        // The clean-up may come a step after the roll-out.
        scene
            .until_all::<ReplicaSet>("only the last two", |sets| {
                let mut kept: Vec<&str> =
                    sets.iter().map(|set| annotation(set, REVISION)).collect();
                kept.sort_unstable();
                kept == ["3", "4"]
            })
            .await;
    });
}

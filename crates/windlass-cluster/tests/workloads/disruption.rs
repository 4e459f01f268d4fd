//! Budgets: how many pods may go.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use crate::scene::{BROKEN, Scene, idle, web};
use crate::stage::play;

#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn budget(spec: Value) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": "budget" },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
    });
    for (key, value) in spec.as_object().expect("a spec") {
        budget["spec"][key] = value.clone();
    }
    budget
}

/// Expected, desired, healthy, allowed.
async fn until_counts(scene: &Scene, wanted: [i32; 4]) -> PodDisruptionBudget {
    let what = format!("at {wanted:?}");
    let is = |budget: &PodDisruptionBudget| {
        let status = budget.status.clone().unwrap_or_default();
        let counts = [
            status.expected_pods,
            status.desired_healthy,
            status.current_healthy,
            status.disruptions_allowed,
        ];
        status.observed_generation == budget.metadata.generation
            && counts.map(|count| count.unwrap_or(0)) == wanted
    };
    scene
        .until::<PodDisruptionBudget>("budget", &what, is)
        .await
}

fn told(budget: &PodDisruptionBudget) -> (String, String) {
    let conditions = budget.status.as_ref().unwrap().conditions.as_ref().unwrap();
    assert_eq!(conditions[0].type_, "DisruptionAllowed");
    (conditions[0].status.clone(), conditions[0].reason.clone())
}

#[test]
fn what_is_healthy_beyond_the_minimum_may_go() {
    play("min-available", async |scene| {
        scene
            .create::<PodDisruptionBudget>(budget(json!({ "minAvailable": 2 })))
            .await;
        let empty = until_counts(scene, [0, 2, 0, 0]).await;
        assert_eq!(
            told(&empty),
            ("False".to_owned(), "InsufficientPods".to_owned())
        );
        scene
            .until_told("budget", "NoPods", "No matching pods found")
            .await;
        scene.create::<Deployment>(web(3, "a")).await;
        let enough = until_counts(scene, [3, 2, 3, 1]).await;
        assert_eq!(
            told(&enough),
            ("True".to_owned(), "SufficientPods".to_owned())
        );
    });
}

#[test]
fn percentages_are_of_what_is_wanted() {
    play("percentages", async |scene| {
        scene
            .create::<PodDisruptionBudget>(budget(json!({ "minAvailable": "50%" })))
            .await;
        scene.create::<Deployment>(web(3, "a")).await;
        until_counts(scene, [3, 2, 3, 1]).await;
        let patch = json!({ "spec": { "minAvailable": null, "maxUnavailable": 1 } });
        scene.patch::<PodDisruptionBudget>("budget", patch).await;
        until_counts(scene, [3, 2, 3, 1]).await;
        scene
            .patch::<Deployment>("web", json!({ "spec": { "replicas": 5 } }))
            .await;
        until_counts(scene, [5, 4, 5, 1]).await;
    });
}

#[test]
fn pods_that_are_not_ready_are_not_healthy() {
    play("not-ready", async |scene| {
        scene
            .create::<PodDisruptionBudget>(budget(json!({ "maxUnavailable": "34%" })))
            .await;
        scene.create::<Deployment>(web(2, BROKEN)).await;
        until_counts(scene, [2, 1, 0, 0]).await;
    });
}

#[test]
fn a_pod_without_a_controller_counts_only_towards_a_number() {
    play("unmanaged", async |scene| {
        let pod =
            json!({ "metadata": { "name": "alone", "labels": { "app": "web" } }, "spec": idle() });
        scene.create::<Pod>(pod).await;
        scene.make_ready("alone").await;
        scene
            .create::<PodDisruptionBudget>(budget(json!({ "minAvailable": 1 })))
            .await;
        until_counts(scene, [1, 1, 1, 0]).await;
        let patch = json!({ "spec": { "minAvailable": null, "maxUnavailable": 1 } });
        scene.patch::<PodDisruptionBudget>("budget", patch).await;
        until_counts(scene, [0, 0, 1, 0]).await;
    });
}

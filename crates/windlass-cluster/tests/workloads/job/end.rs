//! How a Job ends other than by completing.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{conditions, has, until_active, work};
use crate::scene::Scene;
use crate::stage::play;

/// Waits until the Job has failed for this reason, and has told so.
async fn until_failed(scene: &Scene, reason: &str, message: &str) -> Job {
    let job = scene
        .until::<Job>("work", "failed", |job| has(job, "Failed"))
        .await;
    let reason_of = |type_: &str| (type_.to_owned(), reason.to_owned());
    assert_eq!(
        conditions(&job),
        [reason_of("FailureTarget"), reason_of("Failed")]
    );
    let status = job.status.as_ref().unwrap();
    assert_eq!(
        (status.active, status.ready, status.terminating),
        (None, Some(0), Some(0))
    );
    assert_eq!(status.completion_time, None);
    scene.until_told("work", reason, message).await;
    job
}

#[test]
fn a_job_fails_beyond_its_limit() {
    play("limit", async |scene| {
        scene
            .create::<Job>(work(
                json!({ "backoffLimit": 0, "parallelism": 2, "completions": 2 }),
            ))
            .await;
        let pods = until_active(scene, 2).await;
        scene.end(&pods[0].name_any(), 1).await;
        let message = "Job has reached the specified backoff limit";
        let job = until_failed(scene, "BackoffLimitExceeded", message).await;
        assert_eq!(job.status.unwrap().failed, Some(2), "the other was ended");
        let gone = pods[1].name_any();
        scene.until_gone::<Pod>(&gone).await;
        scene
            .until_told("work", "SuccessfulDelete", &format!("Deleted pod: {gone}"))
            .await;
    });
}

#[test]
fn a_job_fails_at_its_deadline() {
    play("deadline", async |scene| {
        scene
            .create::<Job>(work(json!({ "activeDeadlineSeconds": 2 })))
            .await;
        until_active(scene, 1).await;
        let message = "Job was active longer than specified deadline";
        let job = until_failed(scene, "DeadlineExceeded", message).await;
        assert_eq!(job.status.unwrap().failed, Some(1));
        scene.until_all::<Pod>("no pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn a_job_that_ended_goes_when_its_time_is_up() {
    play("ttl", async |scene| {
        scene
            .create::<Job>(work(json!({ "ttlSecondsAfterFinished": 2 })))
            .await;
        let [pod] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        scene.end(&pod.name_any(), 0).await;
        scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        scene.until_gone::<Job>("work").await;
        assert!(scene.pods().await.is_empty(), "its pods went before it");
    });
}

#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn policy(rules: Value) -> Value {
    work(json!({ "backoffLimit": 0, "podFailurePolicy": { "rules": rules } }))
}

#[test]
fn an_exit_code_can_fail_the_job() {
    play("fail-job", async |scene| {
        let rules = json!([
            { "action": "Ignore", "onExitCodes": { "operator": "In", "values": [7] } },
            { "action": "FailJob", "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] } },
        ]);
        let mut job = policy(rules);
        job["spec"]["backoffLimit"] = json!(5);
        scene.create::<Job>(job).await;
        let [pod] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        scene.end(&pod.name_any(), 42).await;
        let message = format!(
            "Container main for pod {}/{} failed with exit code 42 matching FailJob rule at index 1",
            scene.namespace,
            pod.name_any()
        );
        until_failed(scene, "PodFailurePolicy", &message).await;
    });
}

#[test]
fn a_failure_can_be_ignored() {
    play("ignored", async |scene| {
        let rules = json!([
            { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        ]);
        scene.create::<Job>(policy(rules)).await;
        let [pod] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        let now = scene.now().await;
        let disrupted =
            json!({ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": now });
        scene
            .set_status::<Pod>(&pod.name_any(), json!({ "conditions": [disrupted] }))
            .await;
        scene.end(&pod.name_any(), 1).await;
        let name = pod.name_any();
        let counted = |pod: &Pod| pod.finalizers().is_empty();
        scene.until::<Pod>(&name, "counted", counted).await;
        let [next] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        scene.end(&next.name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        assert_eq!(job.status.unwrap().failed, None);
    });
}

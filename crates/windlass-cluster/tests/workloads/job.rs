//! Jobs: pods that run to their end. What becomes of the pods says the test.

mod end;
mod in_virtual_time;
mod indexed;

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{Scene, idle};
use crate::stage::play;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// A Job with this in its spec.
fn work(spec: Value) -> Value {
    let mut template = idle();
    template["restartPolicy"] = json!("Never");
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": "work" },
        "spec": { "template": { "metadata": { "labels": { "app": "work" } }, "spec": template } },
    });
    if let Value::Object(spec) = spec {
        for (key, value) in spec {
            job["spec"][key] = value;
        }
    }
    job
}

/// The conditions that hold, with their reasons.
fn conditions(job: &Job) -> Vec<(String, String)> {
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let held = conditions.filter(|condition| condition.status == "True");
    held.map(|one: &JobCondition| (one.type_.clone(), one.reason.clone().unwrap_or_default()))
        .collect()
}

fn has(job: &Job, type_: &str) -> bool {
    conditions(job).iter().any(|(held, _)| held == type_)
}

/// Waits until so many pods are at work.
async fn until_active(scene: &Scene, count: usize) -> Vec<Pod> {
    let is_active = |pod: &&Pod| {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        !matches!(phase, Some("Succeeded" | "Failed")) && pod.metadata.deletion_timestamp.is_none()
    };
    let what = format!("{count} at work");
    let are = |pods: &[Pod]| pods.iter().filter(is_active).count() == count;
    let pods = scene.until_all::<Pod>(&what, are).await;
    let status = |job: &Job| {
        let status = job.status.clone().unwrap_or_default();
        usize::try_from(status.active.unwrap_or(0)) == Ok(count)
    };
    scene.until::<Job>("work", &what, status).await;
    pods.into_iter().filter(|pod| is_active(&pod)).collect()
}

#[test]
fn a_job_completes_with_its_pod() {
    play("completes", async |scene| {
        let created = scene.create::<Job>(work(json!({}))).await;
        let [pod] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        assert!(pod.name_any().starts_with("work-"));
        assert_eq!(pod.finalizers(), [FINALIZER]);
        assert_eq!(pod.labels()["batch.kubernetes.io/job-name"], "work");
        assert_eq!(
            pod.labels().get("controller-uid"),
            created.metadata.uid.as_ref()
        );
        let status = scene.find::<Job>("work").await.unwrap().status.unwrap();
        assert!(status.start_time.is_some());
        assert_eq!((status.ready, status.terminating), (Some(0), Some(0)));
        assert_eq!(
            status.uncounted_terminated_pods,
            Some(UncountedTerminatedPods::default())
        );
        scene.make_ready(&pod.name_any()).await;
        let ready = |job: &Job| {
            job.status
                .as_ref()
                .is_some_and(|status| status.ready == Some(1))
        };
        scene.until::<Job>("work", "ready", ready).await;

        scene.end(&pod.name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        let reason = "CompletionsReached".to_owned();
        assert_eq!(
            conditions(&job),
            [
                ("SuccessCriteriaMet".to_owned(), reason.clone()),
                ("Complete".to_owned(), reason)
            ]
        );
        let status = job.status.unwrap();
        assert_eq!(
            (status.succeeded, status.active, status.failed),
            (Some(1), None, None)
        );
        assert_eq!((status.ready, status.terminating), (Some(0), Some(0)));
        assert!(status.completion_time.is_some());
        assert_eq!(
            status.uncounted_terminated_pods,
            Some(UncountedTerminatedPods::default())
        );
        let pod = scene.find::<Pod>(&pod.name_any()).await.unwrap();
        assert_eq!(pod.finalizers(), [] as [&str; 0], "counted");
        let name = pod.name_any();
        scene
            .until_told("work", "SuccessfulCreate", &format!("Created pod: {name}"))
            .await;
        scene.until_told("work", "Completed", "Job completed").await;
    });
}

#[test]
fn as_many_run_at_once_as_may() {
    play("at-once", async |scene| {
        let spec = json!({ "completions": 3, "parallelism": 2 });
        scene.create::<Job>(work(spec)).await;
        let pods = until_active(scene, 2).await;
        scene.end(&pods[0].name_any(), 0).await;
        let pods = until_active(scene, 2).await;
        for pod in pods {
            scene.end(&pod.name_any(), 0).await;
        }
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        assert_eq!(job.status.unwrap().succeeded, Some(3));
        assert_eq!(scene.pods().await.len(), 3);
    });
}

#[test]
fn parallelism_can_be_changed_on_the_way() {
    play("parallelism", async |scene| {
        let spec = json!({ "completions": 5, "parallelism": 3 });
        scene.create::<Job>(work(spec)).await;
        until_active(scene, 3).await;
        scene
            .patch::<Job>("work", json!({ "spec": { "parallelism": 1 } }))
            .await;
        until_active(scene, 1).await;
        scene
            .patch::<Job>("work", json!({ "spec": { "parallelism": 2 } }))
            .await;
        until_active(scene, 2).await;
        let job = scene.find::<Job>("work").await.unwrap();
        assert_eq!(
            job.status.unwrap().failed,
            None,
            "pods that were not wanted did not fail"
        );
    });
}

#[test]
fn a_queue_of_unknown_length_is_done_when_one_has_succeeded_and_all_have_ended() {
    play("queue", async |scene| {
        scene
            .create::<Job>(work(json!({ "parallelism": 2, "completions": null })))
            .await;
        let pods = until_active(scene, 2).await;
        scene.end(&pods[0].name_any(), 0).await;
        until_active(scene, 1).await;
        assert_eq!(scene.pods().await.len(), 2, "none is started any more");
        scene.end(&pods[1].name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        assert_eq!(job.status.unwrap().succeeded, Some(2));
    });
}

#[test]
fn a_failed_pod_is_replaced_after_a_while() {
    play("replaced", async |scene| {
        scene.create::<Job>(work(json!({}))).await;
        let [pod] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        scene.end(&pod.name_any(), 1).await;
        let waits = |job: &Job| {
            let status = job.status.clone().unwrap_or_default();
            (status.failed, status.active) == (Some(1), None)
        };
        scene.until::<Job>("work", "waiting", waits).await;
        let [next] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        assert_ne!(next.name_any(), pod.name_any());
        scene.end(&next.name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        let status = job.status.unwrap();
        assert_eq!((status.succeeded, status.failed), (Some(1), Some(1)));
    });
}

#[test]
fn a_deleted_pod_has_failed_and_is_replaced() {
    play("deleted-pod", async |scene| {
        scene.create::<Job>(work(json!({}))).await;
        let [pod] = &until_active(scene, 1).await[..] else {
            panic!("one pod")
        };
        scene
            .delete::<Pod>(&pod.name_any(), &DeleteParams::default())
            .await;
        scene.until_gone::<Pod>(&pod.name_any()).await;
        let failed = |job: &Job| {
            let status = job.status.clone().unwrap_or_default();
            status.failed == Some(1) && status.active == Some(1)
        };
        scene.until::<Job>("work", "replaced", failed).await;
    });
}

#[test]
fn a_job_rests_and_goes_on() {
    play("rests", async |scene| {
        scene
            .create::<Job>(work(json!({ "parallelism": 2, "completions": 2 })))
            .await;
        until_active(scene, 2).await;
        scene
            .patch::<Job>("work", json!({ "spec": { "suspend": true } }))
            .await;
        let job = scene
            .until::<Job>("work", "resting", |job| has(job, "Suspended"))
            .await;
        assert_eq!(
            conditions(&job),
            [("Suspended".to_owned(), "JobSuspended".to_owned())]
        );
        scene.until_all::<Pod>("no pods", <[Pod]>::is_empty).await;
        let job = scene
            .until::<Job>("work", "without pods", |job| {
                job.status
                    .as_ref()
                    .is_some_and(|status| status.terminating == Some(0) && status.active.is_none())
            })
            .await;
        assert_eq!(job.status.as_ref().unwrap().start_time, None);
        assert_eq!(job.status.unwrap().failed, None);
        scene.until_told("work", "Suspended", "Job suspended").await;
        scene
            .patch::<Job>("work", json!({ "spec": { "suspend": false } }))
            .await;
        until_active(scene, 2).await;
        let job = scene.find::<Job>("work").await.unwrap();
        assert_eq!(conditions(&job), []);
        assert!(job.status.unwrap().start_time.is_some());
        scene.until_told("work", "Resumed", "Job resumed").await;
    });
}

#[test]
fn pods_of_a_deleted_job_go_with_it() {
    play("deleted", async |scene| {
        scene
            .create::<Job>(work(json!({ "parallelism": 2, "completions": 2 })))
            .await;
        until_active(scene, 2).await;
        scene
            .delete::<Job>("work", &DeleteParams::background())
            .await;
        scene.until_gone::<Job>("work").await;
        scene.until_all::<Pod>("no pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn pods_left_behind_lose_their_finalizer() {
    play("orphans", async |scene| {
        scene.create::<Job>(work(json!({}))).await;
        until_active(scene, 1).await;
        scene.delete::<Job>("work", &DeleteParams::orphan()).await;
        scene.until_gone::<Job>("work").await;
        let free = |pods: &[Pod]| {
            let is_free =
                |pod: &Pod| pod.finalizers().is_empty() && pod.owner_references().is_empty();
            pods.len() == 1 && pods.iter().all(is_free)
        };
        scene.until_all::<Pod>("free", free).await;
    });
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    play("managed-by", async |scene| {
        scene
            .create::<Job>(work(json!({ "managedBy": "example.com/other" })))
            .await;
        let mut ours = work(json!({}));
        ours["metadata"]["name"] = json!("ours");
        scene.create::<Job>(ours).await;
        let active = |job: &Job| {
            job.status
                .as_ref()
                .is_some_and(|status| status.active == Some(1))
        };
        scene.until::<Job>("ours", "active", active).await;
        let other = scene.find::<Job>("work").await.unwrap();
        assert_eq!(other.status, Some(JobStatus::default()));
        assert_eq!(scene.pods().await.len(), 1);
    });
}

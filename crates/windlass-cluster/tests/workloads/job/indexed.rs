//! Jobs whose pods have indexes.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{conditions, has, until_active, work};
use crate::stage::play;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) fn indexed(completions: i32, parallelism: i32, more: Value) -> Value {
    let mut job = work(more);
    job["spec"]["completions"] = json!(completions);
    job["spec"]["parallelism"] = json!(parallelism);
    job["spec"]["completionMode"] = json!("Indexed");
    job
}

pub(super) fn with_index<'a>(pods: &'a [Pod], index: &str) -> &'a Pod {
    let found = pods.iter().find(|pod| pod.annotations()[INDEX] == index);
    found.expect("a pod of that index")
}

#[test]
fn each_index_is_completed_once() {
    play("indexed", async |scene| {
        scene.create::<Job>(indexed(4, 2, json!({}))).await;
        let pods = until_active(scene, 2).await;
        let first = with_index(&pods, "0");
        assert!(first.name_any().starts_with("work-0-"));
        assert_eq!(first.labels()[INDEX], "0");
        let spec = first.spec.as_ref().unwrap();
        assert_eq!(spec.hostname.as_deref(), Some("work-0"));
        let env = spec.containers[0].env.as_ref().unwrap();
        let source = env[0]
            .value_from
            .as_ref()
            .unwrap()
            .field_ref
            .as_ref()
            .unwrap();
        assert_eq!(env[0].name, "JOB_COMPLETION_INDEX");
        assert_eq!(source.field_path, format!("metadata.labels['{INDEX}']"));

        scene.end(&with_index(&pods, "1").name_any(), 0).await;
        let pods = until_active(scene, 2).await;
        // As many were at work before.
        let is_noted = |job: &Job| {
            let status = job.status.as_ref();
            status.and_then(|status| status.completed_indexes.as_deref()) == Some("1")
        };
        scene.until::<Job>("work", "noted", is_noted).await;
        for index in ["0", "2"] {
            scene.end(&with_index(&pods, index).name_any(), 0).await;
        }
        let pods = until_active(scene, 1).await;
        scene.end(&with_index(&pods, "3").name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        let status = job.status.unwrap();
        assert_eq!(status.completed_indexes.as_deref(), Some("0-3"));
        assert_eq!(status.succeeded, Some(4));
    });
}

#[test]
fn an_index_that_fails_for_good_fails_the_job_in_the_end() {
    play("failed-index", async |scene| {
        scene
            .create::<Job>(indexed(2, 2, json!({ "backoffLimitPerIndex": 0 })))
            .await;
        let pods = until_active(scene, 2).await;
        let failing = with_index(&pods, "1");
        let failures = &failing.annotations()["batch.kubernetes.io/job-index-failure-count"];
        assert_eq!(failures, "0");
        scene.end(&failing.name_any(), 1).await;
        let has_failed = |job: &Job| {
            let status = job.status.clone().unwrap_or_default();
            (status.failed_indexes.as_deref(), status.failed) == (Some("1"), Some(1))
        };
        let job = scene
            .until::<Job>("work", "failed for one index", has_failed)
            .await;
        assert_eq!(conditions(&job), [], "the other goes on");
        scene.end(&with_index(&pods, "0").name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "failed", |job| has(job, "Failed"))
            .await;
        let reason = |type_: &str| (type_.to_owned(), "FailedIndexes".to_owned());
        assert_eq!(
            conditions(&job),
            [reason("FailureTarget"), reason("Failed")]
        );
        assert_eq!(job.status.unwrap().completed_indexes.as_deref(), Some("0"));
        scene
            .until_told("work", "FailedIndexes", "Job has failed indexes")
            .await;
    });
}

#[test]
fn a_failed_index_is_tried_again() {
    play("tried-again", async |scene| {
        scene
            .create::<Job>(indexed(1, 1, json!({ "backoffLimitPerIndex": 1 })))
            .await;
        let pods = until_active(scene, 1).await;
        let first = pods[0].name_any();
        scene.end(&first, 1).await;
        let is_next = |pods: &[Pod]| pods.iter().any(|pod| pod.name_any() != first);
        scene.until_all::<Pod>("another", is_next).await;
        let pods = until_active(scene, 1).await;
        let failures = &pods[0].annotations()["batch.kubernetes.io/job-index-failure-count"];
        assert_eq!(failures, "1");
        scene.end(&pods[0].name_any(), 0).await;
        scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
    });
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    play("too-many", async |scene| {
        let more = json!({ "backoffLimitPerIndex": 0, "maxFailedIndexes": 0 });
        scene.create::<Job>(indexed(3, 2, more)).await;
        let pods = until_active(scene, 2).await;
        scene.end(&with_index(&pods, "0").name_any(), 1).await;
        let job = scene
            .until::<Job>("work", "failed", |job| has(job, "Failed"))
            .await;
        let reason = |type_: &str| (type_.to_owned(), "MaxFailedIndexesExceeded".to_owned());
        assert_eq!(
            conditions(&job),
            [reason("FailureTarget"), reason("Failed")]
        );
        assert_eq!(job.status.unwrap().failed_indexes.as_deref(), Some("0"));
    });
}

#[test]
fn some_indexes_may_be_enough() {
    play("enough", async |scene| {
        let more = json!({ "successPolicy": { "rules": [{ "succeededIndexes": "0" }] } });
        scene.create::<Job>(indexed(3, 3, more)).await;
        let pods = until_active(scene, 3).await;
        scene.end(&with_index(&pods, "0").name_any(), 0).await;
        let job = scene
            .until::<Job>("work", "complete", |job| has(job, "Complete"))
            .await;
        let reason = |type_: &str| (type_.to_owned(), "SuccessPolicy".to_owned());
        assert_eq!(
            conditions(&job),
            [reason("SuccessCriteriaMet"), reason("Complete")]
        );
        let status = job.status.unwrap();
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
        assert_eq!(status.completed_indexes.as_deref(), Some("0"));
        scene
            .until_all::<Pod>("only the one that succeeded", |pods| pods.len() == 1)
            .await;
    });
}

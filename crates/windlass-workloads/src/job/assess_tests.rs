use serde_json::{Value, json};

use super::*;
use crate::pod::testing::{at, in_phase, pod as named, ready};

fn job(spec: Value, status: Value) -> Job {
    let mut object =
        json!({"metadata": {"name": "work"}, "spec": {"template": {}}, "status": status});
    if let Value::Object(spec) = spec {
        for (key, value) in spec {
            object["spec"][key] = value;
        }
    }
    serde_json::from_value(object).unwrap()
}

fn pod(name: &str, phase: &str) -> Pod {
    let mut pod = in_phase(named(name), phase);
    pod.metadata.finalizers = Some(vec![pods::FINALIZER.to_owned()]);
    pod
}

fn indexed(name: &str, phase: &str, index: i32) -> Pod {
    let mut pod = pod(name, phase);
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "batch.kubernetes.io/job-completion-index".to_owned(),
        index.to_string(),
    );
    pod
}

fn failing_before(mut pod: Pod, times: i32) -> Pod {
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "batch.kubernetes.io/job-index-failure-count".to_owned(),
        times.to_string(),
    );
    pod
}

fn state<'a>(job: &'a Job, pods: &'a [Pod]) -> State<'a> {
    State::of(job, pods, Some(at(0)), Backoff::default(), at(1000))
}

fn end(job: &Job, pods: &[Pod]) -> Option<(String, String)> {
    let end = state(job, pods).end?;
    Some((end.type_, end.reason.unwrap()))
}

#[allow(clippy::unnecessary_wraps, reason = "compared with an end")]
fn failing(reason: &str) -> Option<(String, String)> {
    Some((FAILURE_TARGET.to_owned(), reason.to_owned()))
}

#[test]
fn as_many_pods_as_are_missing_and_no_more_than_may_run_at_once() {
    let five = job(json!({"completions": 5, "parallelism": 3}), json!({}));
    assert_eq!(state(&five, &[]).next(at(1000)).create.len(), 3);
    let pods = [pod("a", "Running")];
    assert_eq!(state(&five, &pods).next(at(1000)).create.len(), 2);
    let nearly = job(
        json!({"completions": 5, "parallelism": 3}),
        json!({"succeeded": 4}),
    );
    assert_eq!(state(&nearly, &[]).next(at(1000)).create.len(), 1);
    let queue = job(json!({"parallelism": 3}), json!({}));
    assert_eq!(state(&queue, &[]).next(at(1000)).create.len(), 3);
    let pods = [pod("a", "Running"), pod("b", "Succeeded")];
    assert_eq!(state(&queue, &pods).next(at(1000)), Step::default());
}

#[test]
fn too_many_go_and_a_resting_job_has_none() {
    let spec = json!({"completions": 5, "parallelism": 1});
    let pods = [ready(pod("a", "Running"), 0), pod("b", "Pending")];
    let fewer = job(spec, json!({}));
    let state_of = state(&fewer, &pods);
    let delete = state_of.next(at(1000)).delete;
    assert_eq!(delete, [&pods[1]]);
    let resting = job(json!({"suspend": true, "completions": 5}), json!({}));
    assert_eq!(state(&resting, &pods).next(at(1000)).delete.len(), 2);
}

#[test]
fn failures_are_waited_for_and_limited() {
    let spec = json!({"completions": 1, "backoffLimit": 1});
    let limited = job(spec.clone(), json!({}));
    let pods = [pod("a", "Failed")];
    let one = State::of(&limited, &pods, Some(at(0)), Backoff::default(), at(5));
    assert_eq!(one.end, None);
    assert_eq!(one.next(at(5)).wait, Some(at(10)));
    assert_eq!(one.next(at(10)).create, [None]);
    let pods = [pod("a", "Failed"), pod("b", "Failed")];
    assert_eq!(end(&limited, &pods), failing("BackoffLimitExceeded"));
    // One counted, one noted and one new are three, each once.
    let counted = json!({"failed": 1, "uncountedTerminatedPods": {"failed": ["uid-a"]}});
    let limited = job(json!({"completions": 1, "backoffLimit": 2}), counted);
    assert_eq!(end(&limited, &pods[..1]), None);
    assert_eq!(end(&limited, &pods), failing("BackoffLimitExceeded"));
}

#[test]
fn restarts_in_place_count_too() {
    let limited = job(
        json!({"backoffLimit": 2, "template": {"spec": {"restartPolicy": "OnFailure", "containers": []}}}),
        json!({}),
    );
    let restarted = |times: i32| {
        let mut pod = pod("a", "Running");
        pod.status.as_mut().unwrap().container_statuses = serde_json::from_value(json!([{
            "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": times,
        }]))
        .unwrap();
        [pod]
    };
    assert_eq!(end(&limited, &restarted(1)), None);
    assert_eq!(
        end(&limited, &restarted(2)),
        failing("BackoffLimitExceeded")
    );
}

#[test]
fn a_deadline_is_known_and_kept() {
    let short = job(json!({"activeDeadlineSeconds": 10}), json!({}));
    let nobody: [Pod; 0] = [];
    let before = State::of(&short, &nobody, Some(at(0)), Backoff::default(), at(9));
    assert_eq!((before.end, before.deadline), (None, Some(at(10))));
    let after = State::of(&short, &nobody, Some(at(0)), Backoff::default(), at(10));
    assert_eq!(
        after.end.unwrap().reason.as_deref(),
        Some("DeadlineExceeded")
    );
    let resting = job(
        json!({"activeDeadlineSeconds": 10, "suspend": true}),
        json!({}),
    );
    assert_eq!(
        State::of(&resting, &nobody, Some(at(0)), Backoff::default(), at(99)).end,
        None
    );
}

#[test]
fn indexes_are_filled_in_order_and_doubles_go() {
    let three = job(
        json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"}),
        json!({"completedIndexes": "0", "succeeded": 1}),
    );
    let pods = [indexed("a", "Running", 2)];
    assert_eq!(state(&three, &pods).next(at(1000)).create, [Some(1)]);
    let pods = [
        indexed("a", "Succeeded", 1),
        indexed("b", "Running", 2),
        indexed("c", "Running", 2),
    ];
    let state_of = state(&three, &pods);
    assert_eq!(state_of.succeeded, 2);
    assert_eq!(state_of.succeeded_indexes.to_string(), "0,1");
    assert_eq!(state_of.next(at(1000)).delete.len(), 1);
    let pods = [indexed("a", "Running", 9)];
    assert_eq!(state(&three, &pods).next(at(1000)).delete, [&pods[0]]);
}

#[test]
fn each_index_has_its_own_limit() {
    let spec = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
    });
    let each = job(spec.clone(), json!({}));
    let pods = [indexed("a", "Failed", 0), indexed("b", "Running", 1)];
    let state_of = State::of(&each, &pods, Some(at(0)), Backoff::default(), at(5));
    assert_eq!(state_of.failed_indexes.as_ref().unwrap().to_string(), "");
    assert_eq!(state_of.replaced[&0], &pods[0]);
    let step = state_of.next(at(5));
    assert_eq!((step.create, step.wait), (vec![Some(2)], Some(at(10))));
    let pods = [
        failing_before(indexed("a", "Failed", 0), 1),
        indexed("b", "Running", 1),
    ];
    let state_of = state(&each, &pods);
    assert_eq!(state_of.failed_indexes.as_ref().unwrap().to_string(), "0");
    assert_eq!(state_of.next(at(1000)).create, [Some(2)]);
    let done = job(spec, json!({"completedIndexes": "1,2"}));
    assert_eq!(end(&done, &pods[..1]), failing("FailedIndexes"));
}

#[test]
fn a_pod_failure_policy_replaces_only_what_has_ended() {
    let policy = json!({"completions": 2, "parallelism": 2, "podFailurePolicy": {"rules": [
        {"action": "FailJob", "onPodConditions": [{"type": "Bad"}]},
    ]}});
    let job = job(policy, json!({}));
    let mut leaving = pod("a", "Running");
    leaving.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(5)));
    let pods = [leaving, pod("b", "Running")];
    assert_eq!(state(&job, &pods).next(at(1000)), Step::default());
    let mut bad = pod("c", "Failed");
    bad.status.as_mut().unwrap().conditions =
        serde_json::from_value(json!([{"type": "Bad", "status": "True"}])).unwrap();
    assert_eq!(end(&job, &[bad]), failing("PodFailurePolicy"));
}

//! Schedules over minutes, days and a year, in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use windlass_cluster::TestCluster;

use super::cron;

const MINUTE: Duration = Duration::from_mins(1);

/// A `CronJob` whose pods the simulated node runs until the test stops them.
async fn start(cluster: &TestCluster, schedule: &str, more: Value) {
    let mut tick = cron(schedule, more);
    let template = &mut tick["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    template["nodeName"] = Value::Null;
    let tick: CronJob = serde_json::from_value(tick).expect("a cron job");
    cluster.create(tick).await;
    cluster.settle().await;
}

async fn jobs(cluster: &TestCluster) -> BTreeMap<String, Timestamp> {
    let run = |job: &Job| {
        let run = &job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        run.parse().expect("a time")
    };
    let jobs = cluster.list::<Job>().await;
    jobs.iter().map(|job| (job.name_any(), run(job))).collect()
}

/// Lets all pods end well.
async fn finish(cluster: &TestCluster) {
    for pod in cluster.list::<Pod>().await {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if phase == Some("Running") {
            cluster
                .node()
                .stop("default", &pod.name_any())
                .expect("a running pod");
        }
    }
    cluster.settle().await;
}

async fn reasons(cluster: &TestCluster) -> Vec<String> {
    let events = cluster.list::<Event>().await.into_iter();
    let events = events.filter(|event| event.involved_object.kind.as_deref() == Some("CronJob"));
    events.filter_map(|event| event.reason).collect()
}

#[windlass_cluster::test]
async fn three_hours_in_a_time_zone(cluster: TestCluster) {
    let more = json!({ "timeZone": "Asia/Kolkata", "successfulJobsHistoryLimit": 2 });
    start(&cluster, "15 * * * *", more).await;
    let zone = TimeZone::get("Asia/Kolkata").expect("a time zone");
    let mut runs = BTreeMap::new();
    for _ in 0..3 {
        cluster.advance(Duration::from_hours(1)).await;
        finish(&cluster).await;
        let now = jobs(&cluster).await;
        assert!(now.len() <= 2, "{now:?}");
        runs.extend(now);
    }
    assert_eq!(runs.len(), 3);
    for run in runs.values() {
        // India is half an hour off.
        assert_eq!(run.to_zoned(zone.clone()).minute(), 15);
        assert_eq!(run.to_zoned(TimeZone::UTC).minute(), 45);
    }
}

#[windlass_cluster::test]
async fn runs_may_overlap_unless_told_otherwise(cluster: TestCluster) {
    start(&cluster, "* * * * *", json!({})).await;
    cluster.advance(3 * MINUTE + MINUTE / 2).await;
    assert_eq!(jobs(&cluster).await.len(), 3);
    let status = cluster.get::<CronJob>("tick").await.status.unwrap();
    assert_eq!(status.active.unwrap().len(), 3);
}

#[windlass_cluster::test]
async fn forbidden_runs_wait_for_the_one_before(cluster: TestCluster) {
    start(
        &cluster,
        "* * * * *",
        json!({ "concurrencyPolicy": "Forbid" }),
    )
    .await;
    cluster.advance(5 * MINUTE + MINUTE / 2).await;
    assert_eq!(jobs(&cluster).await.len(), 1);
    assert!(
        reasons(&cluster)
            .await
            .contains(&"JobAlreadyActive".to_owned())
    );
    finish(&cluster).await;
    cluster.advance(MINUTE).await;
    assert_eq!(jobs(&cluster).await.len(), 2, "the next one has its turn");
}

#[windlass_cluster::test]
async fn a_run_replaces_the_one_before(cluster: TestCluster) {
    start(
        &cluster,
        "* * * * *",
        json!({ "concurrencyPolicy": "Replace" }),
    )
    .await;
    cluster.advance(MINUTE + MINUTE / 2).await;
    let first = jobs(&cluster).await;
    cluster.advance(MINUTE).await;
    let second = jobs(&cluster).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
    assert_eq!(cluster.list::<Pod>().await.len(), 1);
}

#[windlass_cluster::test]
async fn of_missed_runs_only_the_last_is_made_up_for(cluster: TestCluster) {
    start(&cluster, "*/10 * * * *", json!({ "suspend": true })).await;
    cluster.advance(Duration::from_mins(65)).await;
    assert!(jobs(&cluster).await.is_empty());
    cluster
        .patch::<CronJob>("tick", json!({ "spec": { "suspend": false } }))
        .await;
    cluster.settle().await;
    let runs: Vec<String> = jobs(&cluster)
        .await
        .into_values()
        .map(|run| run.to_string())
        .collect();
    assert_eq!(runs, ["2030-01-01T01:00:00Z"]);
}

#[windlass_cluster::test]
async fn a_run_that_is_too_late_is_left_out(cluster: TestCluster) {
    let more = json!({ "suspend": true, "startingDeadlineSeconds": 60 });
    start(&cluster, "*/10 * * * *", more).await;
    cluster.advance(Duration::from_mins(65)).await;
    cluster
        .patch::<CronJob>("tick", json!({ "spec": { "suspend": false } }))
        .await;
    cluster.settle().await;
    assert!(jobs(&cluster).await.is_empty());
    cluster.advance(Duration::from_mins(6)).await;
    let runs: Vec<String> = jobs(&cluster)
        .await
        .into_values()
        .map(|run| run.to_string())
        .collect();
    assert_eq!(runs, ["2030-01-01T01:10:00Z"]);
}

#[windlass_cluster::test]
async fn a_new_schedule_begins_with_its_next_run(cluster: TestCluster) {
    start(&cluster, "0 0 1 1 *", json!({})).await;
    cluster.advance(Duration::from_secs(90)).await;
    cluster
        .patch::<CronJob>("tick", json!({ "spec": { "schedule": "* * * * *" } }))
        .await;
    cluster.settle().await;
    assert!(jobs(&cluster).await.is_empty());
    cluster.advance(MINUTE).await;
    assert_eq!(jobs(&cluster).await.len(), 1);
}

#[windlass_cluster::test]
async fn failed_and_successful_runs_are_kept_apart(cluster: TestCluster) {
    let more = json!({ "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1 });
    let mut tick = cron("* * * * *", more);
    let job = &mut tick["spec"]["jobTemplate"]["spec"];
    job["backoffLimit"] = json!(0);
    job["template"]["spec"]["nodeName"] = Value::Null;
    let tick: CronJob = serde_json::from_value(tick).expect("a cron job");
    cluster.create(tick).await;
    for run in 0..4 {
        cluster.advance(MINUTE).await;
        for pod in cluster.list::<Pod>().await {
            if pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref())
                == Some("Running")
            {
                let node = cluster.node();
                let crashed = node.crash("default", &pod.name_any(), "main", run % 2);
                crashed.expect("a running pod");
            }
        }
        cluster.settle().await;
    }
    let ends = |type_: &str| {
        let type_ = type_.to_owned();
        move |job: &&Job| {
            let conditions = job
                .status
                .iter()
                .flat_map(|status| status.conditions.iter().flatten());
            conditions
                .into_iter()
                .any(|one| one.type_ == type_ && one.status == "True")
        }
    };
    let kept = cluster.list::<Job>().await;
    assert_eq!(kept.iter().filter(ends("Complete")).count(), 1);
    assert_eq!(kept.iter().filter(ends("Failed")).count(), 1);
}

const DAY: Duration = Duration::from_hours(24);

/// The days on which a schedule ran, as the year goes by; `week` is what happens each week.
async fn year<F>(cluster: &TestCluster, week: impl Fn() -> F) -> BTreeMap<String, Timestamp>
where
    F: Future<Output = ()>,
{
    let mut runs = BTreeMap::new();
    // From Tuesday, 1 January 2030, to the same day of the next year.
    for passed in (0..365).step_by(7) {
        cluster.leap(DAY * 7.min(365 - passed)).await;
        runs.extend(jobs(cluster).await);
        week().await;
    }
    runs
}

#[windlass_cluster::test]
async fn a_year_of_mondays(cluster: TestCluster) {
    let more = json!({ "timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 3 });
    start(&cluster, "30 4 * * 1", more).await;
    let runs = year(&cluster, || finish(&cluster)).await;
    assert_eq!(runs.len(), 52, "{runs:?}");
    let zone = TimeZone::get("Europe/Berlin").expect("a time zone");
    for run in runs.values() {
        // At the same time of the day in summer and winter.
        let run = run.to_zoned(zone.clone());
        assert_eq!((run.hour(), run.minute()), (4, 30));
        assert_eq!(run.weekday(), jiff::civil::Weekday::Monday);
    }
    assert_eq!(jobs(&cluster).await.len(), 3, "the others are forgotten");
}

#[windlass_cluster::test]
async fn a_year_in_which_the_first_run_does_not_end(cluster: TestCluster) {
    let more = json!({ "concurrencyPolicy": "Forbid" });
    start(&cluster, "0 0 * * 1", more).await;
    let runs = year(&cluster, || async {}).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
}

#[windlass_cluster::test]
async fn a_year_in_which_each_run_replaces_the_one_before(cluster: TestCluster) {
    let more = json!({ "concurrencyPolicy": "Replace" });
    start(&cluster, "0 0 * * 1", more).await;
    let runs = year(&cluster, || async {}).await;
    assert_eq!(runs.len(), 52, "{runs:?}");
    assert_eq!(jobs(&cluster).await.len(), 1);
    assert_eq!(cluster.list::<Pod>().await.len(), 1);
}

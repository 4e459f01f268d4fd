//! `CronJobs`: Jobs by the clock.

mod in_virtual_time;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::scene::idle;
use crate::stage::play;

fn cron(schedule: &str, more: Value) -> Value {
    let mut template = idle();
    template["restartPolicy"] = json!("Never");
    let mut cron = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": { "name": "tick" },
        "spec": {
            "schedule": schedule,
            "jobTemplate": {
                "metadata": { "labels": { "app": "tick" }, "annotations": { "team": "blue" } },
                "spec": { "template": { "spec": template } },
            },
        },
    });
    if let Value::Object(more) = more {
        for (key, value) in more {
            cron["spec"][key] = value;
        }
    }
    cron
}

#[test]
fn a_job_is_started_when_it_is_time_and_its_end_is_noted() {
    play("in-time", async |scene| {
        let created = scene.create::<CronJob>(cron("@every 2s", json!({}))).await;
        let started = |cron: &CronJob| {
            let status = cron.status.clone().unwrap_or_default();
            status.active.is_some_and(|active| !active.is_empty())
                && status.last_schedule_time.is_some()
        };
        let tick = scene.until::<CronJob>("tick", "started", started).await;
        let active = tick.status.unwrap().active.unwrap();
        let name = active[0].name.clone().unwrap();
        assert_eq!(active[0].kind.as_deref(), Some("Job"));
        assert_eq!(active[0].api_version.as_deref(), Some("batch/v1"));
        let job = scene.find::<Job>(&name).await.unwrap();
        let run = &job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        let run: jiff::Timestamp = run.parse().expect("a time");
        assert_eq!(name, format!("tick-{}", run.as_second() / 60));
        assert_eq!(job.annotations()["team"], "blue");
        assert_eq!(job.labels()["app"], "tick");
        let [owner] = job.owner_references() else {
            panic!("one owner")
        };
        assert_eq!(Some(&owner.uid), created.metadata.uid.as_ref());
        scene
            .until_told("tick", "SuccessfulCreate", &format!("Created job {name}"))
            .await;

        let suspend = json!({ "spec": { "suspend": true } });
        scene.patch::<CronJob>("tick", suspend).await;
        let is_its = |pod: &&Pod| {
            pod.owner_references()
                .iter()
                .any(|owner| owner.name == name)
        };
        let pods = scene
            .until_all::<Pod>("a pod", |pods| pods.iter().any(|pod| is_its(&pod)))
            .await;
        let pod = pods.iter().find(is_its).unwrap();
        scene.end(&pod.name_any(), 0).await;
        let told = format!("Saw completed job: {name}, condition: Complete");
        scene.until_told("tick", "SawCompletedJob", &told).await;
        let noted = |cron: &CronJob| {
            let status = cron.status.clone().unwrap_or_default();
            let is_active = status
                .active
                .unwrap_or_default()
                .iter()
                .any(|one| one.name.as_ref() == Some(&name));
            !is_active && status.last_successful_time.is_some()
        };
        scene.until::<CronJob>("tick", "noted", noted).await;
    });
}

#[test]
fn a_resting_cron_job_starts_nothing() {
    play("resting", async |scene| {
        scene
            .create::<CronJob>(cron("@every 1s", json!({ "suspend": true })))
            .await;
        let mut other = cron("@every 2s", json!({}));
        other["metadata"]["name"] = json!("other");
        scene.create::<CronJob>(other).await;
        let ran = |cron: &CronJob| {
            cron.status
                .as_ref()
                .is_some_and(|status| status.last_schedule_time.is_some())
        };
        scene.until::<CronJob>("other", "started", ran).await;
        let jobs = scene.list::<Job>().await;
        assert!(
            jobs.iter().all(|job| job.name_any().starts_with("other-")),
            "{jobs:?}"
        );
    });
}

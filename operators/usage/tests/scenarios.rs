//! What the operator promises: numbers of a load that is known, over virtual hours.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use usage_operator::{Report, operator};
use windlass_cluster::{Failure, TestCluster, hours, minutes};

fn report(spec: &Value) -> Report {
    let metadata = json!({ "name": "usage" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn pod(name: &str, app: &str, cpu: &str, memory: &str) -> Pod {
    let requests = json!({ "cpu": cpu, "memory": memory });
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": { "containers": [{
            "name": "main", "image": "main:1", "resources": { "requests": requests },
        }], "terminationGracePeriodSeconds": 0 },
    }))
    .unwrap()
}

/// The rows of the only result, or of the one that began at a time.
async fn rows(cluster: &TestCluster, at: usize) -> Vec<Value> {
    let results = cluster.get::<Report>("usage").await.status.unwrap().results;
    let map = cluster.get::<ConfigMap>(results[at].as_str()).await;
    let text = map.data.unwrap()["report.json"].clone();
    let result: Value = serde_json::from_str(&text).unwrap();
    result["rows"].as_array().unwrap().clone()
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_str().unwrap().parse().unwrap()
}

/// Virtual time is exact to the second that pods' times have.
#[track_caller]
fn assert_about(value: f64, expected: f64, slack: f64) {
    assert!(
        (value - expected).abs() <= slack,
        "{value} is not {expected} ± {slack}"
    );
}

#[windlass_cluster::test]
async fn report_of_a_known_load_is_right(cluster: TestCluster) {
    cluster.start(operator()).await;
    let spec =
        json!({ "groupBy": "Label", "label": "app", "reportingEnd": "2030-01-01T10:00:00Z" });
    cluster.create(report(&spec)).await;
    cluster.settle().await;
    cluster.create(pod("whole", "a", "500m", "1Gi")).await;
    cluster.leap(hours(2)).await;
    cluster.create(pod("part", "b", "2", "100M")).await;
    cluster.leap(hours(3)).await;
    cluster.delete::<Pod>("part").await;
    cluster.leap(hours(6)).await;
    let rows = rows(&cluster, 0).await;
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["row"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b"]);
    let hour = 3600.0;
    // A second more or less for when a pod was scheduled, and a few for how it ends.
    assert_about(
        number(&rows[0], "cpu_request_core_seconds"),
        0.5 * 10.0 * hour,
        5.0,
    );
    assert_about(
        number(&rows[1], "cpu_request_core_seconds"),
        2.0 * 3.0 * hour,
        10.0,
    );
    let gibibyte = 1024.0 * 1024.0 * 1024.0;
    assert_about(
        number(&rows[0], "memory_request_byte_seconds"),
        gibibyte * 10.0 * hour,
        gibibyte * 10.0,
    );
    assert_about(
        number(&rows[1], "memory_request_byte_seconds"),
        1e8 * 3.0 * hour,
        1e8 * 5.0,
    );
    let status = cluster.get::<Report>("usage").await.status.unwrap();
    assert_eq!((status.source.as_str(), status.end), ("requests", None));
}

#[windlass_cluster::test]
async fn restarts_of_the_operator_change_no_number(cluster: TestCluster) {
    let spec = json!({ "reportingEnd": "2030-01-01T06:00:00Z" });
    cluster.start(operator()).await;
    cluster.create(report(&spec)).await;
    cluster.create(pod("one", "a", "1", "1")).await;
    cluster.settle().await;
    for _ in 0..5 {
        cluster.leap(hours(1)).await;
        cluster.restart_operators().await;
    }
    cluster.leap(hours(2)).await;
    let rows = rows(&cluster, 0).await;
    assert_about(
        number(&rows[0], "cpu_request_core_seconds"),
        6.0 * 3600.0,
        5.0,
    );
    assert_about(number(&rows[0], "estimated_seconds"), 0.0, 0.0);
}

#[windlass_cluster::test]
async fn schedule_makes_a_result_each_hour_and_keeps_some(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster
        .create(report(
            &json!({ "schedule": "Hourly", "keep": 2, "groupBy": "Pod" }),
        ))
        .await;
    cluster.create(pod("one", "a", "1", "1")).await;
    cluster.settle().await;
    cluster.leap(hours(4) + minutes(30)).await;
    let status = cluster.get::<Report>("usage").await.status.unwrap();
    assert_eq!(
        status.results,
        ["usage-20300101t030000z", "usage-20300101t020000z"]
    );
    for at in 0..2 {
        let rows = rows(&cluster, at).await;
        assert_eq!(rows[0]["row"], "default/one");
        assert_eq!(
            rows[0]["cpu_request_core_seconds"], "3600",
            "exactly an hour"
        );
    }
    assert!(
        cluster
            .find::<ConfigMap>("usage-20300101t010000z")
            .await
            .is_none()
    );
}

#[windlass_cluster::test]
async fn csv_has_the_same_numbers(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster
        .create(report(&json!({ "schedule": "Hourly" })))
        .await;
    cluster.create(pod("one", "a", "250m", "1")).await;
    cluster.settle().await;
    cluster.leap(hours(2)).await;
    let map = cluster.get::<ConfigMap>("usage-20300101t010000z").await;
    let csv = map.data.unwrap()["report.csv"].clone();
    let expected = "period_start,period_end,row,cpu_request_core_seconds,\
        memory_request_byte_seconds,volume_request_byte_seconds,estimated_seconds\n\
        2030-01-01T01:00:00Z,2030-01-01T02:00:00Z,default,900,3600,0,0\n";
    assert_eq!(csv, expected);
}

#[windlass_cluster::test]
async fn bound_claim_counts_its_size(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster
        .create(report(&json!({ "schedule": "Hourly" })))
        .await;
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1000" } } },
    }))
    .unwrap();
    cluster.create(claim).await;
    let mut user = pod("user", "a", "0", "0");
    let volume = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    user.spec.as_mut().unwrap().volumes = serde_json::from_value(volume).unwrap();
    cluster.create(user).await;
    cluster.settle().await;
    cluster.leap(hours(2)).await;
    let rows = rows(&cluster, 0).await;
    assert_eq!(rows[0]["volume_request_byte_seconds"], "3600000");
}

#[windlass_cluster::test]
async fn settled_operator_sends_nothing(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster
        .create(report(&json!({ "schedule": "Monthly" })))
        .await;
    cluster.create(pod("one", "a", "1", "1")).await;
    cluster.settle().await;
    let before = cluster.requests_of("usage-operator").len();
    cluster.leap(hours(24)).await;
    let later = cluster.requests_of("usage-operator").split_off(before);
    assert!(
        !later.iter().any(|request| request.verb.writes()),
        "{later:#?}"
    );
}

#[windlass_cluster::test]
async fn report_made_again_under_its_name_counts_from_its_own_beginning(cluster: TestCluster) {
    cluster.start(operator()).await;
    let hourly = || report(&json!({ "schedule": "Hourly" }));
    cluster.create(hourly()).await;
    cluster.create(pod("one", "a", "1", "1")).await;
    cluster.settle().await;
    cluster.leap(hours(2)).await;
    let old = cluster.get::<ConfigMap>("usage-account").await;
    assert_eq!(
        cluster
            .get::<Report>("usage")
            .await
            .status
            .unwrap()
            .results
            .len(),
        2
    );
    cluster.delete::<Report>("usage").await;
    cluster.settle().await;
    // As if the garbage collector had not come to the account yet.
    let mut old = ConfigMap {
        data: old.data,
        ..ConfigMap::default()
    };
    old.metadata.name = Some("usage-account".to_owned());
    cluster.create(old).await;
    cluster.create(hourly()).await;
    cluster.settle().await;
    let status = cluster.get::<Report>("usage").await.status.unwrap();
    assert_eq!(status.results, Vec::<String>::new());
}

/// `metrics.k8s.io` as a kind of its own: what it says is what the test writes.
async fn serve_metrics(cluster: &TestCluster) {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "metadata": {
            "name": "pods.metrics.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        "spec": {
            "group": "metrics.k8s.io", "scope": "Namespaced",
            "names": { "kind": "PodMetrics", "plural": "pods", "singular": "podmetrics" },
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    cluster.create(definition).await;
    cluster.settle().await;
}

/// Says what a pod uses from now on.
async fn use_of(cluster: &TestCluster, name: &str, cpu: &str, memory: &str) {
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let resource = ApiResource::from_gvk_with_plural(&kind, "pods");
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let usage = json!({ "cpu": cpu, "memory": memory });
    let object = json!({
        "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
        "metadata": { "name": name },
        "containers": [{ "name": "main", "usage": usage }],
    });
    let params = PatchParams::apply("test").force();
    api.patch(name, &params, &Patch::Apply(&object))
        .await
        .unwrap();
}

#[windlass_cluster::test]
async fn use_is_reported_beside_requests_where_it_is_measured(cluster: TestCluster) {
    serve_metrics(&cluster).await;
    cluster.start(operator()).await;
    use_of(&cluster, "one", "250m", "1000").await;
    cluster.create(pod("one", "a", "1", "4000")).await;
    cluster.settle().await;
    let spec = json!({ "reportingEnd": "2030-01-01T04:00:00Z" });
    cluster.create(report(&spec)).await;
    cluster.settle().await;
    cluster.leap(hours(2)).await;
    use_of(&cluster, "one", "750m", "3000").await;
    cluster.leap(hours(3)).await;
    let rows = rows(&cluster, 0).await;
    let hour = 3600.0;
    // Two hours of each; the change is noticed within a minute.
    let cpu = number(&rows[0], "cpu_use_core_seconds");
    assert_about(cpu, 2.0 * hour * (0.25 + 0.75), 60.0);
    let memory = number(&rows[0], "memory_use_byte_seconds");
    assert_about(memory, 2.0 * hour * (1000.0 + 3000.0), 60.0 * 4000.0);
    let requested = number(&rows[0], "cpu_request_core_seconds");
    assert_about(requested, 4.0 * hour, 5.0);
    let status = cluster.get::<Report>("usage").await.status.unwrap();
    assert_eq!(status.source, "requests and use");
}

#[windlass_cluster::test]
async fn use_that_is_no_longer_measured_does_not_stop_the_report(cluster: TestCluster) {
    serve_metrics(&cluster).await;
    cluster.start(operator()).await;
    use_of(&cluster, "one", "250m", "1000").await;
    cluster.create(pod("one", "a", "1", "4000")).await;
    let spec = json!({ "reportingEnd": "2030-01-01T04:00:00Z" });
    cluster.create(report(&spec)).await;
    cluster.leap(hours(1)).await;
    cluster
        .delete::<CustomResourceDefinition>("pods.metrics.k8s.io")
        .await;
    let before = cluster.requests_of("usage-operator").len();
    cluster.leap(hours(4)).await;
    let later = cluster.requests_of("usage-operator").split_off(before);
    // Looked for every five minutes, and no more often.
    let looked = later
        .iter()
        .filter(|one| one.resource == "pods.metrics.k8s.io");
    assert!(looked.count() <= 3 * 12 + 1, "{later:#?}");
    let rows = rows(&cluster, 0).await;
    assert_about(
        number(&rows[0], "cpu_request_core_seconds"),
        4.0 * 3600.0,
        5.0,
    );
}

async fn scenario(cluster: TestCluster) {
    cluster
        .create(report(&json!({ "schedule": "Hourly", "keep": 1 })))
        .await;
    cluster.create(pod("one", "a", "1", "1")).await;
    cluster.settle().await;
    cluster.leap(hours(3)).await;
    let rows = rows(&cluster, 0).await;
    assert_eq!(rows[0]["cpu_request_core_seconds"], "3600");
    let status = cluster.get::<Report>("usage").await.status.unwrap();
    assert_eq!(status.results.len(), 1);
    assert!(
        cluster
            .find::<ConfigMap>("usage-20300101t010000z")
            .await
            .is_none()
    );
}

#[windlass_cluster::test]
async fn killed_after_every_write_the_numbers_are_the_same(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.do_not_compare(&["account.json"]);
    assert!(cluster.crash_after_every_write(scenario).await > 3);
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    cluster.start(operator()).await;
    let exceptions = [
        (
            "list configmaps",
            "a live read may get or list; this operator gets",
        ),
        (
            "patch reports.usage.example.com",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
        (
            "patch events.events.k8s.io",
            "counts an event that happens again within minutes",
        ),
        (
            "update reports/finalizers.usage.example.com",
            "asked for by an admission plugin that real clusters may have",
        ),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            scenario(cluster.clone()).await;
            // An API server that cannot stream lists is asked for pages.
            for resource in [
                "pods",
                "persistentvolumeclaims",
                "reports.usage.example.com",
            ] {
                cluster.fail(
                    Failure::with(400)
                        .by("usage-operator")
                        .on(resource)
                        .times(1),
                );
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 10, "{shown}");
}

#[test]
fn manifests_are_current() {
    windlass_cluster::manifests_are_current(&operator(), env!("CARGO_MANIFEST_DIR"));
}

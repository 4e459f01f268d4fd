//! Killed after each write, and without each right.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kubewatch_operator::{Watch, operator_with};
use serde_json::{Value, json};
use windlass_cluster::{Failure, TestCluster};

use crate::receiver::{Answer, Receiver};

fn watch(resource: &Value) -> Watch {
    let handler = json!({ "webhook": { "url": "http://receiver/" } });
    let spec = json!({ "handler": handler, "resource": resource });
    serde_json::from_value(json!({ "metadata": { "name": "all" }, "spec": spec })).unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

async fn start(cluster: &TestCluster) {
    cluster.do_not_compare(&["progress.json.z"]);
    cluster
        .start_made(|cluster| {
            let receiver = Receiver::new();
            cluster.keep(Arc::clone(&receiver));
            operator_with(receiver)
        })
        .await;
}

#[windlass_cluster::test]
async fn killed_after_every_write_it_sends_everything(cluster: TestCluster) {
    start(&cluster).await;
    let scenario = async |cluster: TestCluster| {
        cluster.create(watch(&json!({ "configmap": true }))).await;
        cluster.settle().await;
        for name in ["a", "b"] {
            cluster.create(map(name)).await;
            cluster.settle().await;
            cluster.delete::<ConfigMap>(name).await;
            cluster.settle().await;
        }
        let lines = cluster.kept::<Receiver>().lines();
        for name in ["a", "b"] {
            for reason in ["Created", "Deleted"] {
                let line = format!("ConfigMap {name} {reason}");
                assert!(lines.contains(&line), "{line} is not in {lines:?}");
            }
        }
    };
    assert!(cluster.crash_after_every_write(scenario).await > 2);
}

/// An object of every kind that can be watched, by its API version.
fn one_of_each() -> Vec<(&'static str, &'static str, Value)> {
    let pods = json!({ "containers": [{ "name": "c", "image": "i" }] });
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": pods });
    let set = json!({
        "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": template, "serviceName": "s",
    });
    let none = |fields: [&str; 2]| {
        let mut set = set.clone();
        for field in fields {
            set.as_object_mut().unwrap().remove(field);
        }
        json!({ "spec": set })
    };
    let mut job_pods = template.clone();
    job_pods["spec"]["restartPolicy"] = "Never".into();
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "one" });
    let role =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "one" });
    let volume = json!({
        "capacity": { "storage": "1" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/x" },
    });
    let about = json!({ "kind": "Pod", "namespace": "default", "name": "one" });
    let event = json!({
        "eventTime": "2030-01-01T00:00:00.000000Z", "reportingController": "test", "type": "Normal",
        "reportingInstance": "test", "action": "Test", "reason": "Test", "regarding": about,
    });
    vec![
        ("apps/v1", "Deployment", none(["serviceName", ""])),
        (
            "v1",
            "ReplicationController",
            json!({ "spec": { "replicas": 0, "template": template } }),
        ),
        ("apps/v1", "ReplicaSet", none(["serviceName", ""])),
        ("apps/v1", "DaemonSet", none(["serviceName", "replicas"])),
        ("apps/v1", "StatefulSet", json!({ "spec": set })),
        (
            "v1",
            "Service",
            json!({ "spec": { "ports": [{ "port": 1 }] } }),
        ),
        ("v1", "Pod", json!({ "spec": pods })),
        (
            "batch/v1",
            "Job",
            json!({ "spec": { "suspend": true, "template": job_pods } }),
        ),
        ("v1", "Node", json!({})),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            json!({ "rules": [] }),
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            json!({ "roleRef": role }),
        ),
        ("v1", "ServiceAccount", json!({})),
        ("v1", "PersistentVolume", json!({ "spec": volume })),
        ("v1", "Namespace", json!({})),
        ("v1", "Secret", json!({})),
        ("v1", "ConfigMap", json!({})),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({ "spec": { "defaultBackend": { "service": { "name": "one", "port": { "number": 1 } } } } }),
        ),
        (
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            json!({ "spec": { "maxReplicas": 1, "scaleTargetRef": target } }),
        ),
        ("events.k8s.io/v1", "Event", event),
    ]
}

async fn create_one_of_each(cluster: &TestCluster) {
    for (api_version, kind, mut object) in one_of_each() {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": "one" });
        let cluster_wide = [
            "Node",
            "ClusterRole",
            "ClusterRoleBinding",
            "PersistentVolume",
            "Namespace",
        ];
        let api: Api<DynamicObject> = if cluster_wide.contains(&kind) {
            Api::all_with(cluster.client(), &resource)
        } else {
            Api::namespaced_with(cluster.client(), "default", &resource)
        };
        let object = serde_json::from_value(object).unwrap();
        let created = api.create(&PostParams::default(), &object).await;
        created.unwrap_or_else(|error| panic!("cannot create {kind}: {error}"));
    }
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    start(&cluster).await;
    let exceptions = [
        (
            "update watches/finalizers.kubewatch.example.com",
            "asked for by an admission plugin that real clusters may have",
        ),
        (
            "patch events.events.k8s.io",
            "counts an event that happens again within minutes",
        ),
    ];
    let scenario = async |cluster: TestCluster| {
        let everything = [
            "deployment",
            "replicationcontroller",
            "replicaset",
            "daemonset",
            "statefulset",
            "services",
            "pod",
            "job",
            "node",
            "clusterrole",
            "clusterrolebinding",
            "serviceaccount",
            "persistentvolume",
            "namespace",
            "secret",
            "configmap",
            "ingress",
            "hpa",
            "event",
            "coreevent",
        ];
        let resource = everything.map(|name| (name.to_owned(), json!(true)));
        let mut watch = watch(&Value::Object(resource.into_iter().collect()));
        let settings = json!({ "namespace": "default", "name": "settings" });
        watch.spec.secret = serde_json::from_value(settings).unwrap();
        let settings = json!({ "metadata": { "name": "settings" }, "stringData": { "KW_FLOCK_URL": "http://flock/" } });
        cluster
            .create::<Secret>(serde_json::from_value(settings).unwrap())
            .await;
        cluster.create(watch).await;
        cluster.settle().await;
        create_one_of_each(&cluster).await;
        cluster.settle().await;
        let receiver = cluster.kept::<Receiver>();
        let lines = receiver.lines();
        for (api_version, kind, _) in one_of_each() {
            let line = format!("{kind} one Created");
            // Both kinds of events show each event.
            let count = if api_version.starts_with("events") {
                2
            } else {
                1
            };
            let found = lines.iter().filter(|found| **found == line).count();
            assert_eq!(found, count, "{line} in {lines:?}");
        }
        assert!(
            receiver
                .messages()
                .iter()
                .any(|(url, _)| url == "http://flock/")
        );
        assert!(cluster.find::<ConfigMap>("kubewatch-all").await.is_some());
        // A message that is given up is an event of the operator's own.
        receiver.answer(Answer::Refuse);
        cluster.create(map("refused")).await;
        cluster.settle().await;
        let status = cluster.get::<Watch>("all").await.status.unwrap();
        assert!(status.dropped > 0);
        cluster.delete::<Watch>("all").await;
        cluster.settle().await;
        assert!(cluster.find::<ConfigMap>("kubewatch-all").await.is_none());
        // An API server that cannot stream lists is asked for pages.
        let watches = "watches.kubewatch.example.com";
        cluster.fail(
            Failure::with(400)
                .by("kubewatch-operator")
                .on(watches)
                .times(1),
        );
        cluster.restart_operators().await;
    };
    let shown = cluster.every_right_is_needed(&exceptions, scenario).await;
    assert!(shown > 40, "{shown}");
}

#[test]
fn manifests_are_current() {
    windlass_cluster::manifests_are_current(
        &kubewatch_operator::operator(),
        env!("CARGO_MANIFEST_DIR"),
    );
}

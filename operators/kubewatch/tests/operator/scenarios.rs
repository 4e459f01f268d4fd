//! What the operator promises, in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kubewatch_operator::{Watch, operator_with};
use serde_json::{Value, json};
use windlass_cluster::{TestCluster, hours, minutes, seconds};

use crate::receiver::{Answer, Receiver};

const URL: &str = "http://receiver/";

fn watch(mut spec: Value) -> Watch {
    if spec["handler"].is_null() {
        spec["handler"] = json!({ "webhook": { "url": URL } });
    }
    if spec["resource"].is_null() {
        spec["resource"] = json!({ "configmap": true });
    }
    serde_json::from_value(json!({ "metadata": { "name": "all" }, "spec": spec })).unwrap()
}

fn map(name: &str, value: &str) -> ConfigMap {
    let metadata = json!({ "name": name, "labels": { "app": name } });
    serde_json::from_value(json!({ "metadata": metadata, "data": { "key": value } })).unwrap()
}

async fn change(cluster: &TestCluster, name: &str, value: &str) {
    let patch = json!({ "data": { "key": value } });
    cluster.patch::<ConfigMap>(name, patch).await;
}

async fn start(cluster: &TestCluster) -> Arc<Receiver> {
    let receiver = Receiver::new();
    let transport = Arc::clone(&receiver);
    cluster.start(operator_with(transport)).await;
    receiver
}

/// The lines about what this test changes: the cluster and the operator have maps of their own.
fn own(lines: Vec<String>) -> Vec<String> {
    let own = |line: &String| !line.contains("kube-root-ca.crt") && !line.contains("kubewatch-");
    lines.into_iter().filter(own).collect()
}

async fn status(cluster: &TestCluster) -> Value {
    let status = cluster.get::<Watch>("all").await.status.unwrap();
    serde_json::to_value(status).unwrap()
}

#[windlass_cluster::test]
async fn changes_after_the_first_start_are_sent_in_order(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    cluster.create(map("before", "1")).await;
    cluster.create(watch(json!({}))).await;
    cluster.settle().await;
    assert_eq!(
        own(receiver.take()),
        [""; 0],
        "what was there before is no news"
    );
    cluster.create(map("a", "1")).await;
    change(&cluster, "a", "2").await;
    cluster.delete::<ConfigMap>("a").await;
    change(&cluster, "before", "2").await;
    cluster.settle().await;
    let expected = [
        "ConfigMap a Created",
        "ConfigMap a Updated",
        "ConfigMap a Deleted",
        "ConfigMap before Updated",
    ];
    assert_eq!(own(receiver.take()), expected);
    assert_eq!(
        status(&cluster).await["handlers"],
        json!([{ "name": "webhook" }])
    );
}

#[windlass_cluster::test]
async fn changes_while_the_operator_was_down_are_sent_when_it_is_back(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    for name in ["changed", "deleted", "same"] {
        cluster.create(map(name, "1")).await;
    }
    cluster.create(watch(json!({}))).await;
    cluster.settle().await;
    receiver.take();
    for down in [minutes(1), hours(2)] {
        cluster.stop_operators();
        change(&cluster, "changed", &format!("{down:?}")).await;
        cluster.delete::<ConfigMap>("deleted").await;
        cluster.create(map("new", "1")).await;
        cluster.advance(down).await;
        let transport = Arc::clone(&receiver);
        cluster.start(operator_with(transport)).await;
        cluster.settle().await;
        let lines: BTreeSet<String> = own(receiver.take()).into_iter().collect();
        let expected = [
            "ConfigMap changed Updated",
            "ConfigMap deleted Deleted",
            "ConfigMap new Created",
        ];
        assert_eq!(Vec::from_iter(lines), expected, "after {down:?}");
        cluster.delete::<ConfigMap>("new").await;
        cluster.create(map("deleted", "1")).await;
        cluster.settle().await;
        receiver.take();
    }
}

#[windlass_cluster::test]
async fn messages_wait_for_a_receiver_that_is_down(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    cluster.create(watch(json!({}))).await;
    cluster.settle().await;
    receiver.take();
    receiver.answer(Answer::Fail);
    cluster.create(map("a", "1")).await;
    change(&cluster, "a", "2").await;
    cluster.advance(minutes(10)).await;
    assert_eq!(receiver.lines(), [""; 0]);
    let failing = status(&cluster).await["handlers"].clone();
    let expected = json!([{ "name": "webhook", "failing": "cannot send message: down" }]);
    assert_eq!(failing, expected);
    // A restart in between loses nothing either.
    cluster.restart_operators().await;
    receiver.answer(Answer::Accept);
    cluster.advance(minutes(5)).await;
    assert_eq!(
        own(receiver.take()),
        ["ConfigMap a Created", "ConfigMap a Updated"]
    );
    assert_eq!(
        status(&cluster).await["handlers"],
        json!([{ "name": "webhook" }])
    );
}

#[windlass_cluster::test]
async fn messages_that_are_given_up_are_counted_and_reported(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    cluster
        .create(watch(
            json!({ "delivery": { "queue": 2, "seconds": 3600 } }),
        ))
        .await;
    cluster.settle().await;
    receiver.take();
    receiver.answer(Answer::Fail);
    for name in ["a", "b", "c", "d"] {
        cluster.create(map(name, "1")).await;
        cluster.advance(seconds(2)).await;
    }
    // One is being sent, two wait, one is given up.
    assert_eq!(status(&cluster).await["dropped"], 1);
    cluster.advance(hours(2)).await;
    assert!(status(&cluster).await["dropped"].as_u64() >= Some(2));
    receiver.answer(Answer::Refuse);
    cluster.create(map("e", "1")).await;
    cluster.advance(minutes(10)).await;
    let events = cluster.list_all::<Event>().await;
    let dropped = |event: &Event| event.reason.as_deref() == Some("MessagesDropped");
    assert!(events.iter().any(dropped));
}

#[windlass_cluster::test]
async fn values_of_secrets_are_never_sent(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    let handlers = json!({ "cloudevent": { "url": URL }, "webhook": { "url": URL } });
    cluster
        .create(watch(
            json!({ "handler": handlers, "resource": { "secret": true } }),
        ))
        .await;
    cluster.settle().await;
    let secret = |value: &str| -> Secret {
        let metadata = json!({ "name": "password" });
        serde_json::from_value(json!({ "metadata": metadata, "stringData": { "p": value } }))
            .unwrap()
    };
    cluster.create(secret("hunter2")).await;
    cluster
        .patch::<Secret>("password", json!({ "stringData": { "p": "hunter3" } }))
        .await;
    cluster.delete::<Secret>("password").await;
    cluster.settle().await;
    let messages = format!("{:?}", receiver.messages());
    assert_eq!(receiver.lines().len(), 3);
    for value in ["hunter2", "hunter3", "aHVudGVyMg", "aHVudGVyMw"] {
        assert!(!messages.contains(value), "{messages}");
    }
    assert!(messages.contains("oldObj"));
}

#[windlass_cluster::test]
async fn filters_let_only_some_pass(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    for (spec, expected) in [
        (
            json!({ "reason": ["Deleted"] }),
            vec!["ConfigMap a Deleted", "ConfigMap b Deleted"],
        ),
        (
            json!({ "selector": { "matchLabels": { "app": "b" } }, "reason": ["Created"] }),
            vec!["ConfigMap b Created"],
        ),
        (
            json!({ "filter": "reason == 'Updated' && object.data.key != oldObject.data.key && name == 'a'" }),
            vec!["ConfigMap a Updated"],
        ),
        (
            json!({ "namespaces": ["kube-public", "kube-system"] }),
            vec![],
        ),
        (json!({ "namespace": "kube-system" }), vec![]),
    ] {
        let mut watch = watch(spec.clone());
        watch.metadata.name = Some(format!("w{}", spec.to_string().len()));
        let watch = cluster.create(watch).await;
        cluster.settle().await;
        receiver.take();
        for name in ["a", "b"] {
            cluster.create(map(name, "1")).await;
            change(&cluster, name, "2").await;
        }
        cluster.settle().await;
        for name in ["a", "b"] {
            cluster.delete::<ConfigMap>(name).await;
        }
        cluster.settle().await;
        assert_eq!(own(receiver.take()), expected, "{spec}");
        cluster.delete::<Watch>(watch.name_any().as_str()).await;
        cluster.settle().await;
        cluster.create(map("later", "1")).await;
        cluster.delete::<ConfigMap>("later").await;
        cluster.settle().await;
        assert_eq!(
            receiver.take(),
            [""; 0],
            "a watch that is gone sends nothing"
        );
    }
}

#[windlass_cluster::test]
async fn flood_becomes_one_message(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    cluster
        .create(watch(
            json!({ "group": { "limit": 2, "seconds": 30 }, "namespace": "default" }),
        ))
        .await;
    cluster.advance(minutes(2)).await;
    receiver.take();
    for number in 0..20 {
        cluster.create(map(&format!("m{number}"), "1")).await;
    }
    cluster.advance(minutes(2)).await;
    let messages = receiver.messages();
    let texts: Vec<&str> = messages
        .iter()
        .filter_map(|(_, body)| body["text"].as_str())
        .collect();
    let grouped = texts.iter().find(|text| text.contains("more changes"));
    let grouped = grouped.unwrap_or_else(|| panic!("{texts:?}"));
    assert!(
        grouped.starts_with("`18` more changes within 30 seconds:\n`18` `ConfigMap` `Created`"),
        "{grouped}"
    );
}

#[windlass_cluster::test]
async fn kind_that_is_found_at_run_time_is_watched(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    let custom = json!([{ "group": "example.com", "version": "v1", "resource": "pages" }]);
    cluster
        .create(watch(
            json!({ "customresources": custom, "resource": { "pod": true } }),
        ))
        .await;
    cluster.settle().await;
    let unwatched = status(&cluster).await["unwatched"].clone();
    assert!(
        unwatched[0]
            .as_str()
            .unwrap()
            .starts_with("pages.example.com: "),
        "{unwatched}"
    );
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "pages.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "pages", "kind": "Page" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    }))
    .unwrap();
    cluster.create(definition).await;
    grant_pages(&cluster).await;
    cluster.advance(minutes(5)).await;
    assert_eq!(status(&cluster).await["unwatched"], json!([]));
    let resource = kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
        "example.com",
        "v1",
        "Page",
    ));
    let pages: kube::Api<kube::core::DynamicObject> =
        kube::Api::namespaced_with(cluster.client(), "default", &resource);
    let page = kube::core::DynamicObject::new("home", &resource);
    pages
        .create(&kube::api::PostParams::default(), &page)
        .await
        .unwrap();
    cluster.settle().await;
    assert_eq!(receiver.take(), ["pages home Created"]);
}

/// What the administrator does for kinds that the operator's role does not have.
async fn grant_pages(cluster: &TestCluster) {
    use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": { "name": "pages" },
        "rules": [{ "apiGroups": ["example.com"], "resources": ["pages"], "verbs": ["list", "watch"] }],
    }))
    .unwrap();
    cluster.create(role).await;
    let name = "kubewatch-operator";
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "pages" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pages" },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": format!("{name}-system") }],
    }))
    .unwrap();
    cluster.create(binding).await;
}

#[windlass_cluster::test]
async fn settings_of_a_secret_complete_the_watch(cluster: TestCluster) {
    let receiver = start(&cluster).await;
    let reference = json!({ "namespace": "default", "name": "settings" });
    let spec = json!({ "secret": reference, "handler": { "slack": { "channel": "ops" } } });
    cluster.create(watch(spec)).await;
    cluster.settle().await;
    let settings: Secret = serde_json::from_value(json!({
        "metadata": { "name": "settings" }, "stringData": { "KW_SLACK_TOKEN": "xoxb-1" },
    }))
    .unwrap();
    cluster.create(settings).await;
    cluster.advance(minutes(2)).await;
    cluster.create(map("a", "1")).await;
    cluster.settle().await;
    let messages = format!("{:?}", receiver.messages());
    assert!(
        messages.contains("token=xoxb-1") && messages.contains("channel=ops"),
        "{messages}"
    );
    let watch = cluster.get::<Watch>("all").await;
    assert!(!serde_json::to_string(&watch).unwrap().contains("xoxb"));
}

#[windlass_cluster::test]
async fn invalid_watch_says_what_is_wrong(cluster: TestCluster) {
    start(&cluster).await;
    for (spec, message) in [
        (
            json!({ "handler": { "slack": { "token": "t" } } }),
            "cannot configure handler slack: channel is missing",
        ),
        (json!({ "filter": "1 +" }), "cannot read filter: "),
    ] {
        cluster.create(watch(spec)).await;
        cluster.settle().await;
        let conditions = status(&cluster).await["conditions"].clone();
        let mut conditions = conditions.as_array().unwrap().iter();
        let degraded = conditions.find(|one| one["type"] == "Degraded").unwrap();
        let text = degraded["message"].as_str().unwrap();
        assert!(text.starts_with(message), "{text}");
        cluster.delete::<Watch>("all").await;
        cluster.settle().await;
    }
}

//! Decorator controllers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use windlass_cluster::{TestCluster, minutes};
use windlass_declarative::metacontroller::DecoratorController;

use crate::hooks::{Hooks, expected, metacontroller, texts};

const SYNC: &str = "http://hook/sync";

fn decorator(more: Value) -> DecoratorController {
    let mut spec = json!({
        "resources": [{
            "apiVersion": "v1", "resource": "secrets",
            "annotationSelector": {"matchAnnotations": {"decorate": "yes"}},
        }],
        "attachments": [{
            "apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"},
        }],
        "hooks": {"sync": {"webhook": {"url": SYNC}}},
    });
    let Value::Object(more) = more else {
        panic!("{more} is no map");
    };
    for (field, value) in more {
        spec[field] = value;
    }
    DecoratorController::new("marks", serde_json::from_value(spec).unwrap())
}

fn marks(request: &Value) -> Value {
    let name = request["object"]["metadata"]["name"].clone();
    json!({
        "labels": {"marked": "yes", "old": null},
        "annotations": {"by": "hook"},
        "attachments": [{
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": "attached"},
        }],
    })
}

fn secret(name: &str, annotated: bool) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.labels = Some(expected(&[("old", "1"), ("own", "1")]));
    if annotated {
        secret.metadata.annotations = Some(expected(&[("decorate", "yes")]));
    }
    secret
}

#[windlass_cluster::test]
async fn objects_that_match_get_labels_and_attachments(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, marks);
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(decorator(json!({}))).await;
    cluster.create(secret("a", true)).await;
    cluster.create(secret("b", false)).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "attached")]));
    let labels = cluster.get::<Secret>("a").await.metadata.labels.unwrap();
    assert_eq!(labels, expected(&[("marked", "yes"), ("own", "1")]));
    let labels = cluster.get::<Secret>("b").await.metadata.labels.unwrap();
    assert_eq!(labels, expected(&[("old", "1"), ("own", "1")]));
    let map = cluster.get::<ConfigMap>("a").await;
    let made_by = &map.metadata.annotations.unwrap()["metacontroller.k8s.io/decorator-controller"];
    assert_eq!(made_by, "marks");
    let last = hooks.sent(SYNC).pop().unwrap();
    let fields: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "attachments",
            "controller",
            "finalizing",
            "object",
            "related"
        ]
    );
}

#[windlass_cluster::test]
async fn attachments_of_another_decorator_stay(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, marks);
    hooks.on("http://hook/other", |_| json!({"attachments": []}));
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(decorator(json!({}))).await;
    let mut other =
        decorator(json!({"hooks": {"sync": {"webhook": {"url": "http://hook/other"}}}}));
    other.metadata.name = Some("other".to_owned());
    cluster.create(other).await;
    cluster.create(secret("a", true)).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "attached")]));
}

#[windlass_cluster::test]
async fn object_that_matches_no_more_is_finalized(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, marks);
    hooks.on(
        "http://hook/finalize",
        |_| json!({"labels": {"marked": null}, "attachments": [], "finalized": true}),
    );
    cluster.start(metacontroller(&hooks)).await;
    let both = json!({"hooks": {
        "sync": {"webhook": {"url": SYNC}},
        "finalize": {"webhook": {"url": "http://hook/finalize"}},
    }});
    cluster.create(decorator(both)).await;
    cluster.create(secret("a", true)).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "attached")]));
    let no_more = json!({"metadata": {"annotations": {"decorate": null}}});
    cluster.patch::<Secret>("a", no_more).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[]));
    let metadata = cluster.get::<Secret>("a").await.metadata;
    assert_eq!(metadata.finalizers, None);
    assert_eq!(metadata.labels.unwrap(), expected(&[("own", "1")]));
}

#[windlass_cluster::test]
async fn decorator_ends_alike_however_disturbed(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, marks);
    cluster.start(metacontroller(&hooks)).await;
    let runs = cluster
        .ends_alike_however_disturbed(|cluster| async move {
            cluster.create(decorator(json!({}))).await;
            cluster.create(secret("a", true)).await;
            cluster.advance(minutes(1)).await;
            cluster.delete::<ConfigMap>("a").await;
            cluster.advance(minutes(1)).await;
        })
        .await;
    assert!(runs > 3, "{runs}");
}

//! Composite controllers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::Patch, api::PatchParams};
use serde_json::{Value, json};
use windlass_cluster::{TestCluster, hours, minutes};
use windlass_declarative::metacontroller::{Answer, CompositeController};

use crate::hooks::{Hooks, Thing, composite, expected, maps, metacontroller, ok, texts, thing};

const SYNC: &str = "http://hook/sync";

fn hooks() -> Arc<Hooks> {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, maps);
    hooks
}

/// Why a controller does not run.
async fn waits(cluster: &TestCluster, name: &str) -> Option<String> {
    let status = cluster.get::<CompositeController>(name).await.status?;
    let degraded = status
        .conditions
        .into_iter()
        .find(|it| it.type_ == "Degraded")?;
    (degraded.status == "True").then_some(degraded.reason)
}

#[windlass_cluster::test]
async fn hook_decides_which_children_there_are(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("t", &["a", "b"])).await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "one"), ("b", "one")])
    );
    let status = cluster.get::<Thing>("t").await.status.unwrap();
    assert_eq!(
        (status.maps, status.observed_generation),
        (Some(2), Some(1))
    );

    cluster.delete::<ConfigMap>("a").await;
    let spec = json!({"spec": {"maps": ["a", "c"], "text": "two"}});
    cluster.patch::<Thing>("t", spec).await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "two"), ("c", "two")])
    );

    let before = cluster.requests_of("metacontroller").len();
    cluster.advance(hours(1)).await;
    let later = cluster.requests_of("metacontroller").split_off(before);
    assert!(
        later.iter().all(|request| !request.verb.writes()),
        "{later:?}"
    );

    cluster.delete::<Thing>("t").await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, BTreeMap::new());
}

#[windlass_cluster::test]
async fn one_parent_takes_no_read_and_three_writes(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("warm", &["w"])).await;
    cluster.settle().await;
    let before = cluster.requests_of("metacontroller").len();
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let requests = cluster.requests_of("metacontroller").split_off(before);
    let lines: Vec<String> = requests.iter().map(ToString::to_string).collect();
    let writes = requests
        .iter()
        .filter(|request| request.verb.writes())
        .count();
    assert!(writes <= 3, "{lines:?}");
    assert_eq!(lines.len(), writes, "{lines:?}");
}

#[windlass_cluster::test]
async fn request_has_the_fields_of_the_original(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let last = hooks.sent(SYNC).pop().unwrap();
    let fields: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["children", "controller", "finalizing", "parent", "related"]
    );
    assert_eq!(last["controller"]["kind"], "CompositeController");
    assert_eq!(last["controller"]["metadata"]["name"], "maps");
    assert_eq!(last["parent"]["apiVersion"], "example.com/v1");
    assert_eq!(last["parent"]["kind"], "Thing");
    let child = &last["children"]["ConfigMap.v1"]["a"];
    assert_eq!(
        (child["kind"].as_str(), child["apiVersion"].as_str()),
        (Some("ConfigMap"), Some("v1"))
    );
    assert_eq!(
        (&last["related"], &last["finalizing"]),
        (&json!({}), &json!(false))
    );
}

#[windlass_cluster::test]
async fn controller_of_a_kind_that_comes_later_starts_then(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    let late =
        json!({"parentResource": {"apiVersion": "late.example.com/v1", "resource": "lates"}});
    cluster.create(composite("late", late)).await;
    cluster.settle().await;
    assert_eq!(
        waits(&cluster, "late").await.as_deref(),
        Some("KindNotServed")
    );
    let definition: Value = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lates.late.example.com"},
        "spec": {
            "group": "late.example.com", "scope": "Namespaced",
            "names": {"kind": "Late", "plural": "lates"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let definition: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
        serde_json::from_value(definition).unwrap();
    cluster.create(definition).await;
    cluster.settle().await;
    let resource = kube::core::ApiResource {
        group: "late.example.com".into(),
        version: "v1".into(),
        api_version: "late.example.com/v1".into(),
        kind: "Late".into(),
        plural: "lates".into(),
    };
    let lates: Api<kube::core::DynamicObject> =
        Api::default_namespaced_with(cluster.client(), &resource);
    let object = json!({
        "apiVersion": "late.example.com/v1", "kind": "Late", "metadata": {"name": "l"},
        "spec": {"maps": ["a"], "text": "one"},
    });
    let params = PatchParams::apply("test");
    lates
        .patch("l", &params, &Patch::Apply(&object))
        .await
        .unwrap();
    cluster.advance(minutes(2)).await;
    assert_eq!(waits(&cluster, "late").await, None);
    assert_eq!(texts(&cluster).await, expected(&[("a", "one")]));
}

#[windlass_cluster::test]
async fn controller_that_is_changed_or_deleted_changes_or_stops(cluster: TestCluster) {
    let hooks = hooks();
    hooks.on("http://hook/other", |request| {
        let mut answer = maps(request);
        for child in answer["children"].as_array_mut().unwrap() {
            child["data"]["text"] = "other".into();
        }
        answer
    });
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let other = json!({"spec": {"hooks": {"sync": {"webhook": {"url": "http://hook/other"}}}}});
    cluster.patch::<CompositeController>("maps", other).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "other")]));

    cluster.delete::<CompositeController>("maps").await;
    cluster.settle().await;
    // Its children stay, and nobody looks after them.
    cluster.delete::<ConfigMap>("a").await;
    cluster
        .patch::<Thing>("t", json!({"spec": {"maps": ["a", "b"]}}))
        .await;
    cluster.advance(hours(1)).await;
    assert_eq!(texts(&cluster).await, BTreeMap::new());
    cluster.create(composite("maps", json!({}))).await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "one"), ("b", "one")])
    );
}

#[windlass_cluster::test]
async fn failing_hook_deletes_nothing_and_is_asked_again(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let broken: [fn(&Value) -> Answer; 4] = [
        |_| Answer {
            status: 500,
            ..Answer::default()
        },
        |_| Answer {
            status: 200,
            body: b"{".to_vec(),
            ..Answer::default()
        },
        |_| ok(&json!({"children": "none"})),
        |_| ok(&json!({"children": [{"kind": "ConfigMap", "metadata": {"name": "x"}}]})),
    ];
    for answer in broken {
        hooks.on_raw(SYNC, answer);
        cluster
            .patch::<Thing>("t", json!({"metadata": {"labels": {"touched": null}}}))
            .await;
        cluster
            .patch::<Thing>("t", json!({"metadata": {"labels": {"touched": "yes"}}}))
            .await;
        tokio::time::sleep(minutes(10)).await;
        assert_eq!(texts(&cluster).await, expected(&[("a", "one")]));
    }
    hooks.on(SYNC, maps);
    cluster
        .patch::<Thing>("t", json!({"spec": {"maps": ["b"]}}))
        .await;
    cluster.advance(hours(1)).await;
    assert_eq!(texts(&cluster).await, expected(&[("b", "one")]));
}

#[windlass_cluster::test]
async fn hook_that_is_asked_too_much_is_asked_again_when_it_says(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    hooks.on_raw(SYNC, move |request| {
        if counted.fetch_add(1, Ordering::Relaxed) > 0 {
            return ok(&maps(request));
        }
        Answer {
            status: 429,
            headers: BTreeMap::from([("retry-after".to_owned(), "600".to_owned())]),
            body: Vec::new(),
        }
    });
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.advance(minutes(9)).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    cluster.advance(minutes(2)).await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "one")]));
}

#[windlass_cluster::test]
async fn resync_after_seconds_asks_again(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, |request| {
        let mut answer = maps(request);
        answer["resyncAfterSeconds"] = 60.into();
        answer
    });
    cluster.start(metacontroller(&hooks)).await;
    cluster.create(composite("maps", json!({}))).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    hooks.sent(SYNC);
    cluster.advance(minutes(10)).await;
    let asked = hooks.sent(SYNC).len();
    assert!((9..=11).contains(&asked), "{asked}");
}

#[windlass_cluster::test]
async fn parent_goes_when_the_finalize_hook_is_done(cluster: TestCluster) {
    let hooks = hooks();
    // The maps go first, and the parent when none is left.
    hooks.on("http://hook/finalize", |request| {
        assert_eq!(request["finalizing"], true);
        let left = request["children"]["ConfigMap.v1"]
            .as_object()
            .unwrap()
            .len();
        json!({"children": [], "finalized": left == 0})
    });
    cluster.start(metacontroller(&hooks)).await;
    let both = json!({"hooks": {
        "sync": {"webhook": {"url": SYNC}},
        "finalize": {"webhook": {"url": "http://hook/finalize"}},
    }});
    cluster.create(composite("maps", both)).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let finalizers = cluster.get::<Thing>("t").await.metadata.finalizers.unwrap();
    assert_eq!(finalizers, ["metacontroller.io/compositecontroller-maps"]);
    cluster.delete::<Thing>("t").await;
    cluster.settle().await;
    assert!(cluster.find::<Thing>("t").await.is_none());
    assert_eq!(texts(&cluster).await, BTreeMap::new());
    assert!(hooks.sent("http://hook/finalize").len() >= 2);
}

#[windlass_cluster::test]
async fn finalizer_goes_when_there_is_no_finalize_hook_any_more(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    let both = json!({"hooks": {
        "sync": {"webhook": {"url": SYNC}},
        "finalize": {"webhook": {"url": "http://hook/finalize"}},
    }});
    cluster.create(composite("maps", both)).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let none = json!({"spec": {"hooks": {"finalize": null}}});
    cluster.patch::<CompositeController>("maps", none).await;
    cluster.settle().await;
    cluster.delete::<Thing>("t").await;
    cluster.settle().await;
    assert!(cluster.find::<Thing>("t").await.is_none());
}

#[windlass_cluster::test]
async fn related_objects_are_sent_and_wake_their_parents(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on("http://hook/customize", |request| {
        json!({"relatedResources": [{
            "apiVersion": "v1", "resource": "secrets", "names": [request["parent"]["spec"]["text"]],
        }]})
    });
    hooks.on(SYNC, |request| {
        let secrets = request["related"]["Secret.v1"].as_object().unwrap();
        let text: Vec<&str> = secrets.keys().map(String::as_str).collect();
        json!({"children": [{
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"},
            "data": {"text": text.join(" ")},
        }]})
    });
    cluster.start(metacontroller(&hooks)).await;
    let both = json!({"hooks": {
        "sync": {"webhook": {"url": SYNC}},
        "customize": {"webhook": {"url": "http://hook/customize"}},
    }});
    cluster.create(composite("maps", both)).await;
    cluster.create(thing("t", &[])).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("seen", "")]));
    hooks.sent(SYNC);
    let secret = |name: &str| {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        secret
    };
    // Not one that the rules are about.
    cluster.create(secret("two")).await;
    cluster.settle().await;
    assert_eq!(hooks.sent(SYNC).len(), 0);
    cluster.create(secret("one")).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("seen", "one")]));
    cluster
        .patch::<Thing>("t", json!({"spec": {"text": "two"}}))
        .await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("seen", "two")]));
}

#[windlass_cluster::test]
async fn orphans_that_match_are_adopted_and_children_that_do_not_are_released(
    cluster: TestCluster,
) {
    let hooks = Arc::new(Hooks::default());
    // It wants whatever is there.
    hooks.on(SYNC, |request| {
        let there = request["children"]["ConfigMap.v1"].as_object().unwrap();
        let map = |name: &String| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"app": "t"}}, "data": {"text": "mine"},
            })
        };
        json!({"children": there.keys().map(map).collect::<Vec<Value>>()})
    });
    cluster.start(metacontroller(&hooks)).await;
    let own = json!({"generateSelector": false, "parentResource": {
        "apiVersion": "example.com/v1", "resource": "things",
    }});
    cluster.create(composite("maps", own)).await;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("orphan".to_owned());
    map.metadata.labels = Some(expected(&[("app", "t")]));
    cluster.create(map).await;
    // A parent without a selector takes nothing.
    cluster.create(thing("none", &[])).await;
    cluster.settle().await;
    let owners = async || {
        cluster
            .get::<ConfigMap>("orphan")
            .await
            .metadata
            .owner_references
    };
    assert_eq!(owners().await, None);

    let selector = json!({"spec": {"selector": {"matchLabels": {"app": "t"}}}});
    cluster.patch::<Thing>("none", selector).await;
    cluster.settle().await;
    assert_eq!(owners().await.unwrap()[0].name, "none");
    assert_eq!(texts(&cluster).await, expected(&[("orphan", "mine")]));

    let other = json!({"metadata": {"labels": {"app": "other"}}});
    cluster.patch::<ConfigMap>("orphan", other).await;
    cluster.settle().await;
    assert!(owners().await.unwrap_or_default().is_empty());
}

#[windlass_cluster::test]
async fn composite_ends_alike_however_disturbed(cluster: TestCluster) {
    let hooks = hooks();
    cluster.start(metacontroller(&hooks)).await;
    let runs = cluster
        .ends_alike_however_disturbed(|cluster| async move {
            cluster.create(composite("maps", json!({}))).await;
            cluster.create(thing("t", &["a", "b"])).await;
            cluster.advance(minutes(1)).await;
            let spec = json!({"spec": {"maps": ["b", "c"], "text": "two"}});
            cluster.patch::<Thing>("t", spec).await;
            cluster.advance(minutes(1)).await;
        })
        .await;
    assert!(runs > 6, "{runs}");
}

//! What the engine makes of what a renderer answers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::BoxFuture;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, CustomResource, CustomResourceExt,
    api::{Patch, PatchParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{Error, Operator, Result, kind::KindInfo};
use windlass_cluster::{TestCluster, hours, minutes};
use windlass_declarative::{
    Check, Declarative, Desired, Input, Method, ParentInventory, Ready, Renderer, RendererContext,
    Wanted,
};

/// A parent.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Thing",
    namespaced,
    status = "ThingStatus"
)]
struct ThingSpec {
    #[serde(default)]
    maps: Vec<String>,
    #[serde(default)]
    text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct ThingStatus {
    maps: Option<usize>,
    conditions: Option<Vec<BTreeMap<String, String>>>,
}

fn thing(name: &str, maps: &[&str]) -> Thing {
    let maps = maps.iter().map(|name| (*name).to_owned()).collect();
    let text = "one".to_owned();
    Thing::new(name, ThingSpec { maps, text })
}

/// A map for each name in the spec; fails while it is told to.
#[derive(Default)]
struct Maps {
    method: Method,
    fails: Arc<AtomicBool>,
}

fn map_of(input: &Input, name: &Value) -> Wanted {
    Wanted::new(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"text": input.parent["spec"]["text"]},
    }))
}

impl Renderer for Maps {
    fn render<'a>(
        &'a self,
        _: &'a RendererContext,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Desired>> {
        Box::pin(async move {
            if self.fails.load(Ordering::Relaxed) {
                return Err(Error::other("it cannot be rendered"));
            }
            let names = input.parent["spec"]["maps"].as_array();
            let maps = names.into_iter().flatten();
            let maps = maps.map(|name| map_of(input, name).method(self.method));
            let there = input.children.of(&KindInfo::of::<ConfigMap>()).count();
            let mut desired = Desired::of(maps);
            desired.status = Some(json!({ "maps": there }));
            Ok(desired)
        })
    }
}

fn maps_by(renderer: Maps) -> Operator {
    let renderer = Arc::new(renderer);
    let declarative = Declarative::of(KindInfo::of::<Thing>(), move |_| Arc::clone(&renderer))
        .child(KindInfo::of::<ConfigMap>());
    Operator::new("maps")
        .controller(declarative.controller())
        .definition(Thing::crd())
}

async fn texts(cluster: &TestCluster) -> BTreeMap<String, String> {
    let maps = cluster.list::<ConfigMap>().await.into_iter();
    let maps = maps.filter_map(|map| {
        let text = map.data?.get("text")?.clone();
        Some((map.metadata.name?, text))
    });
    maps.collect()
}

fn expected(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(name, text)| ((*name).into(), (*text).into()))
        .collect()
}

#[windlass_cluster::test]
async fn children_are_made_repaired_and_pruned(cluster: TestCluster) {
    cluster.start(maps_by(Maps::default())).await;
    cluster.create(thing("t", &["a", "b"])).await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "one"), ("b", "one")])
    );
    assert_eq!(
        cluster.get::<Thing>("t").await.status.unwrap().maps,
        Some(2)
    );

    cluster.delete::<ConfigMap>("a").await;
    cluster
        .patch::<ConfigMap>("b", json!({"data": {"text": "changed"}}))
        .await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "one"), ("b", "one")])
    );

    let spec = json!({"spec": {"maps": ["b", "c"], "text": "two"}});
    cluster.patch::<Thing>("t", spec).await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("b", "two"), ("c", "two")])
    );

    let before = cluster.requests_of("maps").len();
    cluster.advance(hours(2)).await;
    let writes = cluster.requests_of("maps").split_off(before);
    assert!(
        writes.iter().all(|request| !request.verb.writes()),
        "{writes:?}"
    );

    cluster.delete::<Thing>("t").await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, BTreeMap::new());
}

#[windlass_cluster::test]
async fn failed_render_deletes_nothing_and_is_tried_again(cluster: TestCluster) {
    let fails = Arc::new(AtomicBool::new(false));
    let renderer = Maps {
        fails: Arc::clone(&fails),
        ..Maps::default()
    };
    cluster.start(maps_by(renderer)).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    fails.store(true, Ordering::Relaxed);
    cluster
        .patch::<Thing>("t", json!({"spec": {"maps": []}}))
        .await;
    tokio::time::sleep(minutes(10)).await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "one")]));
    fails.store(false, Ordering::Relaxed);
    cluster.advance(hours(1)).await;
    assert_eq!(texts(&cluster).await, BTreeMap::new());
}

#[windlass_cluster::test]
async fn on_delete_leaves_a_child_until_it_is_deleted(cluster: TestCluster) {
    let method = Method::OnDelete;
    cluster
        .start(maps_by(Maps {
            method,
            ..Maps::default()
        }))
        .await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    cluster
        .patch::<Thing>("t", json!({"spec": {"text": "two"}}))
        .await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "one")]));
    cluster.delete::<ConfigMap>("a").await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "two")]));
}

#[windlass_cluster::test]
async fn recreate_replaces_a_child_that_differs_and_no_other(cluster: TestCluster) {
    let method = Method::Recreate;
    cluster
        .start(maps_by(Maps {
            method,
            ..Maps::default()
        }))
        .await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    let uid = async || cluster.get::<ConfigMap>("a").await.metadata.uid;
    let first = uid().await;
    cluster
        .patch::<Thing>("t", json!({"metadata": {"labels": {"x": "y"}}}))
        .await;
    cluster.settle().await;
    assert_eq!(uid().await, first);
    cluster
        .patch::<Thing>("t", json!({"spec": {"text": "two"}}))
        .await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "two")]));
    assert_ne!(uid().await, first);
}

#[windlass_cluster::test]
async fn object_of_another_is_refused_and_stays(cluster: TestCluster) {
    cluster.start(maps_by(Maps::default())).await;
    let mut other = ConfigMap::default();
    other.metadata.name = Some("a".to_owned());
    other.data = Some(expected(&[("text", "mine")]));
    cluster.create(other).await;
    cluster.create(thing("t", &["a", "b"])).await;
    cluster.settle().await;
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "mine"), ("b", "one")])
    );
}

#[windlass_cluster::test]
async fn maps_end_alike_however_disturbed(cluster: TestCluster) {
    cluster.start(maps_by(Maps::default())).await;
    let runs = cluster
        .ends_alike_however_disturbed(|cluster| async move {
            cluster.create(thing("t", &["a", "b"])).await;
            cluster.advance(minutes(1)).await;
            let spec = json!({"spec": {"maps": ["b", "c"], "text": "two"}});
            cluster.patch::<Thing>("t", spec).await;
            cluster.advance(minutes(1)).await;
        })
        .await;
    assert!(runs > 6, "{runs}");
}

/// A thing first, which has to be ready, then a map; and a cluster-scoped role of a namespaced parent.
struct Staged;

impl Renderer for Staged {
    fn render<'a>(
        &'a self,
        _: &'a RendererContext,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Desired>> {
        Box::pin(async move {
            if input.parent["metadata"]["name"] == "inner" {
                return Ok(Desired::default());
            }
            let inner = Wanted::new(json!({
                "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "inner"},
                "spec": {},
            }));
            let ready = Ready::Conditions(vec![Check {
                kind: "Ready".into(),
                status: Some("True".into()),
                reason: None,
            }]);
            let role = Wanted::new(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "of-t"}, "rules": [],
            }));
            let secret = Wanted::new(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "kept", "namespace": "kube-public"},
            }));
            Ok(Desired {
                stages: vec![
                    vec![inner.ready(ready), role, secret.keep()],
                    vec![map_of(input, &json!("late"))],
                ],
                ..Desired::default()
            })
        })
    }
}

fn staged() -> Operator {
    use windlass::handle::{Access, Verb};
    let parent = KindInfo::of::<Thing>();
    let kind = parent.clone();
    let all = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Patch,
        Verb::Delete,
    ];
    let declarative = Declarative::of(parent, |_| Arc::new(Staged))
        .any_kind([
            Access::of::<Thing>(all),
            Access::of::<ConfigMap>(all),
            Access::of::<Secret>(all),
            Access::of::<ClusterRole>(all),
        ])
        .inventory(move |declare| Arc::new(ParentInventory::declare(declare, &kind)));
    Operator::new("staged")
        .controller(declarative.controller())
        .definition(Thing::crd())
}

async fn is_ready(cluster: &TestCluster) {
    let things: Api<Thing> = Api::default_namespaced(cluster.client());
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let params = PatchParams::default();
    let patched = things
        .patch_status("inner", &params, &Patch::Merge(&status))
        .await;
    patched.unwrap();
}

#[windlass_cluster::test]
async fn stage_begins_when_the_one_before_it_is_ready(cluster: TestCluster) {
    cluster.start(staged()).await;
    cluster.create(thing("t", &[])).await;
    cluster.settle().await;
    assert!(cluster.find::<ClusterRole>("of-t").await.is_some());
    assert!(cluster.find::<ConfigMap>("late").await.is_none());
    is_ready(&cluster).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("late").await.is_some());
}

#[windlass_cluster::test]
async fn objects_of_other_scopes_are_repaired_and_go_with_their_parent(cluster: TestCluster) {
    cluster.start(staged()).await;
    cluster.create(thing("t", &[])).await;
    cluster.settle().await;
    cluster.delete::<ClusterRole>("of-t").await;
    cluster.settle().await;
    assert!(cluster.find::<ClusterRole>("of-t").await.is_some());
    cluster.delete::<Thing>("t").await;
    cluster.settle().await;
    assert!(cluster.find::<ClusterRole>("of-t").await.is_none());
    assert!(cluster.find::<Thing>("t").await.is_none());
    // It was to be kept.
    assert!(
        cluster
            .find::<Secret>(("kube-public", "kept"))
            .await
            .is_some()
    );
}

#[windlass_cluster::test]
async fn stages_end_alike_however_disturbed(cluster: TestCluster) {
    cluster.start(staged()).await;
    let runs = cluster
        .ends_alike_however_disturbed(|cluster| async move {
            cluster.create(thing("t", &[])).await;
            cluster.advance(minutes(1)).await;
            is_ready(&cluster).await;
            cluster.advance(minutes(1)).await;
            cluster.delete::<Thing>("t").await;
            cluster.advance(minutes(1)).await;
        })
        .await;
    assert!(runs > 6, "{runs}");
}

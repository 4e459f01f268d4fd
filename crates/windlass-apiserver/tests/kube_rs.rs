//! kube-rs as people use it: typed and dynamic objects, both ways to start a watch, metadata only,
//! subresources. In process, on virtual time.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchEvent, WatchParams,
};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config as WatchConfig, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Discovery, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random};

fn client() -> Client {
    let server = ApiServer::new(Config {
        clock: Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()),
        random: Random::seeded(1),
        ..Config::default()
    });
    Client::new(server.in_process(Identity::admin()), "default")
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a well-formed object")
}

fn config_map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name, "labels": {"app": "a"}}, "data": {"key": "1"}}))
}

fn deployment() -> Deployment {
    object(json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "busybox"}]}}}}))
}

#[tokio::test(start_paused = true)]
async fn typed() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client());
    let made = maps
        .create(&PostParams::default(), &config_map("one"))
        .await
        .unwrap();
    assert!(made.uid().is_some());
    let mut changed = made.clone();
    changed
        .data
        .get_or_insert_default()
        .insert("key".into(), "2".into());
    maps.replace("one", &PostParams::default(), &changed)
        .await
        .unwrap();
    let stale = maps.replace("one", &PostParams::default(), &changed).await;
    assert!(matches!(stale, Err(kube::Error::Api(status)) if status.is_conflict()));
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"applied": "yes"}});
    let applied = maps
        .patch(
            "one",
            &PatchParams::apply("kube-rs"),
            &Patch::Apply(&applied),
        )
        .await
        .unwrap();
    assert_eq!(applied.data.unwrap().len(), 2);
    let merged = maps
        .patch(
            "one",
            &PatchParams::default(),
            &Patch::Merge(json!({"data": {"applied": null}})),
        )
        .await
        .unwrap();
    assert_eq!(merged.data.unwrap()["key"], "2");
    assert_eq!(
        maps.list(&ListParams::default().labels("app=a"))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    assert_eq!(
        maps.list(&ListParams::default().labels("app=b"))
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    assert!(
        maps.delete("one", &DeleteParams::background())
            .await
            .is_ok()
    );
    assert!(maps.get_opt("one").await.unwrap().is_none());
    maps.create(&PostParams::default(), &config_map("two"))
        .await
        .unwrap();
    let deleted = maps
        .delete_collection(
            &DeleteParams::default(),
            &ListParams::default().labels("app=a"),
        )
        .await
        .unwrap();
    assert!(deleted.left().is_some_and(|list| list.items.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn subresources() {
    let client = client();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments
        .create(&PostParams::default(), &deployment())
        .await
        .unwrap();
    let mut scale = deployments.get_scale("web").await.unwrap();
    scale.spec.as_mut().unwrap().replicas = Some(3);
    let scaled = deployments
        .replace_scale("web", &PostParams::default(), &scale)
        .await
        .unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    let status = json!({"status": {"replicas": 2, "observedGeneration": 2}});
    let told = deployments
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    assert_eq!(
        (told.status.unwrap().replicas, told.metadata.generation),
        (Some(2), Some(2))
    );
    let mut whole = deployments.get_status("web").await.unwrap();
    whole.status.as_mut().unwrap().replicas = Some(3);
    whole.spec.as_mut().unwrap().replicas = Some(9);
    let replaced = deployments
        .replace_status("web", &PostParams::default(), &whole)
        .await
        .unwrap();
    assert_eq!(
        (
            replaced.status.unwrap().replicas,
            replaced.spec.unwrap().replicas
        ),
        (Some(3), Some(3))
    );
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account = json!({"metadata": {"name": "robot"}});
    accounts
        .create(&PostParams::default(), &object(account))
        .await
        .unwrap();
    let request = object(json!({"spec": {"audiences": [], "expirationSeconds": 600}}));
    let token = accounts
        .create_token_request("robot", &PostParams::default(), &request)
        .await
        .unwrap();
    assert!(token.status.unwrap().token.is_some());
}

const DEFINITION: &str = r#"{"metadata": {"name": "boxes.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
    "names": {"plural": "boxes", "kind": "Box"}, "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
    "status": {"type": "object", "properties": {"full": {"type": "boolean"}}}}}}}]}}"#;

#[tokio::test(start_paused = true)]
async fn dynamic() {
    let client = client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = serde_json::from_str(DEFINITION).unwrap();
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(definitions, "boxes.example.com", established)
        .await
        .unwrap();
    let kind = GroupVersionKind::gvk("example.com", "v1", "Box");
    let (resource, capabilities) = kube::discovery::pinned_kind(&client, &kind).await.unwrap();
    assert!(capabilities.supports_operation("watch"));
    assert_eq!(resource, ApiResource::from_gvk_with_plural(&kind, "boxes"));
    let boxes: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let wanted = DynamicObject::new("one", &resource).data(json!({"spec": {"size": 1}}));
    boxes.create(&PostParams::default(), &wanted).await.unwrap();
    let status = json!({"apiVersion": "example.com/v1", "kind": "Box", "status": {"full": true}});
    let told = boxes
        .patch_status(
            "one",
            &PatchParams::apply("kube-rs"),
            &Patch::Apply(&status),
        )
        .await
        .unwrap();
    assert_eq!(told.data["status"]["full"], true);
    let partial: PartialObjectMeta<DynamicObject> = boxes.get_metadata("one").await.unwrap();
    assert_eq!(partial.name_any(), "one");
    let everything = Discovery::new(client).run().await.unwrap();
    assert!(everything.has_group("example.com") && everything.has_group("apps"));
}

/// What a watcher tells while a config map is made, changed and deleted.
async fn told(config: WatchConfig) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client());
    maps.create(&PostParams::default(), &config_map("before"))
        .await
        .unwrap();
    let mut events = watcher(maps.clone(), config.labels("app=a")).boxed();
    let mut told = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        let name = |map: &ConfigMap| map.name_any();
        told.push(match &event {
            Event::Init => "init".to_owned(),
            Event::InitApply(map) => format!("init {}", name(map)),
            Event::InitDone => "done".to_owned(),
            Event::Apply(map) => {
                format!("apply {} {}", name(map), map.data.as_ref().unwrap()["key"])
            }
            Event::Delete(map) => format!("delete {}", name(map)),
        });
        match event {
            Event::InitDone => {
                maps.create(&PostParams::default(), &config_map("after"))
                    .await
                    .unwrap();
            }
            Event::Apply(map) if map.data.as_ref().unwrap()["key"] == "1" => {
                let patch = Patch::Merge(json!({"data": {"key": "2"}}));
                maps.patch("after", &PatchParams::default(), &patch)
                    .await
                    .unwrap();
            }
            Event::Apply(_) => {
                let _ = maps
                    .delete("after", &DeleteParams::default())
                    .await
                    .unwrap();
            }
            Event::Delete(_) => break,
            _ => {}
        }
    }
    told
}

const TOLD: [&str; 6] = [
    "init",
    "init before",
    "done",
    "apply after 1",
    "apply after 2",
    "delete after",
];

#[tokio::test(start_paused = true)]
async fn a_watcher_that_lists_first() {
    assert_eq!(told(WatchConfig::default().page_size(1)).await, TOLD);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_streams_its_list() {
    assert_eq!(told(WatchConfig::default().streaming_lists()).await, TOLD);
}

#[tokio::test(start_paused = true)]
async fn metadata_only() {
    let client = client();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    accounts
        .create(
            &PostParams::default(),
            &object(json!({"metadata": {"name": "default"}})),
        )
        .await
        .unwrap();
    let pod = json!({"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}});
    pods.create(&PostParams::default(), &object(pod))
        .await
        .unwrap();
    let listed = pods.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = pods
        .patch_metadata("one", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    assert_eq!(patched.labels()["a"], "b");
    let partial: Api<PartialObjectMeta<Pod>> = Api::default_namespaced(client);
    for config in [
        WatchConfig::default(),
        WatchConfig::default().streaming_lists(),
    ] {
        let mut events = watcher(partial.clone(), config).applied_objects().boxed();
        assert_eq!(events.try_next().await.unwrap().unwrap().name_any(), "one");
    }
    let mut events = pods
        .watch_metadata(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    let first = events.try_next().await.unwrap();
    assert!(matches!(first, Some(WatchEvent::Added(pod)) if pod.name_any() == "one"));
}

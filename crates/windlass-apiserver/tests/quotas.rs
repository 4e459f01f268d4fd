//! Quotas hold whoever writes at the same time.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ResourceQuota};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Config, Identity};

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

async fn with_quota(hard: u32) -> (Client, Api<ResourceQuota>) {
    let server = ApiServer::new(Config::default());
    let client = Client::new(server.in_process(Identity::admin()), "default");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = object(json!({"metadata": {"name": "limited"}}));
    let options = PostParams::default();
    namespaces
        .create(&options, &namespace)
        .await
        .expect("a namespace");
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), "limited");
    let hard = json!({"configmaps": hard.to_string()});
    let quota = object(json!({"metadata": {"name": "few"}, "spec": {"hard": hard}}));
    quotas.create(&options, &quota).await.expect("a quota");
    let status = json!({"status": {"hard": hard, "used": {"configmaps": "0"}}});
    let patch = PatchParams::default();
    let status = Patch::Merge(&status);
    let status = quotas.patch_status("few", &patch, &status).await;
    status.expect("a status");
    (client, quotas)
}

fn used(quota: &ResourceQuota) -> String {
    let used = quota
        .status
        .as_ref()
        .and_then(|status| status.used.as_ref());
    used.map_or_else(String::new, |used| used["configmaps"].0.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn creates_at_the_same_time_never_exceed_a_quota() {
    let (client, quotas) = with_quota(20).await;
    // A controller that writes the status meanwhile makes some counts start over.
    let controller = {
        let quotas = quotas.clone();
        tokio::spawn(async move {
            for round in 0..100 {
                let note = json!({"metadata": {"labels": {"round": round.to_string()}}});
                let patch = PatchParams::default();
                let note = Patch::Merge(&note);
                let noted = quotas.patch("few", &patch, &note).await;
                noted.expect("a label");
            }
        })
    };
    let maps: Api<ConfigMap> = Api::namespaced(client, "limited");
    let creates = (0..100).map(|number| {
        let maps = maps.clone();
        tokio::spawn(async move {
            let map = object(json!({"metadata": {"name": format!("map-{number}")}}));
            maps.create(&PostParams::default(), &map).await
        })
    });
    let mut made = 0;
    for result in join_all(creates).await {
        match result.expect("no panic") {
            Ok(_) => made += 1,
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 403, "{status:?}");
                assert!(status.message.contains("exceeded quota: few"), "{status:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    controller.await.expect("the labels are set");
    assert_eq!(made, 20);
    let stored = maps.list(&ListParams::default()).await.expect("a list");
    assert_eq!(stored.items.len(), 20);
    assert_eq!(used(&quotas.get("few").await.expect("the quota")), "20");
}

#[tokio::test]
async fn a_dry_run_is_refused_and_not_counted() {
    let (client, quotas) = with_quota(1).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "limited");
    let map = |name: &str| -> ConfigMap { object(json!({"metadata": {"name": name}})) };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    for _ in 0..3 {
        maps.create(&dry, &map("a")).await.expect("there is room");
    }
    assert_eq!(used(&quotas.get("few").await.expect("the quota")), "0");
    let made = maps.create(&PostParams::default(), &map("a")).await;
    assert_eq!(made.expect("there is room").name_any(), "a");
    assert!(maps.create(&dry, &map("b")).await.is_err());
    assert_eq!(used(&quotas.get("few").await.expect("the quota")), "1");
}

//! The cluster without the framework: a controller of kube-runtime, on the plain client, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tokio::time::Instant;
use windlass_cluster::{TestCluster, hours, seconds};

use crate::operators::wish;

/// Applies a `ConfigMap` per Secret that counts the hours.
async fn reconcile(
    secret: Arc<Secret>,
    ctx: Arc<(Client, Instant)>,
) -> Result<Action, kube::Error> {
    let (client, begun) = &*ctx;
    let maps: Api<ConfigMap> =
        Api::namespaced(client.clone(), &secret.namespace().unwrap_or_default());
    let age = begun.elapsed().as_secs() / 3600;
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(secret.name_any()),
            owner_references: Some(secret.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some([("hours".to_owned(), age.to_string())].into()),
        ..ConfigMap::default()
    };
    let params = PatchParams::apply("plain").force();
    maps.patch(&secret.name_any(), &params, &Patch::Apply(&map))
        .await?;
    Ok(Action::requeue(hours(1)))
}

#[windlass_cluster::test]
async fn a_controller_of_kube_runtime_runs_for_a_day(cluster: TestCluster) {
    let client = cluster.client();
    let (secrets, maps) = (
        Api::<Secret>::all(client.clone()),
        Api::<ConfigMap>::all(client.clone()),
    );
    let run = Controller::new(secrets, watcher::Config::default())
        .owns(maps, watcher::Config::default())
        .run(
            reconcile,
            |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(5)),
            Arc::new((client, Instant::now())),
        )
        .for_each(|_| async {});
    let run = tokio::spawn(run);
    cluster.create(wish("one")).await;
    cluster.advance(seconds(1)).await;
    let hours_of = |map: ConfigMap| map.data.unwrap()["hours"].clone();
    assert_eq!(hours_of(cluster.get("one").await), "0");
    // What it owns is repaired.
    cluster.delete::<ConfigMap>("one").await;
    cluster.advance(seconds(1)).await;
    assert!(cluster.find::<ConfigMap>("one").await.is_some());
    cluster.advance(hours(24)).await;
    assert_eq!(hours_of(cluster.get("one").await), "24");
    // The cluster's own controllers collect what belonged to it.
    run.abort();
    cluster.delete::<Secret>("one").await;
    cluster.advance(seconds(1)).await;
    assert!(cluster.find::<ConfigMap>("one").await.is_none());
}

//! Blind writes over what an operator had not been shown.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use windlass_cluster::{TestCluster, seconds};

use crate::operators::{diligent, wish};

/// An operator whose watch is late, and the maps that it has made, as it sees them and as the user does.
async fn late(cluster: &TestCluster) -> (Api<ConfigMap>, Api<ConfigMap>) {
    cluster.start(diligent()).await;
    cluster.create(wish("one")).await;
    cluster.settle().await;
    cluster.delay_watch("diligent", "configmaps", seconds(10));
    let theirs = Api::default_namespaced(cluster.client_as("diligent"));
    (theirs, Api::default_namespaced(cluster.client()))
}

async fn change(maps: &Api<ConfigMap>) {
    let patch = Patch::Merge(json!({ "data": { "precious": "yes" } }));
    let params = PatchParams::default();
    maps.patch("one-first", &params, &patch).await.unwrap();
}

#[windlass_cluster::test]
async fn blind_deletion_of_what_has_changed_unseen_is_a_race(cluster: TestCluster) {
    let (theirs, ours) = late(&cluster).await;
    assert!(cluster.races().is_empty());
    change(&ours).await;
    let params = DeleteParams::default();
    theirs.delete("one-first", &params).await.unwrap();
    let races = cluster.races();
    assert_eq!(races.len(), 1, "{races:?}");
    assert_eq!(races[0].object, "configmaps one-first in default");
    assert!(races[0].deleted && races[0].unseen.contains(&"data.precious".to_owned()));
}

#[windlass_cluster::test]
async fn deletion_of_what_was_read_just_now_or_named_by_its_uid_is_no_race(cluster: TestCluster) {
    let (theirs, ours) = late(&cluster).await;
    change(&ours).await;
    let found = theirs.get("one-first").await.unwrap();
    change(&ours).await;
    let params = DeleteParams::default();
    theirs.delete("one-first", &params).await.unwrap();
    let second = theirs.get("one-second").await.unwrap();
    let patch = Patch::Merge(json!({ "data": { "precious": "yes" } }));
    let params = PatchParams::default();
    ours.patch("one-second", &params, &patch).await.unwrap();
    let named = DeleteParams::default().preconditions(Preconditions {
        uid: second.metadata.uid,
        ..Preconditions::default()
    });
    theirs.delete("one-second", &named).await.unwrap();
    assert!(found.data.is_some());
    assert!(cluster.races().is_empty(), "{:?}", cluster.races());
}

//! Versions of a kind, converted by the operator.

use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_cluster::TestCluster;

use crate::demo::{demo, operator, v1, v2};

#[windlass_cluster::test]
async fn every_version_shows_the_same_object(cluster: TestCluster) {
    cluster.start(operator()).await;
    let mut new = demo("one", Some(4));
    new.spec.config = Some("c".to_owned());
    cluster.create(new).await;
    let old = cluster.get::<v1::Demo>("one").await;
    assert_eq!(old.spec.size, Some(4));
    assert_eq!(old.annotations()["demo.example.com/config"], "c");
    let listed: Vec<_> = cluster.list::<v1::Demo>().await;
    assert_eq!(listed.len(), 1);
}

#[windlass_cluster::test]
async fn a_write_to_the_old_version_is_stored_in_the_new(cluster: TestCluster) {
    cluster.start(operator()).await;
    let old: Api<v1::Demo> = Api::namespaced(cluster.client(), "default");
    let made = old
        .create(
            &PostParams::default(),
            &v1::Demo::new("one", v1::DemoSpec { size: None }),
        )
        .await
        .expect("created");
    // The defaults of the new version reach the old one, by the webhook that asks for the new.
    assert_eq!(made.spec.size, Some(3));
    let patch = Patch::Merge(json!({"spec": {"size": 5}}));
    old.patch("one", &PatchParams::default(), &patch)
        .await
        .expect("patched");
    assert_eq!(cluster.get::<v2::Demo>("one").await.spec.replicas, Some(5));
}

#[windlass_cluster::test]
async fn what_cannot_be_converted_says_why(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(demo("unlucky", Some(13))).await;
    let old: Api<v1::Demo> = Api::namespaced(cluster.client(), "default");
    let refused = old.list(&ListParams::default()).await.expect_err("listed");
    assert!(
        refused.to_string().contains("13 cannot be said in v1"),
        "{refused}"
    );
}

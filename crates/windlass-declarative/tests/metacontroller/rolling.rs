//! Children that are updated one by one.

use std::sync::Arc;

use kube::{Api, core::DynamicObject};
use serde_json::json;
use windlass_cluster::{TestCluster, minutes};

use crate::hooks::{Hooks, Thing, composite, expected, maps, metacontroller, texts, thing};

const SYNC: &str = "http://hook/sync";

fn rolling(method: &str, checks: &serde_json::Value) -> serde_json::Value {
    json!({"childResources": [{
        "apiVersion": "v1", "resource": "configmaps",
        "updateStrategy": {"method": method, "statusChecks": {"conditions": checks}},
    }]})
}

async fn revisions(cluster: &TestCluster) -> Vec<DynamicObject> {
    let resource = kube::core::ApiResource {
        group: "metacontroller.k8s.io".into(),
        version: "v1alpha1".into(),
        api_version: "metacontroller.k8s.io/v1alpha1".into(),
        kind: "ControllerRevision".into(),
        plural: "controllerrevisions".into(),
    };
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
    api.list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items
}

async fn updated(cluster: &TestCluster) -> (String, String) {
    let status = cluster.get::<Thing>("t").await.status.unwrap();
    let updated = status
        .conditions
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "Updated")
        .unwrap();
    (updated["status"].clone(), updated["reason"].clone())
}

#[windlass_cluster::test]
async fn rollout_moves_all_children_when_they_are_well(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, maps);
    cluster.start(metacontroller(&hooks)).await;
    for method in ["RollingInPlace", "RollingRecreate"] {
        let name = method.to_lowercase();
        cluster
            .create(composite(&name, rolling(method, &json!([]))))
            .await;
        cluster.create(thing("t", &["a", "b", "c"])).await;
        cluster.settle().await;
        assert_eq!(
            texts(&cluster).await,
            expected(&[("a", "one"), ("b", "one"), ("c", "one")])
        );
        cluster
            .patch::<Thing>("t", json!({"spec": {"text": "two"}}))
            .await;
        cluster.settle().await;
        assert_eq!(
            texts(&cluster).await,
            expected(&[("a", "two"), ("b", "two"), ("c", "two")])
        );
        assert_eq!(
            updated(&cluster).await,
            ("True".into(), "OnLatestRevision".into())
        );
        let left = revisions(&cluster).await;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].data["children"][0]["names"], json!(["a", "b", "c"]));
        cluster.delete::<Thing>("t").await;
        cluster
            .delete::<windlass_declarative::metacontroller::CompositeController>(name.as_str())
            .await;
        cluster.settle().await;
        assert_eq!(revisions(&cluster).await.len(), 0);
    }
}

#[windlass_cluster::test]
async fn rollout_stops_at_a_child_that_is_not_well(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, maps);
    cluster.start(metacontroller(&hooks)).await;
    // A map never has a condition.
    let checks = json!([{"type": "Ready", "status": "True"}]);
    cluster
        .create(composite("maps", rolling("RollingInPlace", &checks)))
        .await;
    cluster.create(thing("t", &["c", "a", "b"])).await;
    cluster.settle().await;
    cluster
        .patch::<Thing>("t", json!({"spec": {"text": "two"}}))
        .await;
    cluster.settle().await;
    // The first one in the hook's order, and no other.
    assert_eq!(
        texts(&cluster).await,
        expected(&[("a", "one"), ("b", "one"), ("c", "two")])
    );
    assert_eq!(
        updated(&cluster).await,
        ("False".into(), "RolloutWaiting".into())
    );
    assert_eq!(revisions(&cluster).await.len(), 2);
    // Back to where it was.
    cluster
        .patch::<Thing>("t", json!({"spec": {"text": "one"}}))
        .await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await["a"], "one");
}

#[windlass_cluster::test]
async fn rollout_ends_alike_however_disturbed(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on(SYNC, maps);
    cluster.start(metacontroller(&hooks)).await;
    // How often a revision was written while children moved to it.
    cluster.do_not_compare(&["generation"]);
    let runs = cluster
        .ends_alike_however_disturbed(|cluster| async move {
            let rolling = rolling("RollingInPlace", &json!([]));
            cluster.create(composite("maps", rolling)).await;
            cluster.create(thing("t", &["a", "b"])).await;
            cluster.advance(minutes(1)).await;
            cluster
                .patch::<Thing>("t", json!({"spec": {"text": "two"}}))
                .await;
            cluster.advance(minutes(1)).await;
        })
        .await;
    assert!(runs > 6, "{runs}");
}

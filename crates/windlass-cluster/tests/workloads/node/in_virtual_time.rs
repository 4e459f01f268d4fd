//! Nodes that fall silent: Kubernetes waits fifty seconds, and their pods five minutes.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_cluster::TestCluster;

use super::{nodes, taints, until_taints};
use crate::daemonset::add_node;
use crate::scene::{Scene, idle};

#[windlass_cluster::test]
async fn a_silent_node_is_unreachable_and_its_pods_leave_after_five_minutes(cluster: TestCluster) {
    let scene = Scene::open(cluster.client(), "silent").await;
    let name = add_node(&scene, "a").await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    let renew = async || {
        let now = scene.now().await.replace('Z', ".000000Z");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name },
            "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now },
        });
        let params = PatchParams::apply("scenarios").force();
        leases
            .patch(&name, &params, &Patch::Apply(lease))
            .await
            .expect("a lease");
    };
    let mut spec = idle();
    spec["nodeName"] = json!(name);
    scene
        .create::<Pod>(json!({ "metadata": { "name": "web" }, "spec": spec }))
        .await;
    scene.make_ready("web").await;
    for _ in 0..6 {
        renew().await;
        cluster.advance(Duration::from_secs(30)).await;
    }
    let node = nodes(&scene).get(&name).await.unwrap();
    assert_eq!(taints(&node), [], "it talks");
    cluster.advance(Duration::from_secs(30)).await;
    let away = "node.kubernetes.io/unreachable";
    until_taints(
        &nodes(&scene),
        &name,
        &[(away, "NoExecute"), (away, "NoSchedule")],
    )
    .await;
    let node = nodes(&scene).get(&name).await.unwrap();
    let conditions = node.status.unwrap().conditions.unwrap();
    let ready = conditions.iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_deref()),
        ("Unknown", Some("NodeStatusUnknown"))
    );
    let web = scene.find::<Pod>("web").await.unwrap();
    let conditions = web.status.unwrap().conditions.unwrap();
    let ready = conditions.iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(
        ready.status, "False",
        "nobody sends anything to a pod that may be gone"
    );
    cluster.advance(Duration::from_secs(280)).await;
    assert!(scene.find::<Pod>("web").await.is_some());
    cluster.advance(Duration::from_secs(30)).await;
    assert!(scene.find::<Pod>("web").await.is_none());
}

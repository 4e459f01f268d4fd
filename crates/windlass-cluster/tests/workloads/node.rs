//! Nodes that are not well, and the pods on them.

mod in_virtual_time;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::daemonset::add_node;
use crate::scene::{Scene, idle, until};
use crate::stage::play;

fn nodes(scene: &Scene) -> Api<Node> {
    Api::all(scene.client.clone())
}

fn taints(node: &Node) -> Vec<(String, String)> {
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    let mut taints: Vec<_> = taints
        .map(|taint| (taint.key.clone(), taint.effect.clone()))
        .collect();
    taints.sort();
    taints
}

async fn until_taints(nodes: &Api<Node>, name: &str, wanted: &[(&str, &str)]) {
    let wanted: Vec<(String, String)> = wanted
        .iter()
        .map(|(key, effect)| ((*key).to_owned(), (*effect).to_owned()))
        .collect();
    let what = format!("tainted {wanted:?}");
    until(nodes, name, &what, |node: Option<&Node>| {
        node.is_some_and(|node| taints(node) == wanted)
    })
    .await;
}

async fn set_ready(nodes: &Api<Node>, name: &str, ready: &str) {
    let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
    let patched = nodes
        .patch_status(name, &PatchParams::default(), &Patch::Strategic(status))
        .await;
    patched.expect("a status");
}

#[test]
fn a_cordoned_node_is_tainted_until_it_is_not() {
    play("cordon", async |scene| {
        let name = add_node(scene, "a").await;
        let cordon =
            |cordoned: bool| Patch::Merge(json!({ "spec": { "unschedulable": cordoned } }));
        let params = PatchParams::default();
        nodes(scene)
            .patch(&name, &params, &cordon(true))
            .await
            .expect("a cordon");
        let tainted = ("node.kubernetes.io/unschedulable", "NoSchedule");
        until_taints(&nodes(scene), &name, &[tainted]).await;
        nodes(scene)
            .patch(&name, &params, &cordon(false))
            .await
            .expect("no cordon");
        until_taints(&nodes(scene), &name, &[]).await;
        nodes(scene)
            .delete(&name, &DeleteParams::default())
            .await
            .expect("a node that goes");
    });
}

#[test]
fn pods_leave_a_tainted_node_unless_they_tolerate_it() {
    play("evicted", async |scene| {
        let name = add_node(scene, "a").await;
        let pod = |pod: &str, tolerations: Value| {
            let mut spec = idle();
            spec["nodeName"] = json!(name);
            spec["tolerations"] = tolerations;
            json!({ "metadata": { "name": pod }, "spec": spec })
        };
        scene.create::<Pod>(pod("weak", json!([]))).await;
        let for_a_while = json!([{ "key": "fire", "operator": "Exists", "tolerationSeconds": 2 }]);
        scene.create::<Pod>(pod("patient", for_a_while)).await;
        scene
            .create::<Pod>(pod(
                "strong",
                json!([{ "key": "fire", "operator": "Exists" }]),
            ))
            .await;
        let fire = json!({ "spec": { "taints": [{ "key": "fire", "effect": "NoExecute" }] } });
        nodes(scene)
            .patch(&name, &PatchParams::default(), &Patch::Merge(fire))
            .await
            .expect("a taint");
        scene.until_gone::<Pod>("weak").await;
        assert!(scene.find::<Pod>("strong").await.is_some());
        scene.until_gone::<Pod>("patient").await;
        assert!(scene.find::<Pod>("strong").await.is_some());
        let told = format!("Marking for deletion Pod {}/weak", scene.namespace);
        scene
            .until_told("weak", "TaintManagerEviction", &told)
            .await;
        nodes(scene)
            .delete(&name, &DeleteParams::default())
            .await
            .expect("a node that goes");
    });
}

#[test]
fn a_node_that_is_not_ready_is_tainted_and_its_pods_are_not_ready_either() {
    play("not-ready", async |scene| {
        let name = add_node(scene, "a").await;
        let mut spec = idle();
        spec["nodeName"] = json!(name);
        scene
            .create::<Pod>(json!({ "metadata": { "name": "web" }, "spec": spec }))
            .await;
        scene.make_ready("web").await;
        until_taints(&nodes(scene), &name, &[]).await;
        // The controller has to have seen it ready: it looks every five seconds in Kubernetes.
        tokio::time::sleep(Duration::from_secs(6)).await;
        set_ready(&nodes(scene), &name, "False").await;
        let bad = "node.kubernetes.io/not-ready";
        until_taints(
            &nodes(scene),
            &name,
            &[(bad, "NoExecute"), (bad, "NoSchedule")],
        )
        .await;
        let is_ready = |pod: &Pod| {
            let conditions = pod
                .status
                .iter()
                .flat_map(|status| status.conditions.iter().flatten());
            conditions
                .into_iter()
                .any(|one| one.type_ == "Ready" && one.status == "True")
        };
        scene
            .until::<Pod>("web", "not ready", |pod| !is_ready(pod))
            .await;
        set_ready(&nodes(scene), &name, "True").await;
        until_taints(&nodes(scene), &name, &[]).await;
        assert!(
            scene.find::<Pod>("web").await.is_some(),
            "it tolerates that for five minutes"
        );
        nodes(scene)
            .delete(&name, &DeleteParams::default())
            .await
            .expect("a node that goes");
    });
}

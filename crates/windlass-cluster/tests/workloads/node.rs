//! Nodes that are not well, and the pods on them.

mod in_virtual_time;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::daemonset::{SCENE, add_node};
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
        .filter(|taint| taint.key != SCENE)
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
        let for_a_while = json!([{ "key": "fire", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2 }]);
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
fn a_node_that_is_not_ready_is_tainted() {
    play("not-ready", async |scene| {
        let name = add_node(scene, "a").await;
        let mut spec = idle();
        spec["nodeName"] = json!(name);
        scene
            .create::<Pod>(json!({ "metadata": { "name": "web" }, "spec": spec }))
            .await;
        until_taints(&nodes(scene), &name, &[]).await;
        set_ready(&nodes(scene), &name, "False").await;
        let bad = "node.kubernetes.io/not-ready";
        // Whether pods are sent away depends on how many other nodes are there.
        let is_tainted = |node: Option<&Node>| {
            let out = (bad.to_owned(), "NoSchedule".to_owned());
            node.is_some_and(|node| taints(node).contains(&out))
        };
        until(&nodes(scene), &name, "tainted", is_tainted).await;
        set_ready(&nodes(scene), &name, "True").await;
        until_taints(&nodes(scene), &name, &[]).await;
        let web = scene.find::<Pod>("web").await;
        assert!(web.is_some(), "it tolerates that for five minutes");
        let gone = nodes(scene).delete(&name, &DeleteParams::default()).await;
        gone.expect("a node that goes");
    });
}

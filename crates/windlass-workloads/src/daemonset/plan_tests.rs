use serde_json::{Value, json};

use super::*;
use crate::daemonset::template;
use crate::pod::testing::{at, bound, in_phase, ready};

fn set(strategy: Value, template: Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": {"name": "agent"},
        "spec": {"selector": {}, "template": {"spec": template}, "updateStrategy": strategy},
    }))
    .unwrap()
}

fn plain() -> Value {
    json!({"containers": []})
}

fn nodes(names: &[&str]) -> Vec<Node> {
    let node = |name: &&str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    names.iter().map(node).collect()
}

fn tainted(mut node: Node, effect: &str) -> Node {
    node.spec =
        serde_json::from_value(json!({"taints": [{"key": "k", "effect": effect}]})).unwrap();
    node
}

fn pod(name: &str, node: &str, hash: &str) -> Pod {
    let mut pod = crate::pod::testing::pod(name);
    pod.metadata.labels = Some(std::collections::BTreeMap::from([(
        template::HASH_LABEL.to_owned(),
        hash.to_owned(),
    )]));
    bound(pod, node)
}

fn well(name: &str, node: &str, hash: &str) -> Pod {
    ready(pod(name, node, hash), 0)
}

fn view<'a>(set: &'a DaemonSet, nodes: &'a [Node], pods: &'a [Pod]) -> View<'a> {
    View {
        set,
        nodes: nodes.iter().collect(),
        pods: pods.iter().collect(),
        hash: "new",
        now: at(100),
    }
}

fn names(pods: &[&Pod]) -> Vec<String> {
    pods.iter()
        .map(|pod| pod.metadata.name.clone().unwrap())
        .collect()
}

#[test]
fn every_node_that_wants_one_gets_a_pod() {
    let set = set(json!({}), plain());
    let mut nodes = nodes(&["a", "b", "c"]);
    nodes[1] = tainted(nodes[1].clone(), "NoSchedule");
    let plan = view(&set, &nodes, &[]).manage();
    assert_eq!(plan.create, ["a", "c"]);
    // One that is there stays where no new one may come, and goes where none may run.
    let pods = [
        well("b-1", "b", "new"),
        well("c-1", "c", "new"),
        well("c-2", "c", "new"),
    ];
    let plan = view(&set, &nodes, &pods).manage();
    assert_eq!(
        (plan.create, names(&plan.delete)),
        (vec!["a".to_owned()], vec!["c-2".to_owned()])
    );
    nodes[1] = tainted(nodes[1].clone(), "NoExecute");
    let plan = view(&set, &nodes, &pods).manage();
    assert_eq!(names(&plan.delete), ["b-1", "c-2"]);
}

#[test]
fn selectors_and_names_choose_nodes() {
    let mut two = nodes(&["a", "b"]);
    two[1].metadata.labels = Some(std::collections::BTreeMap::from([(
        "disk".to_owned(),
        "ssd".to_owned(),
    )]));
    let picky = set(
        json!({}),
        json!({"containers": [], "nodeSelector": {"disk": "ssd"}}),
    );
    assert_eq!(view(&picky, &two, &[]).manage().create, ["b"]);
    let fixed = set(json!({}), json!({"containers": [], "nodeName": "a"}));
    assert_eq!(view(&fixed, &two, &[]).manage().create, ["a"]);
}

#[test]
fn ended_pods_are_told_of_and_lost_ones_go() {
    let set = set(json!({}), plain());
    let nodes = nodes(&["a"]);
    let meant = template::pod(&set, "gone", "new");
    let mut lost = crate::pod::testing::pod("lost");
    lost.spec = meant.spec;
    let pods = [in_phase(pod("x", "a", "new"), "Failed"), lost];
    let plan = view(&set, &nodes, &pods).manage();
    assert_eq!(plan.failed, [("a".to_owned(), &pods[0])]);
    assert_eq!(names(&plan.delete), ["lost"]);
}

#[test]
fn a_rolling_update_replaces_what_is_no_loss_and_as_many_as_may_be_missing() {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    let set_of = set(strategy, plain());
    let nodes = nodes(&["a", "b", "c", "d"]);
    let pods = [
        well("a", "a", "old"),
        pod("b", "b", "old"),
        well("c", "c", "old"),
        well("d", "d", "old"),
    ];
    assert_eq!(
        names(&view(&set_of, &nodes, &pods).update().delete),
        ["b", "a"]
    );
    let pods = [
        pod("a", "a", "new"),
        pod("b", "b", "new"),
        well("c", "c", "old"),
        well("d", "d", "old"),
    ];
    assert!(view(&set_of, &nodes, &pods).update().is_empty());
    let on_delete = set(json!({"type": "OnDelete"}), plain());
    assert!(view(&on_delete, &nodes, &pods).update().is_empty());
}

#[test]
fn a_surge_creates_first_and_deletes_then() {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let set = set(strategy, plain());
    let nodes = nodes(&["a", "b"]);
    let pods = [well("a", "a", "old"), well("b", "b", "old")];
    let plan = view(&set, &nodes, &pods).update();
    assert_eq!((plan.create, plan.delete.len()), (vec!["a".to_owned()], 0));
    let pods = [
        well("a", "a", "old"),
        pod("a2", "a", "new"),
        well("b", "b", "old"),
    ];
    assert!(view(&set, &nodes, &pods).update().is_empty());
    assert!(view(&set, &nodes, &pods).manage().is_empty());
    let pods = [
        well("a", "a", "old"),
        well("a2", "a", "new"),
        well("b", "b", "old"),
    ];
    assert_eq!(names(&view(&set, &nodes, &pods).manage().delete), ["a"]);
    let plan = view(&set, &nodes, &pods).update();
    assert_eq!(
        (plan.create, names(&plan.delete)),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
}

#[test]
fn a_daemon_tolerates_what_is_wrong_with_its_node() {
    let mut spec = k8s_openapi::api::core::v1::PodSpec::default();
    template::tolerate(&mut spec);
    assert_eq!(spec.tolerations.as_ref().unwrap().len(), 6);
    spec.host_network = Some(true);
    template::tolerate(&mut spec);
    assert_eq!(spec.tolerations.unwrap().len(), 7);
}

use serde_json::{Value, json};

use super::*;
use crate::pod::testing::{bound, pod as named};

fn node(name: &str, more: Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "10"}},
    });
    merge(&mut node, &more);
    serde_json::from_value(node).unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn pod(name: &str, spec: Value) -> Pod {
    let mut pod = named(name);
    let mut with = json!({"containers": []});
    merge(&mut with, &spec);
    pod.spec = Some(serde_json::from_value(with).unwrap());
    pod.metadata.labels = Some([("app".to_owned(), name.to_owned())].into());
    pod
}

fn placed_on(pod: &Pod, nodes: &[Node], there: &[Pod]) -> String {
    let mut occupancy = Occupancy::default();
    for pod in there {
        occupancy.observe(pod);
    }
    let nodes: Vec<_> = nodes.iter().cloned().map(Arc::new).collect();
    let cluster = Cluster {
        nodes: &nodes,
        occupancy: &occupancy,
        namespaces: &[],
    };
    match place(pod, &cluster, &Volumes::default()) {
        Placement::Node(name) => name.to_owned(),
        Placement::Nowhere(why) => why,
    }
}

const HELPLESS: &str = "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";

#[test]
fn a_node_that_would_rather_have_others_comes_last() {
    let soft = json!({"spec": {"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}});
    let nodes = [node("a", soft.clone()), node("b", json!({}))];
    let there = [bound(named("x"), "b"), bound(named("y"), "b")];
    assert_eq!(placed_on(&pod("web", json!({})), &nodes, &there), "b");
    let bears = json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]});
    assert_eq!(placed_on(&pod("web", bears), &nodes, &there), "a");
    assert_eq!(placed_on(&pod("web", json!({})), &nodes[..1], &[]), "a");
}

#[test]
fn the_emptiest_node_takes_it() {
    let nodes = [
        node("a", json!({})),
        node("b", json!({})),
        node("c", json!({})),
    ];
    let there = [bound(named("x"), "a"), bound(named("y"), "b")];
    assert_eq!(placed_on(&pod("p", json!({})), &nodes, &there), "c");
    assert_eq!(placed_on(&pod("p", json!({})), &nodes, &[]), "a");
}

#[test]
fn says_why_no_node_takes_it() {
    let plain = pod("p", json!({}));
    assert_eq!(
        placed_on(&plain, &[], &[]),
        "no nodes available to schedule pods"
    );
    let cordoned = node("a", json!({"spec": {"unschedulable": true}}));
    assert_eq!(
        placed_on(&plain, std::slice::from_ref(&cordoned), &[]),
        format!("0/1 nodes are available: 1 node(s) were unschedulable. {HELPLESS}")
    );
    let tainted = node(
        "b",
        json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}),
    );
    let greedy = pod(
        "p",
        json!({"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "9", "memory": "9Gi"}}},
        ]}),
    );
    assert_eq!(
        placed_on(&greedy, &[cordoned, tainted, node("c", json!({}))], &[]),
        "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s), \
         1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/3 nodes are available: \
         1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    );
}

#[test]
fn labels_are_required_or_preferred() {
    let picky = pod("p", json!({"nodeSelector": {"disk": "ssd"}}));
    let ssd = node("b", json!({"metadata": {"labels": {"disk": "ssd"}}}));
    let nodes = [node("a", json!({})), ssd];
    assert_eq!(
        placed_on(&picky, &nodes[..1], &[]),
        format!(
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {HELPLESS}"
        )
    );
    assert_eq!(placed_on(&picky, &nodes, &[]), "b");
    let leaning = pod(
        "p",
        json!({"affinity": {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {
                "matchExpressions": [{"key": "disk", "operator": "Exists"}],
            }}],
        }}}),
    );
    assert_eq!(placed_on(&leaning, &nodes, &[bound(named("x"), "b")]), "b");
    assert_eq!(placed_on(&leaning, &nodes[..1], &[]), "a");
}

fn near(kind: &str, app: &str) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": app}},
    }]}}})
}

#[test]
fn neighbours_are_wanted_or_not() {
    let nodes = [node("a", json!({})), node("b", json!({}))];
    let web = bound(pod("web", json!({})), "b");
    let beside = pod("cache", near("podAffinity", "web"));
    assert_eq!(placed_on(&beside, &nodes, std::slice::from_ref(&web)), "b");
    assert!(placed_on(&beside, &nodes, &[]).contains("2 node(s) didn't match pod affinity rules"));
    let first = pod("web", near("podAffinity", "web"));
    assert_eq!(placed_on(&first, &nodes, &[]), "a", "the first of its kind");
    let apart = pod("web", near("podAntiAffinity", "web"));
    assert_eq!(placed_on(&apart, &nodes, std::slice::from_ref(&web)), "a");
    let told = placed_on(&apart, &nodes[1..], &[web]);
    assert!(
        told.contains("1 node(s) didn't match pod anti-affinity rules"),
        "{told}"
    );
    assert!(
        told.contains("1 No preemption victims found for incoming pod"),
        "{told}"
    );
    let shy = bound(pod("shy", near("podAntiAffinity", "p")), "a");
    let told = placed_on(&pod("p", json!({})), &nodes[..1], &[shy]);
    assert!(
        told.contains("1 node(s) didn't satisfy existing pods anti-affinity rules"),
        "{told}"
    );
}

#[test]
fn claims_have_to_be_there() {
    let missing = Volumes::of(&["data".to_owned()], &[], &[], &[]);
    let nodes = [Arc::new(node("a", json!({})))];
    let cluster = Cluster {
        nodes: &nodes,
        occupancy: &Occupancy::default(),
        namespaces: &[],
    };
    let told = place(&pod("p", json!({})), &cluster, &missing);
    let wanted =
        format!("0/1 nodes are available: persistentvolumeclaim \"data\" not found. {HELPLESS}");
    assert_eq!(told, Placement::Nowhere(wanted));
}

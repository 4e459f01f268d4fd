//! `DaemonSets`: a pod on every node that wants one. The nodes are the test's own, and nobody runs
//! their pods: what becomes of them says the test.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::scene::{Scene, image};
use crate::stage::play;

/// The label and the taint that say whose a node is.
pub(crate) const SCENE: &str = "scene";

/// A set for the nodes of one scene.
fn agent(scene: &Scene, more: Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "agent" },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": {
                "metadata": { "labels": { "app": "agent" } },
                "spec": {
                    "nodeSelector": { "scene": scene.namespace },
                    // Nobody binds them: what matters here is which are made.
                    "schedulerName": "nobody",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "main", "image": "a" }],
                },
            },
        },
    });
    if let Value::Object(more) = more {
        for (key, value) in more {
            set["spec"][key] = value;
        }
    }
    set
}

fn nodes(scene: &Scene) -> Api<Node> {
    Api::all(scene.client.clone())
}

/// What keeps the pods of other scenes away from a scene's nodes, where nobody runs them.
fn keep_away(scene: &Scene) -> Value {
    json!({ "key": SCENE, "value": scene.namespace, "effect": "PreferNoSchedule" })
}

/// A node of this scene, ready.
pub(crate) async fn add_node(scene: &Scene, name: &str) -> String {
    let name = format!("{}-{name}", scene.namespace);
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { SCENE: scene.namespace } },
        "spec": { "taints": [keep_away(scene)] },
    });
    let params = PatchParams::apply("scenarios").force();
    nodes(scene)
        .patch(&name, &params, &Patch::Apply(node))
        .await
        .expect("a node");
    let now = scene.now().await;
    let ready = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now,
    }] } });
    let params = PatchParams::default();
    nodes(scene)
        .patch_status(&name, &params, &Patch::Merge(ready))
        .await
        .expect("a ready node");
    set_taints(scene, &name, json!([])).await;
    name
}

async fn set_taints(scene: &Scene, node: &str, mut taints: Value) {
    if let Value::Array(taints) = &mut taints {
        taints.push(keep_away(scene));
    }
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    nodes(scene)
        .patch(node, &PatchParams::default(), &patch)
        .await
        .expect("taints");
}

async fn remove_nodes(scene: &Scene, names: &[String]) {
    for name in names {
        nodes(scene)
            .delete(name, &DeleteParams::default())
            .await
            .expect("a node that goes");
    }
}

/// The node that a pod is on or meant for.
fn node_of(pod: &Pod) -> String {
    let spec = pod.spec.as_ref().expect("a spec");
    if let Some(node) = &spec.node_name {
        return node.clone();
    }
    let affinity = spec
        .affinity
        .as_ref()
        .expect("an affinity")
        .node_affinity
        .as_ref();
    let required = affinity
        .expect("a node affinity")
        .required_during_scheduling_ignored_during_execution
        .as_ref();
    let fields = required.expect("a requirement").node_selector_terms[0]
        .match_fields
        .as_ref();
    let field = &fields.expect("a field")[0];
    assert_eq!(
        (field.key.as_str(), field.operator.as_str()),
        ("metadata.name", "In")
    );
    field.values.as_ref().expect("values")[0].clone()
}

/// Waits until exactly these nodes have a pod each.
async fn until_on(scene: &Scene, nodes: &[&String]) -> Vec<Pod> {
    let what = format!("pods on {nodes:?}");
    let are = |pods: &[Pod]| {
        let mut on: Vec<String> = pods.iter().map(node_of).collect();
        on.sort();
        on.iter().eq(nodes.iter().copied())
    };
    scene.until_all(&what, are).await
}

/// Binds a pod to the node it is meant for, as a scheduler does, and makes it ready.
async fn run(scene: &Scene, pod: &Pod) {
    if pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.is_none())
    {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": pod.name_any() },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node_of(pod) },
        });
        let bound: kube::Result<kube::core::Status> = scene
            .api::<Pod>()
            .create_subresource("binding", &pod.name_any(), &PostParams::default(), &binding)
            .await;
        bound.expect("a binding");
    }
    scene.make_ready(&pod.name_any()).await;
}

/// Waits, and has Kubernetes' own controller look at the set again meanwhile: it does not by itself
/// when a node goes, or is tainted against pods that may stay. Ours does.
async fn nudging<T>(scene: &Scene, wait: impl Future<Output = T>) -> T {
    if !crate::real::controllers_are_theirs() {
        return wait.await;
    }
    let mut wait = std::pin::pin!(wait);
    loop {
        let patch = json!({ "metadata": { "annotations": { "now": scene.now().await } } });
        scene.patch::<DaemonSet>("agent", patch).await;
        // It may not have heard of the node yet.
        if let Ok(done) = tokio::time::timeout(Duration::from_secs(1), &mut wait).await {
            return done;
        }
    }
}

fn counts(set: &DaemonSet) -> [i32; 6] {
    let status = set.status.clone().unwrap_or_default();
    [
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.number_available.unwrap_or(0),
        status.updated_number_scheduled.unwrap_or(0),
        status.number_misscheduled,
    ]
}

async fn until_counts(scene: &Scene, wanted: [i32; 6]) {
    let what = format!("at {wanted:?}");
    scene
        .until::<DaemonSet>("agent", &what, |set| counts(set) == wanted)
        .await;
}

#[test]
fn every_node_that_wants_one_gets_a_pod() {
    play("every-node", async |scene| {
        let one = add_node(scene, "a").await;
        let set = scene.create::<DaemonSet>(agent(scene, json!({}))).await;
        let pods = until_on(scene, &[&one]).await;
        let pod = &pods[0];
        assert!(pod.name_any().starts_with("agent-"));
        assert_eq!(pod.labels()["pod-template-generation"], "1");
        let [revision] = &scene.list::<ControllerRevision>().await[..] else {
            panic!("one revision")
        };
        let hash = &revision.labels()["controller-revision-hash"];
        assert_eq!(pod.labels()["controller-revision-hash"], *hash);
        assert_eq!(revision.name_any(), format!("agent-{hash}"));
        let [owner] = pod.owner_references() else {
            panic!("one owner")
        };
        assert_eq!(Some(&owner.uid), set.metadata.uid.as_ref());
        let tolerations = pod.spec.as_ref().unwrap().tolerations.clone().unwrap();
        let keys: Vec<_> = tolerations
            .iter()
            .filter_map(|one| one.key.as_deref())
            .collect();
        assert_eq!(
            keys,
            [
                "node.kubernetes.io/not-ready",
                "node.kubernetes.io/unreachable",
                "node.kubernetes.io/disk-pressure",
                "node.kubernetes.io/memory-pressure",
                "node.kubernetes.io/pid-pressure",
                "node.kubernetes.io/unschedulable",
            ]
        );
        until_counts(scene, [1, 1, 0, 0, 1, 0]).await;
        run(scene, pod).await;
        until_counts(scene, [1, 1, 1, 1, 1, 0]).await;
        scene
            .until_told(
                "agent",
                "SuccessfulCreate",
                &format!("Created pod: {}", pod.name_any()),
            )
            .await;

        let two = add_node(scene, "b").await;
        until_on(scene, &[&one, &two]).await;
        until_counts(scene, [2, 2, 1, 1, 2, 0]).await;
        remove_nodes(scene, &[two]).await;
        Box::pin(nudging(scene, until_on(scene, &[&one]))).await;
        until_counts(scene, [1, 1, 1, 1, 1, 0]).await;
        remove_nodes(scene, &[one]).await;
    });
}

#[test]
fn taints_keep_pods_out_and_send_them_away() {
    play("taints", async |scene| {
        let one = add_node(scene, "a").await;
        scene.create::<DaemonSet>(agent(scene, json!({}))).await;
        let pods = until_on(scene, &[&one]).await;
        run(scene, &pods[0]).await;
        until_counts(scene, [1, 1, 1, 1, 1, 0]).await;
        set_taints(
            scene,
            &one,
            json!([{ "key": "gpu", "effect": "NoSchedule" }]),
        )
        .await;
        Box::pin(nudging(scene, until_counts(scene, [0, 0, 0, 0, 0, 1]))).await;
        assert_eq!(scene.pods().await.len(), 1, "it may stay");
        set_taints(
            scene,
            &one,
            json!([{ "key": "gpu", "effect": "NoExecute" }]),
        )
        .await;
        until_on(scene, &[]).await;
        set_taints(scene, &one, json!([])).await;
        until_on(scene, &[&one]).await;
        remove_nodes(scene, &[one]).await;
    });
}

#[test]
fn a_template_is_rolled_out_node_by_node() {
    play("node-by-node", async |scene| {
        let (one, two) = (add_node(scene, "a").await, add_node(scene, "b").await);
        scene.create::<DaemonSet>(agent(scene, json!({}))).await;
        for pod in until_on(scene, &[&one, &two]).await {
            run(scene, &pod).await;
        }
        until_counts(scene, [2, 2, 2, 2, 2, 0]).await;
        scene.patch::<DaemonSet>("agent", image("b")).await;
        // One may be missing: the second waits for the first.
        until_counts(scene, [2, 2, 1, 1, 1, 0]).await;
        let is_new =
            |pod: &&Pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("b");
        let pods = until_on(scene, &[&one, &two]).await;
        run(scene, pods.iter().find(is_new).unwrap()).await;
        until_counts(scene, [2, 2, 1, 1, 2, 0]).await;
        let pods = until_on(scene, &[&one, &two]).await;
        assert_eq!(pods.iter().filter(is_new).count(), 2);
        for pod in pods {
            run(scene, &pod).await;
        }
        until_counts(scene, [2, 2, 2, 2, 2, 0]).await;
        let mut revisions: Vec<i64> = scene
            .list::<ControllerRevision>()
            .await
            .iter()
            .map(|one| one.revision)
            .collect();
        revisions.sort_unstable();
        assert_eq!(revisions, [1, 2]);
        remove_nodes(scene, &[one, two]).await;
    });
}

#[test]
fn a_surge_runs_the_new_beside_the_old() {
    play("surge", async |scene| {
        let one = add_node(scene, "a").await;
        let strategy = json!({ "updateStrategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } });
        scene.create::<DaemonSet>(agent(scene, strategy)).await;
        let old = until_on(scene, &[&one]).await.remove(0);
        run(scene, &old).await;
        until_counts(scene, [1, 1, 1, 1, 1, 0]).await;
        scene.patch::<DaemonSet>("agent", image("b")).await;
        let pods = until_on(scene, &[&one, &one]).await;
        let new = pods.iter().find(|pod| pod.uid() != old.uid()).unwrap();
        run(scene, new).await;
        let pods = until_on(scene, &[&one]).await;
        assert_eq!(pods[0].uid(), new.uid());
        remove_nodes(scene, &[one]).await;
    });
}

#[test]
fn on_delete_waits_until_somebody_deletes() {
    play("on-delete", async |scene| {
        let one = add_node(scene, "a").await;
        let strategy = json!({ "updateStrategy": { "type": "OnDelete" } });
        scene.create::<DaemonSet>(agent(scene, strategy)).await;
        let old = until_on(scene, &[&one]).await.remove(0);
        run(scene, &old).await;
        until_counts(scene, [1, 1, 1, 1, 1, 0]).await;
        scene.patch::<DaemonSet>("agent", image("b")).await;
        until_counts(scene, [1, 1, 1, 1, 0, 0]).await;
        scene
            .delete::<Pod>(&old.name_any(), &DeleteParams::default())
            .await;
        until_counts(scene, [1, 1, 0, 0, 1, 0]).await;
        remove_nodes(scene, &[one]).await;
    });
}

#[test]
fn an_ended_pod_is_replaced() {
    play("ended", async |scene| {
        let one = add_node(scene, "a").await;
        scene.create::<DaemonSet>(agent(scene, json!({}))).await;
        let first = until_on(scene, &[&one]).await.remove(0);
        run(scene, &first).await;
        scene.end(&first.name_any(), 1).await;
        let found = format!(
            "Found failed daemon pod {}/{}",
            scene.namespace,
            first.name_any()
        );
        let told = format!("{found} on node {one}, will try to kill it");
        scene.until_told("agent", "FailedDaemonPod", &told).await;
        let is_new = |pods: &[Pod]| pods.len() == 1 && pods[0].uid() != first.uid();
        scene.until_all::<Pod>("replaced", is_new).await;
        remove_nodes(scene, &[one]).await;
    });
}

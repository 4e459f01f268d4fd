//! Pods find a node.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::stage::play;

#[test]
fn a_pod_that_fits_nowhere_is_told_why_and_bound_once_a_node_fits() {
    play("fits-nowhere", async |scene| {
        let wanted = json!({ "scene": scene.namespace });
        scene
            .create::<Pod>(json!({
                "metadata": { "name": "picky" },
                "spec": {
                    "nodeSelector": wanted,
                    // What is wrong with the nodes of other scenes is not ours to say, either.
                    "tolerations": [{ "operator": "Exists" }],
                    "containers": [{ "name": "main", "image": "a" }],
                },
            }))
            .await;
        // Other scenes have nodes of their own, so how many there are is not ours to say.
        let is_told = |pod: &Pod| {
            let told: Vec<String> = refusal(pod)
                .split(' ')
                .map(|word| {
                    if word.starts_with(|c: char| c.is_ascii_digit()) {
                        "#"
                    } else {
                        word
                    }
                })
                .map(str::to_owned)
                .collect();
            told.join(" ")
                == "# nodes are available: # node(s) didn't match Pod's node affinity/selector. \
                    no new claims to deallocate, preemption: # nodes are available: \
                    # Preemption is not helpful for scheduling."
        };
        let pod = scene.until::<Pod>("picky", "refused", is_told).await;
        assert_eq!(pod.spec.unwrap().node_name, None);
        let node = crate::daemonset::add_node(scene, "late").await;
        let pod = scene.until::<Pod>("picky", "bound", is_bound).await;
        assert_eq!(pod.spec.unwrap().node_name, Some(node.clone()));
        let nodes: Api<Node> = Api::all(scene.client.clone());
        nodes
            .delete(&node, &DeleteParams::default())
            .await
            .expect("a node that goes");
    });
}

#[test]
fn a_pod_for_another_scheduler_is_left_alone() {
    play("another-scheduler", async |scene| {
        let pod = |name: &str, scheduler: &str| {
            json!({
                "metadata": { "name": name },
                "spec": {
                    "schedulerName": scheduler,
                    "containers": [{ "name": "main", "image": "a" }],
                },
            })
        };
        scene.create::<Pod>(pod("theirs", "another")).await;
        scene.create::<Pod>(pod("ours", "default-scheduler")).await;
        scene.until::<Pod>("ours", "bound", is_bound).await;
        let theirs = scene.find::<Pod>("theirs").await.unwrap();
        assert!(!is_bound(&theirs));
        assert_eq!(
            theirs.status.unwrap().conditions,
            None,
            "not even told that it fits nowhere"
        );
    });
}

/// What a pod was told about finding no node.
fn refusal(pod: &Pod) -> &str {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut refused = conditions.filter(|one| one.type_ == "PodScheduled" && one.status == "False");
    refused
        .next()
        .and_then(|one| one.message.as_deref())
        .unwrap_or_default()
}

fn is_bound(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.is_some_and(|spec| spec.node_name.is_some())
}

/// A pod that asks for so much memory, and more.
#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn asking(name: &str, memory: &str, more: serde_json::Value) -> serde_json::Value {
    let mut pod = json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{
            "name": "main", "image": "a", "resources": { "requests": { "memory": memory } },
        }] },
    });
    for (key, value) in more.as_object().expect("more") {
        pod["spec"][key] = value.clone();
    }
    pod
}

#[test]
fn a_pod_waits_for_room_and_gets_it_when_another_leaves() {
    play("room", async |scene| {
        // A node of its own, so that scenes do not take each other's room.
        let node = crate::daemonset::add_node(scene, "small").await;
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let capacity = json!({ "status": {
            "capacity": { "memory": "1Gi", "cpu": "4", "pods": "10" },
            "allocatable": { "memory": "1Gi", "cpu": "4", "pods": "10" },
        } });
        let params = PatchParams::default();
        nodes
            .patch_status(&node, &params, &Patch::Merge(capacity))
            .await
            .expect("capacity");
        let here = json!({ "nodeSelector": { "scene": scene.namespace } });
        scene
            .create::<Pod>(asking("first", "700Mi", here.clone()))
            .await;
        scene.until::<Pod>("first", "bound", is_bound).await;
        scene.create::<Pod>(asking("second", "700Mi", here)).await;
        let refused = |pod: &Pod| refusal(pod).contains("1 Insufficient memory");
        let second = scene.until::<Pod>("second", "refused", refused).await;
        let told = refusal(&second).to_owned();
        assert!(
            told.contains("1 No preemption victims found for incoming pod"),
            "{told}"
        );
        scene.until_told("second", "FailedScheduling", &told).await;
        let now = DeleteParams::default().grace_period(0);
        scene.delete::<Pod>("first", &now).await;
        scene.until::<Pod>("second", "bound", is_bound).await;
        nodes
            .delete(&node, &DeleteParams::default())
            .await
            .expect("a node that goes");
    });
}

#[test]
fn pods_keep_apart_and_stay_together() {
    play("neighbours", async |scene| {
        let one = crate::daemonset::add_node(scene, "one").await;
        let two = crate::daemonset::add_node(scene, "two").await;
        let nodes: Api<Node> = Api::all(scene.client.clone());
        for node in [&one, &two] {
            let room = json!({
                "status": { "allocatable": { "memory": "1Gi", "cpu": "4", "pods": "10" } },
            });
            let params = PatchParams::default();
            nodes
                .patch_status(node, &params, &Patch::Merge(room))
                .await
                .expect("room");
            let label = json!({ "metadata": { "labels": { "kubernetes.io/hostname": node } } });
            nodes
                .patch(node, &params, &Patch::Merge(label))
                .await
                .expect("a label");
        }
        let near = |kind: &str, app: &str| {
            json!({
                "nodeSelector": { "scene": scene.namespace },
                "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": { "matchLabels": { "app": app } },
                }] } },
            })
        };
        let node_of = |pod: Pod| pod.spec.unwrap().node_name.unwrap();
        scene
            .create::<Pod>(asking("web", "1Mi", near("podAntiAffinity", "rival")))
            .await;
        let web = node_of(scene.until::<Pod>("web", "bound", is_bound).await);
        scene
            .create::<Pod>(asking("friend", "1Mi", near("podAffinity", "web")))
            .await;
        let friend = node_of(scene.until::<Pod>("friend", "bound", is_bound).await);
        assert_eq!(friend, web);
        scene
            .create::<Pod>(asking("rival", "1Mi", near("podAntiAffinity", "friend")))
            .await;
        let rival = node_of(scene.until::<Pod>("rival", "bound", is_bound).await);
        assert_ne!(rival, web);
        for node in [one, two] {
            nodes
                .delete(&node, &DeleteParams::default())
                .await
                .expect("a node that goes");
        }
    });
}

#[test]
fn a_claim_that_does_not_exist_is_told_of() {
    play("no-claim", async |scene| {
        let volumes = json!({ "volumes": [
            { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
        ] });
        scene.create::<Pod>(asking("reader", "1Mi", volumes)).await;
        let missing = "persistentvolumeclaim \"data\" not found";
        let refused = |pod: &Pod| refusal(pod).contains(missing);
        scene.until::<Pod>("reader", "refused", refused).await;
    });
}

//! Pods find a node.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
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
                    "containers": [{ "name": "main", "image": "a" }],
                },
            }))
            .await;
        let message =
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
        let pod = scene
            .until::<Pod>("picky", "refused", |pod| {
                let conditions = pod
                    .status
                    .iter()
                    .flat_map(|status| status.conditions.iter().flatten());
                conditions.into_iter().any(|condition| {
                    condition.type_ == "PodScheduled"
                        && condition.status == "False"
                        && condition.reason.as_deref() == Some("Unschedulable")
                        && condition.message.as_deref() == Some(message)
                })
            })
            .await;
        assert_eq!(pod.spec.unwrap().node_name, None);

        let nodes: Api<Node> = Api::all(scene.client.clone());
        let [node] = &nodes.list(&ListParams::default()).await.unwrap().items[..] else {
            panic!("one node")
        };
        let label = json!({ "metadata": { "labels": wanted } });
        nodes
            .patch(
                &node.name_any(),
                &PatchParams::default(),
                &Patch::Merge(label),
            )
            .await
            .unwrap();
        let pod = scene
            .until::<Pod>("picky", "bound", |pod| {
                pod.spec
                    .as_ref()
                    .is_some_and(|spec| spec.node_name.is_some())
            })
            .await;
        assert_eq!(pod.spec.unwrap().node_name, Some(node.name_any()));
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
        let is_bound = |pod: &Pod| {
            pod.spec
                .as_ref()
                .is_some_and(|spec| spec.node_name.is_some())
        };
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

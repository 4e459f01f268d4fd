//! What is told of a pod follows its state.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use super::{
    addresses, endpoints, node, pod, report, running, service, told, until_endpoints, until_slice,
};
use crate::stage::play;

const READY: [bool; 3] = [true, true, false];
const UNREADY: [bool; 3] = [false, false, false];

#[test]
fn a_pod_is_told_with_where_it_is() {
    play("endpoint", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        let named = json!({ "hostname": "one", "subdomain": "web" });
        let created = scene.create::<Pod>(pod(scene, "a", named)).await;
        report(scene, "a", "10.1.0.1", true).await;
        let slice = until_slice(scene, "told", |slice| told(slice) == [("10.1.0.1", READY)]).await;
        let [endpoint] = endpoints(&slice) else {
            panic!("one endpoint")
        };
        assert_eq!(endpoint.hostname.as_deref(), Some("one"));
        assert_eq!(endpoint.node_name.as_deref(), Some(&*scene.namespace));
        assert_eq!(endpoint.zone.as_deref(), Some("north"));
        assert_eq!(endpoint.hints, None);
        let reference = json!({
            "kind": "Pod", "name": "a", "namespace": scene.namespace, "uid": created.metadata.uid,
        });
        assert_eq!(json!(endpoint.target_ref), reference);
        let told = until_endpoints(scene, "told", |told| addresses(told).0 == ["10.1.0.1"]).await;
        assert_eq!(
            json!(told.subsets),
            json!([{
                "addresses": [{
                    "ip": "10.1.0.1", "hostname": "one", "nodeName": scene.namespace,
                    "targetRef": reference,
                }],
                "ports": [{ "port": 8080, "protocol": "TCP" }],
            }])
        );
    });
}

#[test]
fn a_pod_that_is_not_ready_is_told_as_such() {
    play("unready", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        running(scene, "a", "10.1.0.1", false).await;
        running(scene, "b", "10.1.0.2", true).await;
        let both = [("10.1.0.1", UNREADY), ("10.1.0.2", READY)];
        until_slice(scene, "told", |slice| told(slice) == both).await;
        until_endpoints(scene, "told", |told| {
            addresses(told) == (vec!["10.1.0.2"], vec!["10.1.0.1"])
        })
        .await;
        report(scene, "a", "10.1.0.1", true).await;
        let both = [("10.1.0.1", READY), ("10.1.0.2", READY)];
        until_slice(scene, "ready", |slice| told(slice) == both).await;
        until_endpoints(scene, "ready", |told| {
            addresses(told) == (vec!["10.1.0.1", "10.1.0.2"], vec![])
        })
        .await;
    });
}

#[test]
fn a_service_may_want_pods_that_are_not_ready() {
    play("published", async |scene| {
        node(scene).await;
        service(scene, json!({ "publishNotReadyAddresses": true })).await;
        running(scene, "a", "10.1.0.1", false).await;
        let wanted = [("10.1.0.1", [true, false, false])];
        until_slice(scene, "told", |slice| told(slice) == wanted).await;
        until_endpoints(scene, "told", |told| addresses(told).0 == ["10.1.0.1"]).await;
    });
}

#[test]
fn a_pod_that_is_going_serves_and_is_not_ready() {
    play("going", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        running(scene, "a", "10.1.0.1", true).await;
        until_slice(scene, "told", |slice| told(slice) == [("10.1.0.1", READY)]).await;
        let slowly = DeleteParams::default().grace_period(300);
        scene.delete::<Pod>("a", &slowly).await;
        let going = [("10.1.0.1", [false, true, true])];
        until_slice(scene, "going", |slice| told(slice) == going).await;
        until_endpoints(scene, "without it", |told| {
            addresses(told) == (vec![], vec![])
        })
        .await;
        let now = DeleteParams::default().grace_period(0);
        scene.delete::<Pod>("a", &now).await;
        until_slice(scene, "empty", |slice| told(slice).is_empty()).await;
    });
}

#[test]
fn a_pod_that_has_ended_or_lost_its_label_is_none() {
    play("ended", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        for (name, ip) in [("a", "10.1.0.1"), ("b", "10.1.0.2"), ("c", "10.1.0.3")] {
            running(scene, name, ip, true).await;
        }
        until_slice(scene, "told", |slice| told(slice).len() == 3).await;
        let unlabelled = json!({ "metadata": { "labels": { "app": null } } });
        scene.patch::<Pod>("a", unlabelled).await;
        let unready = json!([{ "type": "Ready", "status": "False" }]);
        let ended = json!({ "status": { "phase": "Failed", "conditions": unready } });
        let pods = scene.api::<Pod>();
        let params = kube::api::PatchParams::default();
        let ended = kube::api::Patch::Merge(ended);
        let patched = pods.patch_status("b", &params, &ended).await;
        patched.expect("a pod that has ended");
        until_slice(scene, "left", |slice| told(slice) == [("10.1.0.3", READY)]).await;
        until_endpoints(scene, "left", |told| {
            addresses(told) == (vec!["10.1.0.3"], vec![])
        })
        .await;
    });
}

#[test]
fn a_pod_on_a_node_that_nobody_knows_waits_for_it() {
    play("unknown-node", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        let elsewhere = format!("{}-elsewhere", scene.namespace);
        let away = json!({ "nodeName": elsewhere });
        scene.create::<Pod>(pod(scene, "a", away)).await;
        report(scene, "a", "10.1.0.1", true).await;
        running(scene, "b", "10.1.0.2", true).await;
        until_slice(scene, "told", |slice| told(slice) == [("10.1.0.2", READY)]).await;
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let known = json!({ "metadata": { "name": elsewhere } });
        let known = serde_json::from_value(known).expect("a node");
        let created = nodes.create(&PostParams::default(), &known).await;
        created.expect("a new node");
        let both = [("10.1.0.1", READY), ("10.1.0.2", READY)];
        until_slice(scene, "both", |slice| told(slice) == both).await;
    });
}

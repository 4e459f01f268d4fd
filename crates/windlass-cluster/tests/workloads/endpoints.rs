//! Services and what stands behind them.
//!
//! The pods here are on a node that nobody runs: each scenario says itself what they do.

mod placing;
mod service;
mod state;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::scene::Scene;

const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The node of a scenario.
async fn node(scene: &Scene) {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let labels = json!({ "topology.kubernetes.io/zone": "north" });
    let node = json!({ "metadata": { "name": scene.namespace, "labels": labels } });
    let node = serde_json::from_value(node).expect("a node");
    let created = nodes.create(&PostParams::default(), &node).await;
    created.expect("a new node");
}

/// The Service `web` on port 80, changed as given.
async fn service(scene: &Scene, changes: Value) -> Service {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "app": "web" },
            "ports": [{ "port": 80, "targetPort": 8080 }],
        },
    });
    let spec = service["spec"].as_object_mut().expect("a spec");
    for (key, value) in changes.as_object().expect("changes") {
        spec.insert(key.clone(), value.clone());
    }
    scene.create(service).await
}

#[allow(clippy::needless_pass_by_value, reason = "callers make it on the spot")]
fn pod(scene: &Scene, name: &str, changes: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": {
            "nodeName": scene.namespace,
            "containers": [{ "name": "main", "image": "web" }],
        },
    });
    let spec = pod["spec"].as_object_mut().expect("a spec");
    for (key, value) in changes.as_object().expect("changes") {
        spec.insert(key.clone(), value.clone());
    }
    pod
}

/// Says of a pod where it is, and whether it is ready.
async fn report(scene: &Scene, name: &str, ip: &str, ready: bool) {
    let ready = if ready { "True" } else { "False" };
    let status = json!({ "status": {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-02T03:04:05Z" }],
    } });
    let params = PatchParams::default();
    let pods = scene.api::<Pod>();
    let patched = pods
        .patch_status(name, &params, &Patch::Merge(status))
        .await;
    patched.unwrap_or_else(|error| panic!("cannot report {name}: {error}"));
}

/// A pod behind the Service.
async fn running(scene: &Scene, name: &str, ip: &str, ready: bool) {
    scene.create::<Pod>(pod(scene, name, json!({}))).await;
    report(scene, name, ip, ready).await;
}

/// Many ready pods.
async fn many(scene: &Scene, numbers: std::ops::Range<usize>) {
    let all = numbers.map(|number| async move {
        let ip = format!("10.1.{}.{}", number / 200, number % 200 + 1);
        running(scene, &format!("pod-{number:03}"), &ip, true).await;
    });
    join_all(all).await;
}

/// Waits until the slices are as expected.
async fn until_slices(
    scene: &Scene,
    what: &str,
    are: impl Fn(&[EndpointSlice]) -> bool,
) -> Vec<EndpointSlice> {
    scene.until_all(what, are).await
}

/// Waits until there is one slice, as expected.
async fn until_slice(
    scene: &Scene,
    what: &str,
    is: impl Fn(&EndpointSlice) -> bool,
) -> EndpointSlice {
    let slices = until_slices(scene, what, |slices| matches!(slices, [only] if is(only)));
    slices.await.remove(0)
}

async fn until_endpoints(scene: &Scene, what: &str, is: impl Fn(&Endpoints) -> bool) -> Endpoints {
    scene.until("web", what, is).await
}

fn endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

/// Each address, and whether it is ready, serving, terminating.
fn told(slice: &EndpointSlice) -> Vec<(&str, [bool; 3])> {
    let mut told: Vec<_> = endpoints(slice)
        .iter()
        .map(|endpoint| {
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            let conditions = [conditions.ready, conditions.serving, conditions.terminating];
            (
                endpoint.addresses[0].as_str(),
                conditions.map(|one| one == Some(true)),
            )
        })
        .collect();
    told.sort_unstable();
    told
}

/// The addresses of Endpoints: the ready ones, and those that are not.
fn addresses(endpoints: &Endpoints) -> (Vec<&str>, Vec<&str>) {
    let subsets = || endpoints.subsets.iter().flatten();
    let ready = subsets().flat_map(|subset| subset.addresses.iter().flatten());
    let unready = subsets().flat_map(|subset| subset.not_ready_addresses.iter().flatten());
    (
        ready.map(|address| address.ip.as_str()).collect(),
        unready.map(|address| address.ip.as_str()).collect(),
    )
}

fn label<'a, K: kube::Resource>(object: &'a K, key: &str) -> Option<&'a str> {
    object.labels().get(key).map(String::as_str)
}

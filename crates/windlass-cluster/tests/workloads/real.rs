//! The real kube-apiserver as a stage: controllers and a stand-in for a node beside it.
//!
//! The controllers are ours, unless [`CONTROLLERS`] says that Kubernetes' own run already. Tests
//! run side by side, and two of the same controllers would fight, so one thread of this process
//! runs ours for all tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::runtime::Builder;
use windlass::testing::Environment;
use windlass_workloads::WorkloadsConfig;

use crate::scene::{BROKEN, Scene};

/// The environment variable that says, by `theirs`, that kube-controller-manager runs.
const CONTROLLERS: &str = "WINDLASS_REAL_CONTROLLERS";
/// The name of the only node.
const NODE: &str = "only";

/// Whether the controllers are Kubernetes' own.
pub(crate) fn controllers_are_theirs() -> bool {
    std::env::var_os(CONTROLLERS).is_some_and(|whose| whose == "theirs")
}

/// Plays a scenario on the API server of this kubeconfig.
pub(crate) fn play(kubeconfig: &Path, name: &str, scenario: impl AsyncFnOnce(&Scene)) {
    /// The API servers that have their controllers.
    static ATTENDED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    {
        let mut attended = ATTENDED.lock().unwrap_or_else(PoisonError::into_inner);
        if attended.insert(kubeconfig.to_owned()) {
            attend(kubeconfig.to_owned());
        }
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let scene = Scene::open(connect(kubeconfig).await, name).await;
        scenario(&scene).await;
    });
}

async fn connect(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a configuration");
    Client::try_from(config).expect("a client")
}

/// Runs controllers and node until the process ends, in a thread of their own; returns when they have begun.
fn attend(kubeconfig: PathBuf) {
    let (begun, has_begun) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let client = connect(&kubeconfig).await;
            let theirs = controllers_are_theirs();
            let ours = (!theirs).then(|| {
                let workloads = windlass_workloads::operator(WorkloadsConfig {
                    root_ca: Some("a certificate".to_owned()),
                    ..WorkloadsConfig::default()
                });
                workloads.start(client.clone(), Environment::default())
            });
            if let Some(ours) = &ours {
                ours.synced().await;
            }
            register(&client).await;
            begun.send(()).expect("somebody waits");
            // There is no scheduler among their controllers.
            run_pods(client, theirs).await;
        });
    });
    has_begun.recv().expect("controllers and node");
}

/// Makes the node known.
async fn register(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply("scenarios").force();
    // Kubernetes taints a new node until somebody says that it is ready.
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE } });
    nodes
        .patch(NODE, &params, &Patch::Apply(node))
        .await
        .expect("a node");
    let now = jiff::Timestamp::now().to_string();
    let ready = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now,
    }] } });
    let params = PatchParams::default();
    nodes
        .patch_status(NODE, &params, &Patch::Merge(ready))
        .await
        .expect("a ready node");
    let untaint = json!({ "spec": { "taints": null } });
    nodes
        .patch(NODE, &params, &Patch::Merge(untaint))
        .await
        .expect("a node without taints");
}

/// Does nothing but report: bound pods become ready, unless they are broken, and deleted ones go.
async fn run_pods(client: Client, binds: bool) {
    let pods: Api<Pod> = Api::all(client.clone());
    let events = watcher(pods, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events.applied_objects());
    while let Some(pod) = events.next().await {
        let Ok(pod) = pod else { continue };
        let spec = pod.spec.as_ref();
        match spec.and_then(|spec| spec.node_name.as_deref()) {
            Some(NODE) => report(&client, &pod).await,
            None if binds && pod.metadata.deletion_timestamp.is_none() && !is_meant(&pod) => {
                bind(&client, &pod).await;
            }
            _ => {}
        }
    }
}

/// Whether a pod is meant for certain nodes, as those of daemons are: its scene binds it.
fn is_meant(pod: &Pod) -> bool {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    affinity.is_some_and(|nodes| {
        let required = &nodes.required_during_scheduling_ignored_during_execution;
        required.is_some()
    })
}

async fn bind(client: &Client, pod: &Pod) {
    let name = pod.name_any();
    let namespace = pod.namespace().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": name },
        "target": { "apiVersion": "v1", "kind": "Node", "name": NODE },
    });
    // It may be gone or bound already: its next change tells.
    let bound: kube::Result<kube::core::Status> = pods
        .create_subresource("binding", &name, &PostParams::default(), &binding)
        .await;
    drop(bound);
}

async fn report(client: &Client, pod: &Pod) {
    let name = pod.name_any();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let uid = pod.uid();
    if pod.metadata.deletion_timestamp.is_some() {
        // It may be gone already, and another have its name.
        let itself = Preconditions {
            uid,
            resource_version: None,
        };
        let now = DeleteParams::default().grace_period(0);
        let _ = pods.delete(&name, &now.preconditions(itself)).await;
        return;
    }
    let is_broken = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .any(|container| container.image.as_deref() == Some(BROKEN));
    let status = if is_broken { "False" } else { "True" };
    let is_known = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == status);
    if !is_known {
        let now = jiff::Timestamp::now().to_string();
        let conditions = [json!({ "type": "Ready", "status": status, "lastTransitionTime": now })];
        let ready = json!({
            "metadata": { "uid": uid },
            "status": { "phase": "Running", "conditions": conditions },
        });
        let ready = Patch::Strategic(ready);
        let _ = pods
            .patch_status(&name, &PatchParams::default(), &ready)
            .await;
    }
}

//! A node that does nothing but report: bound pods become ready, deleted ones go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// The node; gone when dropped.
pub(crate) struct Kubelet {
    task: JoinHandle<()>,
    /// Pods with this image never become ready.
    broken: Arc<Mutex<Option<String>>>,
    /// For each namespace the most pods, and the most images, that ever ran at once.
    pub(crate) seen: Arc<Mutex<Vec<(String, usize, usize)>>>,
}

impl Kubelet {
    pub(crate) fn break_image(&self, image: &str) {
        *self.broken.lock().unwrap() = Some(image.to_owned());
    }

    /// The most pods, and the most images, that ran at once in a namespace.
    pub(crate) fn most(&self, namespace: &str) -> (usize, usize) {
        let seen = self.seen.lock().unwrap();
        let of = |pick: fn(&(String, usize, usize)) -> usize| {
            seen.iter()
                .filter(|(ns, _, _)| ns == namespace)
                .map(pick)
                .max()
                .unwrap_or(0)
        };
        (of(|seen| seen.1), of(|seen| seen.2))
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn start(cluster: &Cluster) -> Kubelet {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let mut node = Node::default();
    node.metadata.name = Some("only".to_owned());
    nodes
        .create(&PostParams::default(), &node)
        .await
        .expect("a new node");
    let now = "2026-01-01T00:00:00Z";
    let ready = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now,
    }] } });
    let params = PatchParams::default();
    nodes
        .patch_status("only", &params, &Patch::Merge(ready))
        .await
        .expect("a ready node");
    let untaint = json!({ "spec": { "taints": null } });
    nodes
        .patch("only", &params, &Patch::Merge(untaint))
        .await
        .expect("a node without taints");

    let broken: Arc<Mutex<Option<String>>> = Arc::default();
    let seen: Arc<Mutex<Vec<(String, usize, usize)>>> = Arc::default();
    let task = tokio::spawn(run(cluster.client.clone(), broken.clone(), seen.clone()));
    Kubelet { task, broken, seen }
}

async fn run(
    client: kube::Client,
    broken: Arc<Mutex<Option<String>>>,
    seen: Arc<Mutex<Vec<(String, usize, usize)>>>,
) {
    let pods: Api<Pod> = Api::all(client.clone());
    let events = watcher(pods, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut running: BTreeMap<(String, String), String> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let pod = match event {
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => pod,
            Ok(watcher::Event::Delete(pod)) => {
                running.remove(&key(&pod));
                continue;
            }
            _ => continue,
        };
        if pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) != Some("only") {
            continue;
        }
        let (namespace, name) = key(&pod);
        let image = image_of(&pod);
        running.insert((namespace.clone(), name.clone()), image.clone());
        let here: Vec<&String> = running
            .iter()
            .filter(|((ns, _), _)| *ns == namespace)
            .map(|(_, image)| image)
            .collect();
        let images: BTreeSet<&&String> = here.iter().collect();
        seen.lock()
            .unwrap()
            .push((namespace.clone(), here.len(), images.len()));

        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        if pod.metadata.deletion_timestamp.is_some() {
            let _ = pods
                .delete(&name, &DeleteParams::default().grace_period(0))
                .await;
            continue;
        }
        let is_broken = broken.lock().unwrap().as_deref() == Some(image.as_str());
        let status = if is_broken { "False" } else { "True" };
        let known = pod
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .any(|condition| condition.type_ == "Ready" && condition.status == status);
        if !known {
            let now = jiff::Timestamp::now().to_string();
            let ready = json!({ "status": { "phase": "Running", "conditions": [
                { "type": "Ready", "status": status, "lastTransitionTime": now },
            ] } });
            let _ = pods
                .patch_status(&name, &PatchParams::default(), &Patch::Strategic(ready))
                .await;
        }
    }
}

fn key(pod: &Pod) -> (String, String) {
    (
        pod.metadata.namespace.clone().unwrap_or_default(),
        pod.metadata.name.clone().unwrap_or_default(),
    )
}

fn image_of(pod: &Pod) -> String {
    pod.spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .find_map(|container| container.image.clone())
        .unwrap_or_default()
}

//! Somebody who watches the pods of a scene all the time, and remembers what was there at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use tokio::task::JoinHandle;

use crate::scene::Scene;

/// The most that was seen at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Most {
    /// Pods, those on their way out included.
    pub(crate) pods: usize,
    /// Different images among them.
    pub(crate) images: usize,
}

/// A watch in the background; ends when dropped.
pub(crate) struct Spectator {
    task: JoinHandle<()>,
    most: Arc<Mutex<Most>>,
}

impl Spectator {
    pub(crate) fn of(scene: &Scene) -> Self {
        let most = Arc::default();
        let task = tokio::spawn(watch(scene.api(), Arc::clone(&most)));
        Self { task, most }
    }

    pub(crate) fn most(&self) -> Most {
        *self.most.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spectator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(pods: Api<Pod>, most: Arc<Mutex<Most>>) {
    let mut events = watcher(pods, watcher::Config::default()).boxed();
    let mut here: BTreeMap<String, String> = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event.expect("a watch") {
            Event::Apply(pod) | Event::InitApply(pod) => {
                here.insert(pod.name_any(), image_of(&pod));
            }
            Event::Delete(pod) => {
                here.remove(&pod.name_any());
            }
            Event::Init | Event::InitDone => {}
        }
        let images: BTreeSet<&String> = here.values().collect();
        let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
        most.pods = most.pods.max(here.len());
        most.images = most.images.max(images.len());
    }
}

fn image_of(pod: &Pod) -> String {
    pod.spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .find_map(|container| container.image.clone())
        .unwrap_or_default()
}

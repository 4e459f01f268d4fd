//! Somebody who watches pods all the time, and remembers how many were not ready at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::task::JoinHandle;
use windlass_cluster::Stage;

/// Watches until it is dropped.
pub(crate) struct Audience {
    most: Arc<Mutex<usize>>,
    watching: JoinHandle<()>,
}

impl Audience {
    /// How many pods were not ready at once.
    pub(crate) fn most_unready(&self) -> usize {
        *self.most.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// Begins to watch the pods of a stage.
pub(crate) fn watch(stage: &Stage) -> Audience {
    let most = Arc::new(Mutex::new(0));
    let (seen, pods) = (Arc::clone(&most), stage.api::<Pod>());
    let watching = tokio::spawn(async move {
        let mut ready: BTreeMap<String, bool> = BTreeMap::new();
        let mut events = watcher(pods, watcher::Config::default()).boxed();
        while let Some(Ok(event)) = events.next().await {
            match event {
                Event::InitApply(pod) | Event::Apply(pod) => {
                    ready.insert(pod.name_any(), is_ready(&pod));
                }
                Event::Delete(pod) => {
                    ready.remove(&pod.name_any());
                }
                Event::Init | Event::InitDone => {}
            }
            let unready = ready.values().filter(|ready| !**ready).count();
            let mut most = seen.lock().unwrap_or_else(PoisonError::into_inner);
            *most = unready.max(*most);
        }
    });
    Audience { most, watching }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

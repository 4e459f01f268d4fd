//! The pods of the node by name, for those who ask for them by name: the server and tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;

type Pods = BTreeMap<(String, String), Arc<Pod>>;

/// The pods of the node. Clones are the same directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directory(Arc<Mutex<Pods>>);

impl Directory {
    /// The pod of that name.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.lock().get(&key).cloned()
    }

    /// Takes over a pod, or what is new about it.
    pub(crate) fn put(&self, pod: &Arc<Pod>) {
        self.lock().insert(key(pod), pod.clone());
    }

    /// Forgets a pod, unless another of its name has taken its place.
    pub(crate) fn remove(&self, pod: &Pod) {
        let mut pods = self.lock();
        let key = key(pod);
        if pods
            .get(&key)
            .is_some_and(|known| known.metadata.uid == pod.metadata.uid)
        {
            pods.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pods> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(pod: &Pod) -> (String, String) {
    let metadata = &pod.metadata;
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

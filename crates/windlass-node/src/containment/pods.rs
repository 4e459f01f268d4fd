//! The pods of the node: which shim holds each, and which of its containers run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::{mpsc, watch};
use windlass::testing::Clock;

use super::Containment;
use crate::shim::{self, Held, Shim};
use crate::store::{PodNote, Store};

/// Every pod, and what they need.
#[derive(Debug)]
pub(super) struct Pods<C> {
    pub(super) containment: C,
    pub(super) store: Store,
    /// How a program is called to become a shim.
    pub(super) shim: Vec<OsString>,
    pub(super) clock: OnceLock<Clock>,
    pub(super) draining: AtomicBool,
    pub(super) entries: Mutex<BTreeMap<String, Entry>>,
}

/// A pod.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) note: PodNote,
    pub(super) shim: Option<Arc<Shim>>,
    pub(super) containers: BTreeMap<String, Live>,
    /// What the shim held when this life of the node began, until the pod's worker asks for it.
    pub(super) found: Vec<Held>,
}

/// A container that runs.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) run: i32,
    /// Whether it reads what those who join it type.
    pub(super) stdin: bool,
    /// Whether it has a terminal.
    pub(super) terminal: bool,
    /// Asks for its end, within a time.
    pub(super) stop: mpsc::UnboundedSender<Duration>,
    pub(super) ended: watch::Receiver<bool>,
    /// Whether commands were run beside it, which may have left something behind.
    pub(super) visited: Arc<AtomicBool>,
}

impl<C> Pods<C> {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock.get().cloned().unwrap_or_default()
    }

    /// The shim of a pod, if it is there.
    pub(super) fn shim(&self, uid: &str) -> Option<Arc<Shim>> {
        let shim = self.lock().get(uid)?.shim.clone()?;
        (!shim.is_gone()).then_some(shim)
    }

    /// The present run of a container.
    pub(super) fn running(&self, uid: &str, container: &str) -> io::Result<(Arc<Shim>, Live)> {
        let pods = self.lock();
        let found = pods.get(uid).and_then(|entry| {
            let live = entry.containers.get(container)?.clone();
            Some((entry.shim.clone()?, live))
        });
        found.ok_or_else(|| {
            let message = format!("container not found (\"{container}\")");
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }

    /// Notes that a container runs; false when its pod is gone, or the node is being stopped, and
    /// it must not run.
    pub(super) fn live(&self, uid: &str, container: &str, live: Live) -> bool {
        let mut pods = self.lock();
        let Some(entry) = pods.get_mut(uid) else {
            return false;
        };
        entry.containers.insert(container.to_owned(), live);
        !self.draining.load(Ordering::SeqCst)
    }

    pub(super) fn dead(&self, uid: &str, container: &str, run: i32) {
        if let Some(entry) = self.lock().get_mut(uid)
            && entry
                .containers
                .get(container)
                .is_some_and(|live| live.run == run)
        {
            entry.containers.remove(container);
        }
    }

    /// Asks every container to end, within a time, and waits until all have.
    pub(super) async fn stop_all(&self, grace: Duration) {
        let mut ends = Vec::new();
        for entry in self.lock().values() {
            for live in entry.containers.values() {
                let _ = live.stop.send(grace);
                ends.push(live.ended.clone());
            }
        }
        for mut ended in ends {
            // One whose attendant is gone has ended, too.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

impl<C: Containment> Pods<C> {
    /// The note of a pod, made where it is missing.
    pub(super) fn note(&self, pod: &Pod, uid: &str) -> io::Result<PodNote> {
        let mut pods = self.lock();
        if let Some(entry) = pods.get(uid) {
            return Ok(entry.note.clone());
        }
        let spec = pod.spec.as_ref();
        let host_network = spec.and_then(|spec| spec.host_network) == Some(true);
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let name = pod.metadata.name.clone().unwrap_or_default();
        let address = if host_network {
            self.containment.host_address()
        } else {
            let taken: BTreeSet<Ipv4Addr> = pods.values().map(|entry| entry.note.address).collect();
            self.containment
                .address(&namespace, &name, &taken)
                .ok_or_else(|| io::Error::other("no address is left for the pod"))?
        };
        let note = PodNote {
            namespace,
            name,
            address,
            host_network,
        };
        self.store.remember(uid, &note)?;
        let entry = Entry {
            note: note.clone(),
            shim: None,
            containers: BTreeMap::new(),
            found: Vec::new(),
        };
        pods.insert(uid.to_owned(), entry);
        Ok(note)
    }

    /// Makes the shim of a pod.
    pub(super) async fn make(&self, pod: &Pod, uid: &str, note: &PodNote) -> io::Result<Arc<Shim>> {
        let folder = self.store.pod(uid);
        let config = self.containment.config(pod, note, &folder)?;
        let shim = shim::spawn(&folder, &self.shim, &config).await?;
        let pid = shim.process.pid();
        if let Err(error) = self.containment.join(uid, note, pid).await {
            shim.end().await;
            return Err(error);
        }
        Ok(shim)
    }

    /// A shim died: what it held is ended, and the pod gets another before its next container.
    pub(super) async fn lost(&self, uid: &str, shim: &Arc<Shim>) {
        {
            let mut pods = self.lock();
            let Some(entry) = pods.get_mut(uid) else {
                return;
            };
            let known = entry.shim.as_ref();
            if !known.is_some_and(|known| Arc::ptr_eq(known, shim)) {
                return;
            }
            entry.shim = None;
        }
        self.containment.leave(uid, false).await;
    }
}

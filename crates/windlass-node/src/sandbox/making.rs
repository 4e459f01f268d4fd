//! What a pod has before its first container: an address, its `/etc` files, its namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::files;
use super::runtime::{Entry, Shared};
use super::store::PodNote;
use crate::shim::{self, Shim};

impl Shared {
    /// Makes the namespaces of a pod, and connects it.
    pub(super) async fn make(&self, pod: &Pod, uid: &str, note: &PodNote) -> io::Result<Arc<Shim>> {
        let folder = self.store.pod(uid);
        let gateway = self.bridge.gateway();
        files::write(&folder.join("etc"), pod, note.address, gateway)?;
        let spec = pod.spec.as_ref();
        let config = shim::Config {
            hostname: if note.host_network {
                rustix::system::uname()
                    .nodename()
                    .to_string_lossy()
                    .into_owned()
            } else {
                files::hostname(pod)
            },
            own_network: !note.host_network,
            oci: self.oci.clone(),
            oci_root: self.store.oci(),
            share_processes: spec.and_then(|spec| spec.share_process_namespace) == Some(true),
        };
        let shim = shim::spawn(&folder, &self.shim, &config).await?;
        if !note.host_network
            && let Err(error) = self
                .bridge
                .connect(uid, shim.process.pid, note.address)
                .await
        {
            shim.end().await;
            return Err(error);
        }
        Ok(shim)
    }

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
            self.bridge.gateway()
        } else {
            let taken: BTreeSet<Ipv4Addr> = pods.values().map(|entry| entry.note.address).collect();
            self.bridge
                .address_for(&namespace, &name, &taken)
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
}

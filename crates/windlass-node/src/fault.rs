//! Faults of a real node, for tests: what machines, disks and networks do when nobody asks.
//!
//! A [`Faults`] is given to a node when it is made, and stays in the hands of the test. The
//! simulated node has the same functions on its own handle.

use std::io;
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use crate::agent::Directory;
use crate::runtime::Runtime;
use crate::volume::Volumes;

/// The faults of one node. Clones are those of the same node.
#[derive(Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Default)]
struct Inner {
    silent: watch::Sender<bool>,
    node: OnceLock<Reach>,
}

struct Reach {
    runtime: Arc<dyn Breakable>,
    directory: Directory,
    volumes: Volumes,
}

/// Why a fault could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The pod is not there.
    #[error("cannot {verb} {object}: it does not run on the node")]
    NotRunning {
        /// What should have been done.
        verb: &'static str,
        /// To what.
        object: String,
    },
    /// The runtime cannot do it.
    #[error("cannot {verb} {object}: {source}")]
    Runtime {
        /// What should have been done.
        verb: &'static str,
        /// To what.
        object: String,
        /// Why not.
        source: io::Error,
    },
}

/// What a runtime can break.
trait Breakable: Send + Sync {
    fn kill<'a>(&'a self, uid: &'a str, container: &'a str) -> BoxFuture<'a, io::Result<()>>;
    fn cut<'a>(&'a self, uid: &'a str, cut: bool) -> BoxFuture<'a, io::Result<()>>;
}

impl<R: Runtime> Breakable for R {
    fn kill<'a>(&'a self, uid: &'a str, container: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Runtime::kill(self, uid, container).boxed()
    }

    fn cut<'a>(&'a self, uid: &'a str, cut: bool) -> BoxFuture<'a, io::Result<()>> {
        Runtime::cut(self, uid, cut).boxed()
    }
}

impl Faults {
    pub(crate) fn reach<R: Runtime>(
        &self,
        runtime: Arc<R>,
        directory: Directory,
        volumes: Volumes,
    ) {
        let reach = Reach {
            runtime,
            directory,
            volumes,
        };
        // An operator that is made a second time from the same configuration is the same node.
        let _ = self.0.node.set(reach);
    }

    /// The node stops answering: it renews no lease, reports nothing and serves nobody. Its pods
    /// go on running.
    pub fn stop_answering(&self) {
        self.0.silent.send_replace(true);
    }

    /// The node answers again, and reports what has happened meanwhile.
    pub fn answer(&self) {
        self.0.silent.send_replace(false);
    }

    pub(crate) fn is_silent(&self) -> bool {
        *self.0.silent.borrow()
    }

    /// Waits until the node may not answer.
    pub(crate) async fn silenced(&self) {
        let mut silent = self.0.silent.subscribe();
        let _ = silent.wait_for(|silent| *silent).await;
    }

    /// Waits until the node may answer.
    pub(crate) async fn answering(&self) {
        let mut silent = self.0.silent.subscribe();
        let _ = silent.wait_for(|silent| !silent).await;
    }

    /// Kills a running container, as the kernel does when memory is short.
    pub async fn kill_container(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> Result<(), FaultError> {
        let verb = "kill a container of";
        let (reach, found) = self.find(verb, namespace, pod)?;
        let killed = reach.runtime.kill(uid(&found), container).await;
        killed.map_err(failed(verb, namespace, pod))
    }

    /// Cuts a pod off the network.
    pub async fn cut_network(&self, namespace: &str, pod: &str) -> Result<(), FaultError> {
        self.set_network(namespace, pod, true).await
    }

    /// Lets a pod back on the network.
    pub async fn restore_network(&self, namespace: &str, pod: &str) -> Result<(), FaultError> {
        self.set_network(namespace, pod, false).await
    }

    async fn set_network(&self, namespace: &str, pod: &str, cut: bool) -> Result<(), FaultError> {
        let verb = if cut {
            "cut the network of"
        } else {
            "restore the network of"
        };
        let (reach, found) = self.find(verb, namespace, pod)?;
        let cut = reach.runtime.cut(uid(&found), cut).await;
        cut.map_err(failed(verb, namespace, pod))
    }

    /// Loses what a pod has written to the disk of its node (its emptyDir volumes, and the claims
    /// whose volumes are folders of this machine), and with it its containers.
    pub async fn lose_disk(&self, namespace: &str, pod: &str) -> Result<(), FaultError> {
        let verb = "lose the disk of";
        let (reach, found) = self.find(verb, namespace, pod)?;
        reach
            .volumes
            .lose(&found)
            .map_err(failed(verb, namespace, pod))?;
        let spec = found.spec.as_ref();
        for container in spec.iter().flat_map(|spec| &spec.containers) {
            match reach.runtime.kill(uid(&found), &container.name).await {
                // One that does not run has nothing more to lose.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(verb, namespace, pod)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn find(
        &self,
        verb: &'static str,
        namespace: &str,
        pod: &str,
    ) -> Result<(&Reach, Arc<Pod>), FaultError> {
        let reach = self.0.node.get();
        let found = reach.and_then(|reach| Some((reach, reach.directory.find(namespace, pod)?)));
        found.ok_or_else(|| FaultError::NotRunning {
            verb,
            object: format!("pod {namespace}/{pod}"),
        })
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults")
            .field("silent", &*self.0.silent.borrow())
            .finish_non_exhaustive()
    }
}

fn failed(verb: &'static str, namespace: &str, pod: &str) -> impl FnOnce(io::Error) -> FaultError {
    let object = format!("pod {namespace}/{pod}");
    move |source| FaultError::Runtime {
        verb,
        object,
        source,
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

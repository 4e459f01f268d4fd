//! Pods that are held by shims: what the runtimes on a machine share.
//!
//! Each pod has a shim ([`crate::shim`]), a process that outlives the node's and is the parent of
//! the pod's containers. [`ContainedRuntime`] keeps the table of pods and shims, has the shims
//! start, signal and end containers, and finds them again in a later life of the node. What a
//! container is made from, and what keeps it apart from the machine, is a [`Containment`]: nothing
//! at all for plain processes ([`crate::process`]), namespaces for sandboxes ([`crate::sandbox`]).

mod attach;
mod attendance;
mod follow;
mod pods;
mod runtime;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use crate::env::Environment;
use crate::program::Obstacle;
use crate::runtime::{Connection, Execution, Launch, Part, Reports, Session};
use crate::shim::{self, Config};
use crate::store::{PodNote, Store};
pub(crate) use runtime::ContainedRuntime;

/// What keeps the containers of a pod apart from the machine.
pub(crate) trait Containment: Debug + Send + Sync + 'static {
    /// What the ids of its containers begin with.
    fn scheme(&self) -> &str;

    /// A free address for a pod.
    fn address(&self, namespace: &str, name: &str, taken: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr>;

    /// The address of a pod on the machine's own network.
    fn host_address(&self) -> Ipv4Addr;

    /// The variables every container of the pod has, before its own.
    fn environment(&self, pod: &Pod, address: IpAddr) -> Environment;

    /// What the pod's shim is made from; what that needs is prepared in the pod's folder.
    fn config(&self, pod: &Pod, note: &PodNote, folder: &Path) -> io::Result<Config>;

    /// Connects a new shim to the network.
    fn join(
        &self,
        _uid: &str,
        _note: &PodNote,
        _shim: i32,
    ) -> impl Future<Output = io::Result<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Writes down what a run is made from, in a folder of its own, for the shim to find.
    fn describe(
        &self,
        launch: &Launch,
        folder: &Path,
        reports: &Reports,
    ) -> impl Future<Output = Result<Described, Obstacle>> + Send;

    /// Runs a command beside the first process of a run that has been described in `folder`, until
    /// that is `over`.
    fn exec(
        &self,
        id: &str,
        folder: &Path,
        execution: &Execution,
        over: watch::Receiver<bool>,
    ) -> io::Result<Session>;

    /// Ends what commands have left behind in a container that has ended.
    fn forsake(&self, _uid: &str, _container: &str) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// A connection to a port of a pod, as from inside it.
    fn connect(
        &self,
        note: &PodNote,
        shim: i32,
        port: u16,
    ) -> impl Future<Output = io::Result<Box<dyn Connection>>> + Send;

    /// Takes away what is left of a pod whose shim is gone, in an `orderly` way or not.
    fn leave(&self, uid: &str, orderly: bool) -> impl Future<Output = ()> + Send;

    /// Takes away what is left of all pods but those that are held, by their shims' numbers.
    fn sweep(&self, held: &BTreeMap<String, i32>) -> impl Future<Output = ()> + Send;

    /// Cuts a pod off the network, or lets it back.
    fn cut(&self, uid: &str, cut: bool) -> impl Future<Output = io::Result<()>> + Send;
}

/// A run that has been described.
pub(crate) struct Described {
    /// What really runs for the image.
    pub(crate) image_id: String,
    /// What its root file system is an overlay of, where it has one.
    pub(crate) lower: Option<String>,
    /// Parts of volumes, by the paths at which the shim must mount them first.
    pub(crate) parts: Vec<(PathBuf, Part)>,
}

/// Ends every shim that a killed node left behind.
pub(crate) async fn end_shims(store: &Store) -> io::Result<()> {
    let known = store.pods()?;
    let ending = known.iter().map(|(uid, _)| end_former(store, uid));
    futures::future::join_all(ending).await;
    Ok(())
}

/// Ends the shim that a former life of the node left for a pod; says whether that was orderly.
async fn end_former(store: &Store, uid: &str) -> bool {
    let folder = store.pod(uid);
    if let Some((shim, _)) = shim::find(&folder).await {
        return shim.end().await;
    }
    shim::end_by_force(&folder).await;
    false
}

//! A node that runs containers as plain processes, without privileges.
//!
//! Each pod has an address of its own in 127.64.0.0/10, passed to its processes as `POD_IP` and
//! by the downward API; each container is a process group whose whole tree ends with its first
//! process; what it writes goes to a log file. What needs namespaces (mounts at a path, a network
//! or a PID space of its own) this runtime cannot do, and says so in an event.
//!
//! The program may be killed at any moment. A pod is held by its shim ([`crate::shim`]), so the next
//! life of the node goes on with it as it is. Processes carry marks in their environment, so what
//! nobody holds any more is found and ended, by that life or by [`clean_up`]; a graceful stop
//! leaves nothing to be found.

mod address;
mod containment;
mod description;
mod exec;
mod place;
pub(crate) mod tree;
mod volumes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use windlass::Operator;

use crate::containment::{ContainedRuntime, Containment as _, end_shims};
use crate::fault::Faults;
use crate::image::ImageTable;
use crate::node::{self, NodeConfig};
pub use crate::server::{Tls, TlsError};
use crate::store::Store;
use containment::Plain;
pub(crate) use description::Description;

/// The address of the machine, as its pods see it.
pub(crate) const HOST_IP: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A container that runs as somebody else must be able to reach its own folder.
const FOLDER_MODE: u32 = 0o711;

/// What a node of processes is made from.
#[derive(Debug, Clone)]
pub struct ProcessNodeConfig {
    /// Its name; also the value of `spec.nodeName` of its pods.
    pub name: String,
    /// Where it keeps logs and what it must remember.
    pub state_dir: PathBuf,
    /// Which programs stand for which images.
    pub images: ImageTable,
    /// Where its HTTPS server listens; port 0 is any free one, and the Node object shows which.
    pub listen: SocketAddr,
    /// What the HTTPS server needs; without it there is none, and no logs.
    pub tls: Option<Tls>,
    /// Host and port of the API server as pods should use them.
    pub api_server: Option<(String, u16)>,
    /// How this program is called to become a shim; the subcommand is appended.
    pub shim: Vec<OsString>,
    /// What tests do to it.
    pub faults: Faults,
}

impl ProcessNodeConfig {
    /// A node without a server and with the default images.
    pub fn new(
        name: impl Into<String>,
        state_dir: impl Into<PathBuf>,
        shim: Vec<OsString>,
    ) -> Self {
        Self {
            name: name.into(),
            state_dir: state_dir.into(),
            images: ImageTable::default(),
            listen: SocketAddr::from((HOST_IP, 0)),
            tls: None,
            api_server: None,
            shim,
            faults: Faults::default(),
        }
    }
}

/// Why a node cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its folder cannot be used.
    #[error("cannot use the state folder {path}: {source}")]
    State {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// What its server was given cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The node as an operator: a controller of its pods, and the task that makes it known.
pub fn operator(config: ProcessNodeConfig) -> Result<Operator, NodeError> {
    let store = Store::open(&config.state_dir, FOLDER_MODE).map_err(|source| NodeError::State {
        path: config.state_dir.clone(),
        source,
    })?;
    let plain = Plain::new(store.root(), config.images, config.api_server);
    let runtime = ContainedRuntime::new(store, config.shim, plain);
    let config = NodeConfig {
        name: config.name,
        host_ip: HOST_IP.into(),
        state_dir: config.state_dir,
        listen: config.listen,
        tls: config.tls,
        runtime: concat!("process://", env!("CARGO_PKG_VERSION")).to_owned(),
        faults: config.faults,
    };
    Ok(node::operator(config, Arc::new(runtime))?)
}

/// Ends every process that a killed node left behind. For whoever stops a cluster whose program is
/// gone.
pub async fn clean_up(state_dir: &Path) -> io::Result<()> {
    let store = Store::open(state_dir, FOLDER_MODE)?;
    end_shims(&store).await?;
    let plain = Plain::new(store.root(), ImageTable::default(), None);
    plain.sweep(&BTreeMap::new()).await;
    Ok(())
}

/// The exit code as Kubernetes reports it: a signal counts as 128 and its number.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

#[cfg(test)]
mod tests;

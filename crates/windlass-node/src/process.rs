//! A node that runs containers as plain child processes of this program, without privileges.
//!
//! Each pod has an address of its own in 127.64.0.0/10, passed to its processes as `POD_IP` and
//! by the downward API; each container is a process group whose whole tree ends with its first
//! process; what it writes goes to a log file. What needs namespaces (mounts at a path, a network
//! or a PID space of its own) this runtime cannot do, and says so in an event.
//!
//! The program may be killed at any moment. Processes are on record in the state folder and carry
//! marks in their environment, so the next life of the node (or [`clean_up`]) finds and ends what
//! was left behind before it starts anything; a graceful stop leaves nothing to be found.

mod address;
mod container;
mod place;
mod runtime;
mod session;
mod store;
mod terminal;
mod tree;
mod volumes;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass::Operator;

use crate::fault::Faults;
use crate::image::ImageTable;
use crate::node::{self, NodeConfig};
use crate::runtime::Runtime;
pub use crate::server::{Tls, TlsError};
use runtime::ProcessRuntime;
use store::Store;
pub(crate) use terminal::Terminal;

/// The address of the machine, as its pods see it.
pub(crate) const HOST_IP: Ipv4Addr = Ipv4Addr::LOCALHOST;

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
    /// What tests do to it.
    pub faults: Faults,
}

impl ProcessNodeConfig {
    /// A node without a server and with the default images.
    pub fn new(name: impl Into<String>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            state_dir: state_dir.into(),
            images: ImageTable::default(),
            listen: SocketAddr::from((HOST_IP, 0)),
            tls: None,
            api_server: None,
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
    let store = Store::open(&config.state_dir).map_err(|source| NodeError::State {
        path: config.state_dir.clone(),
        source,
    })?;
    let runtime = ProcessRuntime::new(store, config.images, config.api_server);
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
/// gone; a node that starts does the same by itself.
pub async fn clean_up(state_dir: &Path) -> io::Result<()> {
    let store = Store::open(state_dir)?;
    ProcessRuntime::new(store, ImageTable::default(), None)
        .drain(Duration::ZERO)
        .await;
    Ok(())
}

#[cfg(test)]
mod tests;

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
mod machine;
mod probes;
mod runtime;
mod server;
mod store;
mod tree;
mod volumes;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::net::TcpListener;
use windlass::{Error, Grant, Operator, Result, TaskContext, Verb};

use crate::agent::{self, Identity};
use crate::image::ImageTable;
use crate::registration::{self, Facts};
use crate::runtime::Runtime;
use runtime::ProcessRuntime;
pub use server::{Tls, TlsError};
use store::Store;

/// The address of the machine, as its pods see it.
pub(crate) const HOST_IP: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// How long pods may take when the node is stopped, whatever their own grace period says.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// How often the Lease is renewed, and how many renewals pass between reports of the node.
const RENEWAL: (Duration, u32) = (Duration::from_secs(10), 30);

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
    let acceptor = config.tls.as_ref().map(server::acceptor).transpose()?;
    let runtime = ProcessRuntime::new(store, config.images, config.api_server);
    let identity = Identity {
        name: config.name.clone(),
        host_ip: HOST_IP.to_string(),
    };
    let grants = registration::grants()
        .into_iter()
        .chain([Grant::of::<Pod>([Verb::List])]);
    let controller = agent::controller(identity, Arc::new(runtime.clone()));
    let (name, listen) = (config.name, config.listen);
    Ok(Operator::new("windlass-node")
        .controller(controller)
        .task("node", grants, move |task| {
            let (name, runtime, acceptor) = (name.clone(), runtime.clone(), acceptor.clone());
            async move {
                let server = match acceptor {
                    Some(acceptor) => {
                        let listener = TcpListener::bind(listen).await.map_err(Error::other)?;
                        let port = listener.local_addr().map_err(Error::other)?.port();
                        let stopping = task.stopping.clone();
                        let serving = server::serve(listener, acceptor, runtime.clone(), stopping);
                        Some((port, tokio::spawn(serving)))
                    }
                    None => None,
                };
                let facts = facts(name, server.as_ref().map(|(port, _)| *port));
                let outcome = live(&task, &facts, &runtime).await;
                if let Some((_, serving)) = server {
                    serving.abort();
                }
                outcome
            }
        }))
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

/// The life of the node: registers, renews, and in the end stops its pods.
async fn live(task: &TaskContext, facts: &Facts, runtime: &ProcessRuntime) -> Result<()> {
    let alive = async {
        forget_strangers(task, facts, runtime).await?;
        loop {
            registration::register(&task.client, facts, &task.environment).await?;
            for _ in 0..RENEWAL.1 {
                let clock = &task.environment.clock;
                if let Err(error) = registration::renew(&task.client, &facts.name, clock).await {
                    tracing::warn!(%error, node = facts.name, "cannot renew the lease of the node");
                }
                tokio::time::sleep(RENEWAL.0).await;
            }
        }
    };
    tokio::select! {
        biased;
        () = task.stopping.cancelled() => {
            tracing::info!(node = facts.name, "stopping the pods");
            runtime.drain(STOP_WITHIN).await;
            tracing::info!(node = facts.name, "every pod is stopped");
            Ok(())
        }
        failed = alive => failed,
    }
}

/// Forgets the pods that went while the node was not there.
async fn forget_strangers(
    task: &TaskContext,
    facts: &Facts,
    runtime: &ProcessRuntime,
) -> Result<()> {
    // What is known before the list was made: a pod that comes later is no stranger.
    let known = runtime.known().map_err(Error::other)?;
    if known.is_empty() {
        return Ok(());
    }
    let pods: Api<Pod> = Api::all(task.client.clone());
    let bound = ListParams::default().fields(&format!("spec.nodeName={}", facts.name));
    let present: BTreeSet<String> = pods
        .list(&bound)
        .await?
        .into_iter()
        .filter_map(|pod| pod.metadata.uid)
        .collect();
    for uid in known {
        if !present.contains(&uid) {
            runtime.tear_down(&uid).await;
        }
    }
    Ok(())
}

fn facts(name: String, port: Option<u16>) -> Facts {
    Facts {
        name,
        host_ip: HOST_IP.to_string(),
        port,
        runtime: concat!("process://", env!("CARGO_PKG_VERSION")).to_owned(),
        cpus: machine::cpus(),
        memory_kib: machine::memory_kib(),
        pods: 250,
        system: machine::system(),
    }
}

#[cfg(test)]
mod tests;

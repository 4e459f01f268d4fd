//! A node as an operator, whatever runs its containers: the controller of its pods, its HTTPS
//! server, and the task that makes it known and stops its pods in the end.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::net::TcpListener;
use windlass::{
    Error, Operator, Result,
    handle::{Access, Verb},
    run::TaskContext,
};

use crate::agent::{self, Agency, Directory, Identity};
use crate::env::Capacity;
use crate::fault::Faults;
use crate::machine;
use crate::registration::{self, Facts};
use crate::runtime::Runtime;
use crate::server::{self, Limits, Server, Tls, TlsError};
use crate::volume::Volumes;

/// How long pods may take when the node is stopped, whatever their own grace period says.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// How often the Lease is renewed, and how many renewals pass between reports of the node.
const RENEWAL: (Duration, u32) = (Duration::from_secs(10), 30);
/// How many pods a node takes.
const PODS: u32 = 600;

/// What a node is made from, besides its runtime.
#[derive(Debug, Clone)]
pub(crate) struct NodeConfig {
    /// Its name; also the value of `spec.nodeName` of its pods.
    pub(crate) name: String,
    /// The address of the machine, as its pods see it.
    pub(crate) host_ip: IpAddr,
    /// Where it keeps what it must remember.
    pub(crate) state_dir: PathBuf,
    /// Where its HTTPS server listens.
    pub(crate) listen: SocketAddr,
    /// What the HTTPS server needs; without it there is none.
    pub(crate) tls: Option<Tls>,
    /// What `kubectl get nodes -o wide` shows as the runtime.
    pub(crate) runtime: String,
    /// What tests do to it.
    pub(crate) faults: Faults,
}

/// The node as an operator.
pub(crate) fn operator<R: Runtime>(
    config: NodeConfig,
    runtime: Arc<R>,
) -> Result<Operator, TlsError> {
    let acceptor = config.tls.as_ref().map(server::acceptor).transpose()?;
    let directory = Directory::default();
    let volumes = Volumes::new(&config.state_dir);
    let agency = Agency {
        identity: Identity {
            name: config.name.clone(),
            host_ip: config.host_ip.to_string(),
        },
        capacity: Capacity {
            cpus: machine::cpus(),
            memory_kib: machine::memory_kib(),
        },
        directory: directory.clone(),
        volumes: Some(volumes.clone()),
        faults: config.faults.clone(),
    };
    config
        .faults
        .reach(runtime.clone(), directory.clone(), volumes.clone());
    let grants = registration::grants()
        .into_iter()
        .chain([Access::of::<Pod>([Verb::List])]);
    let controller = agent::controller(agency, runtime.clone());
    Ok(Operator::new("windlass-node")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(controller)
        .task("node", grants, move |task| {
            let node = Node {
                config: config.clone(),
                runtime: runtime.clone(),
                volumes: volumes.clone(),
            };
            let (acceptor, directory) = (acceptor.clone(), directory.clone());
            async move {
                let server = match acceptor {
                    Some(acceptor) => {
                        let listen = node.config.listen;
                        let listener = TcpListener::bind(listen).await.map_err(Error::other)?;
                        let port = listener.local_addr().map_err(Error::other)?.port();
                        let server = Server {
                            runtime: node.runtime.clone(),
                            directory,
                            clock: task.environment.clock.clone(),
                            faults: node.config.faults.clone(),
                        };
                        let stopping = task.stopping.clone();
                        let serving =
                            server::serve(listener, acceptor, server, Limits::default(), stopping);
                        Some((port, tokio::spawn(serving)))
                    }
                    None => None,
                };
                let facts = node.facts(server.as_ref().map(|(port, _)| *port));
                let outcome = node.live(&task, &facts).await;
                if let Some((_, serving)) = server {
                    serving.abort();
                }
                outcome
            }
        }))
}

struct Node<R> {
    config: NodeConfig,
    runtime: Arc<R>,
    volumes: Volumes,
}

impl<R: Runtime> Node<R> {
    /// The life of the node: registers, renews, and in the end stops its pods.
    async fn live(&self, task: &TaskContext, facts: &Facts) -> Result<()> {
        let alive = async {
            self.forget_strangers(task).await?;
            loop {
                self.config.faults.answering().await;
                registration::register(&task.client, facts, &task.environment).await?;
                for _ in 0..RENEWAL.1 {
                    self.config.faults.answering().await;
                    let clock = &task.environment.clock;
                    if let Err(error) = registration::renew(&task.client, &facts.name, clock).await
                    {
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
                self.runtime.drain(STOP_WITHIN).await;
                tracing::info!(node = facts.name, "every pod is stopped");
                Ok(())
            }
            failed = alive => failed,
        }
    }

    /// Forgets the pods that went while the node was not there.
    async fn forget_strangers(&self, task: &TaskContext) -> Result<()> {
        // What is known before the list was made: a pod that comes later is no stranger.
        let mut known = self.runtime.known().map_err(Error::other)?;
        known.extend(self.volumes.known());
        if known.is_empty() {
            return Ok(());
        }
        let pods: Api<Pod> = Api::all(task.client.clone());
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", self.config.name));
        let present: BTreeSet<String> = pods
            .list(&bound)
            .await?
            .into_iter()
            .filter_map(|pod| pod.metadata.uid)
            .collect();
        for uid in known {
            if !present.contains(&uid) {
                self.runtime.tear_down(&uid).await;
                self.volumes.forget(&uid);
            }
        }
        Ok(())
    }

    fn facts(&self, port: Option<u16>) -> Facts {
        Facts {
            name: self.config.name.clone(),
            host_ip: self.config.host_ip.to_string(),
            port,
            runtime: self.config.runtime.clone(),
            cpus: machine::cpus(),
            memory_kib: machine::memory_kib(),
            pods: PODS,
            system: machine::system(),
        }
    }
}

//! The node of a cluster: its runtime, its network, and how the API server is reached from pods.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1 as discovery;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use tokio::net::TcpListener;
use windlass::Operator;
use windlass_apiserver::ServiceRange;
use windlass_node::fault::Faults;
use windlass_node::image::ImageTable;
use windlass_node::network::{self, Bridge};
use windlass_node::process::{self, NodeError, ProcessNodeConfig, Tls};
use windlass_node::sandbox::{self, SandboxConfig};

use crate::runtime::{Choice, Runtime};

/// Where the node keeps its state in the data folder.
pub(crate) const FOLDER: &str = "node";
/// Where Services' addresses come from when pods are processes.
const LOCAL_SERVICES: ServiceRange = ServiceRange {
    base: Ipv4Addr::new(127, 128, 0, 0),
    prefix: 16,
};

/// What a node needs before the API server starts.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) choice: Choice,
    /// The network of sandboxes.
    pub(crate) bridge: Option<Bridge>,
}

impl Ground {
    /// Makes the network, if the runtime has one.
    pub(crate) async fn prepare(choice: Choice, data_dir: &Path) -> io::Result<Self> {
        if Runtime::kept(data_dir).is_some_and(|before| before != choice.runtime) {
            // Its pods cannot be gone on with.
            clean_up(data_dir).await?;
            std::fs::remove_dir_all(data_dir.join(FOLDER)).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
        let bridge = match choice.runtime {
            Runtime::Sandbox => Some(Bridge::make(data_dir).await?),
            Runtime::Process => None,
        };
        choice.runtime.keep(data_dir)?;
        Ok(Self { choice, bridge })
    }

    /// Where Services' addresses come from.
    pub(crate) fn services(&self) -> ServiceRange {
        match &self.bridge {
            Some(bridge) => ServiceRange {
                base: bridge.services.base,
                prefix: bridge.services.prefix,
            },
            None => LOCAL_SERVICES,
        }
    }

    /// The addresses at which pods may find the API server: the machine's on their network, and
    /// the one of the `kubernetes` Service.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.bridge
            .iter()
            .flat_map(|bridge| [bridge.gateway(), bridge.services.at(1)])
            .map(IpAddr::from)
            .collect()
    }

    /// A second place for the API server to listen, where pods can reach it; none when they can
    /// reach the first.
    pub(crate) async fn listen(&self, first: SocketAddr) -> io::Result<Option<TcpListener>> {
        let Some(bridge) = &self.bridge else {
            return Ok(None);
        };
        if first.ip().is_unspecified() {
            return Ok(None);
        }
        let wanted = SocketAddr::from((bridge.gateway(), first.port()));
        let listener = match TcpListener::bind(wanted).await {
            Err(_) => TcpListener::bind((bridge.gateway(), 0)).await?,
            Ok(listener) => listener,
        };
        Ok(Some(listener))
    }

    /// The node's certificate is good for these.
    pub(crate) fn node_addresses(&self) -> Vec<IpAddr> {
        let own = self.bridge.iter().map(|bridge| bridge.gateway().into());
        own.chain([IpAddr::from(Ipv4Addr::LOCALHOST)]).collect()
    }

    /// The node as an operator.
    pub(crate) fn operator(&self, mut node: NodeParts) -> Result<Operator, NodeError> {
        // What is mounted is named by others, who are elsewhere.
        node.data_dir = std::path::absolute(&node.data_dir).unwrap_or(node.data_dir);
        let state_dir = node.data_dir.join(FOLDER);
        if let Some(bridge) = &self.bridge {
            return sandbox::operator(SandboxConfig {
                name: node.name,
                image_dir: node.data_dir.join("images"),
                tls: Some(node.tls),
                state_dir,
                hidden: node.data_dir,
                images: node.images,
                bridge: bridge.clone(),
                shim: node.shim,
                faults: node.faults,
                api_server: (bridge.services.at(1).to_string(), 443),
            });
        }
        let mut config = ProcessNodeConfig::new(node.name, state_dir, node.shim);
        config.tls = Some(node.tls);
        config.images = node.images;
        config.faults = node.faults;
        config.api_server = Some((node.api_server.ip().to_string(), node.api_server.port()));
        Ok(network::listening(process::operator(config)?))
    }

    /// Takes the network away.
    pub(crate) async fn remove(&self) {
        if let Some(bridge) = &self.bridge
            && let Err(error) = bridge.remove().await
        {
            tracing::warn!(%error, bridge = bridge.name, "cannot take the network of the pods away");
        }
    }
}

/// What the node of a cluster is made from.
pub(crate) struct NodeParts {
    pub(crate) name: String,
    pub(crate) data_dir: PathBuf,
    pub(crate) tls: Tls,
    pub(crate) images: ImageTable,
    pub(crate) shim: Vec<OsString>,
    pub(crate) faults: Faults,
    pub(crate) api_server: SocketAddr,
}

/// Ends what a node that was killed left on the machine.
pub(crate) async fn clean_up(data_dir: &Path) -> io::Result<()> {
    let folder = data_dir.join(FOLDER);
    let bridge = Bridge::read(data_dir);
    if folder.exists() {
        if bridge.is_some() {
            sandbox::clean_up(&folder, bridge.as_ref()).await?;
        }
        process::clean_up(&folder).await?;
    }
    match bridge {
        Some(bridge) => bridge.remove().await,
        None => Ok(()),
    }
}

/// Says where the API server is, as kube-apiserver does: the endpoints of the `kubernetes` Service.
pub(crate) async fn publish(client: &Client, server: SocketAddr) -> kube::Result<()> {
    let params = PatchParams::apply("kube-apiserver").force();
    let (address, port) = (server.ip().to_string(), i32::from(server.port()));
    let metadata = ObjectMeta {
        name: Some("kubernetes".to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    };
    let skip = "endpointslice.kubernetes.io/skip-mirror".to_owned();
    let endpoints = Endpoints {
        metadata: ObjectMeta {
            labels: Some([(skip, "true".to_owned())].into()),
            ..metadata.clone()
        },
        subsets: Some(vec![EndpointSubset {
            addresses: Some(vec![EndpointAddress {
                ip: address.clone(),
                ..EndpointAddress::default()
            }]),
            ports: Some(vec![EndpointPort {
                name: Some("https".to_owned()),
                port,
                protocol: Some("TCP".to_owned()),
                ..EndpointPort::default()
            }]),
            ..EndpointSubset::default()
        }]),
    };
    let owner = "kubernetes.io/service-name".to_owned();
    let slice = discovery::EndpointSlice {
        metadata: ObjectMeta {
            labels: Some([(owner, "kubernetes".to_owned())].into()),
            ..metadata
        },
        address_type: "IPv4".to_owned(),
        endpoints: Some(vec![discovery::Endpoint {
            addresses: vec![address],
            conditions: Some(discovery::EndpointConditions {
                ready: Some(true),
                ..discovery::EndpointConditions::default()
            }),
            ..discovery::Endpoint::default()
        }]),
        ports: Some(vec![discovery::EndpointPort {
            name: Some("https".to_owned()),
            port: Some(port),
            protocol: Some("TCP".to_owned()),
            ..discovery::EndpointPort::default()
        }]),
    };
    let lists: Api<Endpoints> = Api::namespaced(client.clone(), "default");
    lists
        .patch("kubernetes", &params, &Patch::Apply(&endpoints))
        .await?;
    let slices: Api<discovery::EndpointSlice> = Api::namespaced(client.clone(), "default");
    slices
        .patch("kubernetes", &params, &Patch::Apply(&slice))
        .await?;
    Ok(())
}

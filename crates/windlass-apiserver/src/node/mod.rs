//! What only the node of a pod has: its logs (`log`), its processes and its ports (`stream`). The
//! node is asked over HTTPS, at the address the Node object gives. Requests that are passed on to
//! pods, Services and nodes are in `proxy`.

mod log;
mod proxy;
mod relay;
mod stream;

pub(crate) use log::logs;
pub(crate) use proxy::{PROXY, Passed, Peer, Proxied, proxy};
pub(crate) use stream::{Upgrade, connect};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::pki::KeyedCertificate;
use crate::server::ApiServer;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, TableName};
use crate::verbs::Call;

/// Where a node listens that does not say.
const KUBELET_PORT: u16 = 10250;
/// How long a connection may take to come about.
const DIAL_LIMIT: Duration = Duration::from_secs(30);

/// How the API server reaches nodes: with a certificate of its own, trusting the cluster's CA.
#[derive(Clone)]
pub struct NodeClient {
    tls: TlsConnector,
}

impl std::fmt::Debug for NodeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeClient")
    }
}

impl NodeClient {
    /// A client that shows `identity` and trusts `ca` (PEM).
    pub fn new(identity: &KeyedCertificate, ca: &str) -> std::io::Result<Self> {
        let invalid = |error: &dyn std::fmt::Display| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, error.to_string())
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
            roots
                .add(certificate.map_err(|error| invalid(&error))?)
                .map_err(|error| invalid(&error))?;
        }
        let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(&error))?;
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
            .map_err(|error| invalid(&error))?;
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(&error))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|error| invalid(&error))?;
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// A connection to a node, whose certificate must be the cluster's.
    async fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> std::result::Result<TlsStream<TcpStream>, String> {
        let stream = dial(host, port).await?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let shaken = self.tls.connect(name, stream).await;
        shaken.map_err(|error| error.to_string())
    }

    /// Asks a node; a connection that is to become something else keeps its ends.
    async fn send(
        &self,
        node: &Address,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
    ) -> std::result::Result<http::Response<hyper::body::Incoming>, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (host, port) = (node.host.as_str(), node.port);
        let stream = self.connect(host, port).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| text(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "connection to a node ended");
            }
        });
        let uri: Uri = path
            .parse()
            .map_err(|error: http::uri::InvalidUri| text(&error))?;
        let mut request = Request::get(uri).header(http::header::HOST, format!("{host}:{port}"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|error| text(&error))?;
        sender.send_request(request).await.map_err(|e| text(&e))
    }
}

/// A connection.
async fn dial(host: &str, port: u16) -> std::result::Result<TcpStream, String> {
    let connecting = TcpStream::connect((host, port));
    let stream = match tokio::time::timeout(DIAL_LIMIT, connecting).await {
        Ok(dialled) => dialled.map_err(|error| dial_error(host, port, &error))?,
        Err(_) => return Err(format!("dial tcp {host}:{port}: i/o timeout")),
    };
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Where a node is.
struct Address {
    host: String,
    port: u16,
}

/// As Go puts it.
fn dial_error(host: &str, port: u16, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {host}:{port}: connect: connection refused")
        }
        _ => format!("dial tcp {host}:{port}: {error}"),
    }
}

/// The way to nodes.
fn client<'a>(call: &'a Call<'_>, node: &str) -> Result<&'a NodeClient> {
    way_to_nodes(call.server, node)
}

fn way_to_nodes<'a>(server: &'a ApiServer, node: &str) -> Result<&'a NodeClient> {
    server.nodes().ok_or_else(|| {
        ApiError::internal(format!(
            "node \"{node}\" cannot be reached: this server was started without access to nodes"
        ))
    })
}

/// The container asked for, or the only one.
fn container_of(pod: &Value, call: &Call<'_>) -> Result<String> {
    let names: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    let choices = || names.join(" ");
    match call.query.get("container") {
        Some(asked) if names.contains(&asked) => Ok(asked.to_owned()),
        Some(asked) => Err(ApiError::bad_request(format!(
            "container {asked} is not valid for pod {}",
            call.name()
        ))),
        None => match pod["spec"]["containers"].as_array().map(Vec::as_slice) {
            Some([only]) => Ok(only["name"].as_str().unwrap_or_default().to_owned()),
            _ => Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                call.name(),
                choices()
            ))),
        },
    }
}

fn address_of(call: &Call<'_>, name: &str) -> Result<Address> {
    let table = TableName::new("", "nodes");
    let node = call
        .server
        .store()
        .get(&table, &Key::new("", name))
        .ok_or_else(|| {
            // It is the pod's request, so Kubernetes says that a pod is missing.
            let subject = Subject {
                group: "",
                kind: "pods",
            };
            ApiError::not_found(subject, name)
        })?
        .value();
    address_in(&node)
}

/// The address that a Node gives.
fn address_in(node: &Value) -> Result<Address> {
    let addresses = node["status"]["addresses"].as_array();
    let known = addresses.into_iter().flatten();
    let host = known
        .clone()
        .filter(|address| address["type"] == "InternalIP")
        .find_map(|address| address["address"].as_str());
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0)
        .unwrap_or(KUBELET_PORT);
    let Some(host) = host else {
        let shown: Vec<String> = known
            .map(|address| {
                let of = |part: &str| address[part].as_str().unwrap_or_default();
                format!("{{{} {}}}", of("type"), of("address"))
            })
            .collect();
        return Err(ApiError::without_reason(format!(
            "no preferred addresses found; known addresses: [{}]",
            shown.concat()
        )));
    };
    Ok(Address {
        host: host.to_owned(),
        port,
    })
}

/// Percent-encodes a query value.
fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

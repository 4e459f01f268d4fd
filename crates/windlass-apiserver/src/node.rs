//! Logs, which the node has: fetched over HTTPS from the address the Node object gives.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http::{Answer, Body, BodyError};
use crate::pki::KeyedCertificate;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, TableName};
use crate::verbs::Call;

/// Query parameters of a log request that the node understands.
const LOG_PARAMETERS: &[&str] = &[
    "follow",
    "previous",
    "tailLines",
    "limitBytes",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
];

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

    async fn get(
        &self,
        host: &str,
        port: u16,
        path: &str,
    ) -> Result<http::Response<hyper::body::Incoming>, String> {
        let stream = TcpStream::connect((host, port))
            .await
            .map_err(|error| error.to_string())?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = self
            .tls
            .connect(name, stream)
            .await
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to a node ended");
            }
        });
        let uri: Uri = path
            .parse()
            .map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let request = Request::get(uri)
            .header(http::header::HOST, format!("{host}:{port}"))
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())
    }
}

/// `GET …/pods/<name>/log`.
pub(crate) async fn logs(call: &Call<'_>) -> Result<Answer> {
    let pod = call.find()?.value();
    let container = container_of(&pod, call)?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        // Nothing has run yet, so nothing was logged.
        return Ok(Answer::text(StatusCode::OK, ""));
    }
    let (host, port) = address_of(call, node)?;
    let client = call.server.nodes().ok_or_else(|| {
        ApiError::internal(format!(
            "node \"{node}\" cannot be reached: this server was started without access to nodes"
        ))
    })?;
    let namespace = call.request.namespace.as_deref().unwrap_or_default();
    let parameters: Vec<String> = LOG_PARAMETERS
        .iter()
        .filter_map(|name| Some(format!("{name}={}", encode(call.query.get(name)?))))
        .collect();
    let path = format!(
        "/containerLogs/{namespace}/{}/{container}?{}",
        call.name(),
        parameters.join("&")
    );
    let unreachable = |error: String| {
        ApiError::internal(format!(
            "Get \"https://{host}:{port}{}\": {error}",
            path.split('?').next().unwrap_or_default()
        ))
    };
    let response = client.get(&host, port, &path).await.map_err(unreachable)?;
    if !response.status().is_success() {
        let code = response.status();
        let said = response
            .into_body()
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        return Err(ApiError::new(
            code,
            if code == StatusCode::NOT_FOUND {
                "NotFound"
            } else {
                "BadRequest"
            },
            said,
        ));
    }
    let chunks = response
        .into_body()
        .into_data_stream()
        .map(|chunk| chunk.map_err(|error| BodyError(error.to_string())));
    Ok(Answer::stream("text/plain", Body::stream(chunks)))
}

/// The container asked for, or the only one.
fn container_of(pod: &Value, call: &Call<'_>) -> Result<String> {
    let names: Vec<&str> = ["initContainers", "containers"]
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

fn address_of(call: &Call<'_>, name: &str) -> Result<(String, u16)> {
    let table = TableName::new("", "nodes");
    let node = call
        .server
        .store()
        .get(&table, &Key::new("", name))
        .ok_or_else(|| {
            ApiError::not_found(
                Subject {
                    group: "",
                    kind: "nodes",
                },
                name,
            )
        })?
        .value();
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let host = addresses
        .filter(|address| address["type"] == "InternalIP")
        .find_map(|address| address["address"].as_str());
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    match (host, port) {
        (Some(host), Some(port)) if port > 0 => Ok((host.to_owned(), port)),
        _ => Err(ApiError::internal(format!(
            "node \"{name}\" has told no address to reach it at"
        ))),
    }
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

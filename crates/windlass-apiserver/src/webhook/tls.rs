//! Webhooks over HTTPS.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connections::{Connections, Sender};
use super::transport::{Reply, TransportError, WebhookCall, WebhookTransport};
use super::trust::Bundle;

/// The largest answer that is read.
const ANSWER_LIMIT: usize = 8 * 1024 * 1024;
/// How many trust settings are kept for the next call.
const KEPT: usize = 128;

/// Calls webhooks over HTTPS; connections are kept for the next call.
#[derive(Default)]
pub struct TlsTransport {
    configs: Mutex<BTreeMap<Vec<u8>, Arc<ClientConfig>>>,
    connections: Connections,
}

impl std::fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsTransport")
    }
}

impl TlsTransport {
    fn config(&self, ca_bundle: &[u8]) -> Result<Arc<ClientConfig>, TransportError> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(ca_bundle) {
            return Ok(Arc::clone(config));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TransportError(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Bundle::from_pem(ca_bundle)?))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        if configs.len() >= KEPT {
            configs.clear();
        }
        configs.insert(ca_bundle.to_vec(), Arc::clone(&config));
        Ok(config)
    }

    async fn connect(&self, call: &WebhookCall) -> Result<Sender, TransportError> {
        let config = self.config(&call.ca_bundle)?;
        let (host, port) = &call.address;
        let stream = TcpStream::connect((host.as_str(), *port))
            .await
            .map_err(|error| TransportError(dial_error(host, *port, &error)))?;
        let _ = stream.set_nodelay(true);
        let name = ServerName::try_from(call.server_name.clone())
            .map_err(|error| TransportError(format!("{}: {error}", call.server_name)))?;
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| TransportError(tls_io_error(&error, &call.server_name)))?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
                .await
                .map_err(|error| TransportError(error.to_string()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to a webhook ended");
            }
        });
        Ok(sender)
    }

    async fn send(&self, call: &WebhookCall) -> Result<Reply, TransportError> {
        while let Some(mut sender) = self.connections.take(call) {
            // The other side may have closed it just now: then nothing was answered, and the call
            // is made anew.
            if sender.ready().await.is_ok() {
                match self.ask(sender, call).await {
                    Err(Unanswered::Closed) => {}
                    Err(Unanswered::Failed(why)) => return Err(why),
                    Ok(reply) => return Ok(reply),
                }
            }
        }
        let sender = self.connect(call).await?;
        self.ask(sender, call).await.map_err(|why| match why {
            Unanswered::Closed => TransportError("EOF".to_owned()),
            Unanswered::Failed(why) => why,
        })
    }

    async fn ask(&self, mut sender: Sender, call: &WebhookCall) -> Result<Reply, Unanswered> {
        let failed = |why: String| Unanswered::Failed(TransportError(why));
        let request = Request::post(&call.path_and_query)
            .header(HOST, host_header(&call.server_name, call.address.1))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(call.body.clone()))
            .map_err(|error| failed(error.to_string()))?;
        let response = sender.send_request(request).await.map_err(|error| {
            if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
                Unanswered::Closed
            } else {
                failed(error.to_string())
            }
        })?;
        let code = response.status();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let body = Limited::new(response.into_body(), ANSWER_LIMIT)
            .collect()
            .await
            .map_err(|error| {
                failed(format!(
                    "unexpected error when reading response body: {error}"
                ))
            })?
            .to_bytes();
        self.connections.keep(call, sender);
        Ok(Reply {
            code,
            content_type,
            body,
        })
    }
}

/// Why there is no answer.
enum Unanswered {
    /// The connection ended before there was one.
    Closed,
    Failed(TransportError),
}

impl WebhookTransport for TlsTransport {
    fn post<'a>(
        &'a self,
        call: &'a WebhookCall,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, TransportError>> + Send + 'a>> {
        Box::pin(async move { self.send(call).await })
    }
}

fn host_header(host: &str, port: u16) -> String {
    if host.parse::<std::net::Ipv6Addr>().is_ok() {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// A connection that was not made, as Go tells it.
pub(super) fn dial_error(host: &str, port: u16, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ if host.parse::<IpAddr>().is_err() => {
            return format!("dial tcp: lookup {host}: no such host");
        }
        _ => error.to_string(),
    };
    format!("dial tcp {}: {why}", host_header(host, port))
}

fn tls_io_error(error: &std::io::Error, name: &str) -> String {
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .map_or_else(|| error.to_string(), |error| tls_error(error, name))
}

/// A certificate that was not believed, as Go tells it.
pub(super) fn tls_error(error: &rustls::Error, name: &str) -> String {
    let rustls::Error::InvalidCertificate(wrong) = error else {
        return format!("remote error: tls: {error}");
    };
    let why = match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::NotValidYet
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYetContext { .. } => {
            "x509: certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("x509: certificate is not valid for {name}")
        }
        other => format!("x509: {other:?}"),
    };
    format!("tls: failed to verify certificate: {why}")
}

//! HTTP requests of probes and hooks.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{HandlerError, Target, dial};

/// Asks, and returns what was answered.
pub(crate) async fn get<R>(
    target: &Target<R>,
    get: &HTTPGetAction,
    agent: &str,
) -> Result<StatusCode, HandlerError> {
    let port = target.port(&get.port)?;
    let host = target.host(get.host.as_deref());
    let stream = dial(&host, port).await?;
    let request = request(get, &format!("{host}:{port}"), agent)?;
    if get.scheme.as_deref() != Some("HTTPS") {
        return send(stream, request).await;
    }
    let name = ServerName::try_from(host)?;
    let stream = connector()?.connect(name, stream).await;
    send(stream?, request).await
}

fn request(
    get: &HTTPGetAction,
    authority: &str,
    agent: &str,
) -> Result<http::Request<Empty<Bytes>>, HandlerError> {
    let path = get.path.as_deref().filter(|path| !path.is_empty());
    let path = path.unwrap_or("/");
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let mut request = http::Request::get(path);
    let headers = get.http_headers.as_deref().unwrap_or_default();
    let has = |name: &str| headers.iter().any(|h| h.name.eq_ignore_ascii_case(name));
    let defaults = [
        ("Host", authority),
        ("User-Agent", agent),
        ("Accept", "*/*"),
    ];
    for (name, value) in defaults {
        if !has(name) {
            request = request.header(name, value);
        }
    }
    request = request.header("Connection", "close");
    for header in headers {
        request = request.header(&header.name, &header.value);
    }
    Ok(request.body(Empty::<Bytes>::new())?)
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: http::Request<Empty<Bytes>>,
) -> Result<StatusCode, HandlerError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut answered = std::pin::pin!(sender.send_request(request));
    // The connection must be driven while the answer is awaited; it may end just after it.
    let response = tokio::select! {
        biased;
        response = &mut answered => response,
        _ = connection => answered.await,
    };
    Ok(response?.status())
}

/// A probe asks whether the container answers, not who it is.
fn connector() -> Result<tokio_rustls::TlsConnector, HandlerError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    Ok(tokio_rustls::TlsConnector::from(Arc::new(config)))
}

#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

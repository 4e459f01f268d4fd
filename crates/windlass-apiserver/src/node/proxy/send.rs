//! Sending a request on: the connection, the headers of both ways, and what becomes of the answer.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderName,
    HeaderValue, LOCATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, request};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::super::dial;
use super::super::relay::relay;
use super::path::{self, Paths};
use super::target::{Target, Way, unavailable};
use super::{Peer, Sent, host_of, html};
use crate::http::{Answer, Body, BodyError};
use crate::status::{ApiError, Result};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
/// What holds for one connection only.
static OF_THE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// By which a pod would say who may read the API server's answers.
static OF_OTHER_ORIGINS: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// Whether a client wants its connection to become something else.
pub(super) fn asks_for_another(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter();
    let mut values = values.filter_map(|value| value.to_str().ok());
    values.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Sends a request, and answers what is answered.
pub(super) async fn pass_on(
    target: Target<'_>,
    paths: &Paths,
    parts: &request::Parts,
    body: Sent,
) -> Result<Answer> {
    let mut headers = own_headers(parts);
    strip(&mut headers);
    if let Ok(uri) = HeaderValue::from_str(&paths.forwarded()) {
        headers.insert(FORWARDED_URI, uri);
    }
    let query = parts.uri.query();
    let request = request(parts, paths, query, headers, body)?;
    let unreachable = |why: String| unavailable(format!("error trying to reach service: {why}"));
    let response = exchange(&target, request).await.map_err(unreachable)?;
    let (mut answered, body) = response.into_parts();
    strip(&mut answered.headers);
    for name in &OF_OTHER_ORIGINS {
        answered.headers.remove(name);
    }
    let host = host_of(parts);
    let host = host.to_str().unwrap_or_default();
    let through = |link: &str| paths.rewritten(link, &target.authority, host);
    let location = answered.headers.get(LOCATION);
    if let Some(link) = location.and_then(|location| location.to_str().ok()) {
        if let Some(escape) = path::invalid_escape(link) {
            return Err(ApiError::internal_because(&format!(
                "error trying to parse Location header: parse {link:?}: invalid URL escape {escape:?}"
            )));
        }
        if let Ok(link) = HeaderValue::from_str(&through(link)) {
            answered.headers.insert(LOCATION, link);
        }
    } else if parts.method != Method::HEAD && html::is_html(&answered.headers) {
        let (body, length) = html::rewrite(body, &answered.headers, through).await;
        if let Some(length) = length {
            answered.headers.insert(CONTENT_LENGTH, length.into());
        }
        return Ok(Answer::passed_on(Response::from_parts(answered, body)));
    }
    let body = as_body(body);
    Ok(Answer::passed_on(Response::from_parts(answered, body)))
}

/// Sends a request that is to become a connection of another kind, and joins both ends.
pub(super) async fn upgrade(
    target: Target<'_>,
    paths: &Paths,
    parts: &request::Parts,
    client: OnUpgrade,
) -> Result<Answer> {
    let headers = own_headers(parts);
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    // As in Kubernetes, what is upgraded is asked for without its query.
    let request = request(parts, paths, None, headers, body)?;
    let unreachable = |why| ApiError::without_reason(format!("error dialing backend: {why}"));
    let response = exchange(&target, request).await.map_err(unreachable)?;
    let code = response.status();
    if code != StatusCode::SWITCHING_PROTOCOLS {
        if code.as_u16() < 400 {
            let message = format!("invalid upgrade response: status code {}", code.as_u16());
            return Err(ApiError::without_reason(message));
        }
        let (mut answered, body) = response.into_parts();
        strip(&mut answered.headers);
        let body = as_body(body);
        return Ok(Answer::passed_on(Response::from_parts(answered, body)));
    }
    let agreed = response.headers().iter();
    let agreed = agreed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let backend = hyper::upgrade::on(response);
    tokio::spawn(async move {
        match futures::try_join!(client, backend) {
            Ok((client, backend)) => relay(TokioIo::new(client), TokioIo::new(backend)).await,
            Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
        }
    });
    Ok(Answer::switching(agreed))
}

/// The headers of a client, without those by which it showed this server who it is.
fn own_headers(parts: &request::Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    headers.remove(AUTHORIZATION);
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        if name.as_str().starts_with("impersonate-") {
            headers.remove(name);
        }
    }
    headers.insert(HOST, host_of(parts));
    if let Some(Peer(peer)) = parts.extensions.get::<Peer>() {
        let before = headers.get_all(FORWARDED_FOR).iter();
        let before = before.filter_map(|value| value.to_str().ok());
        let peer = peer.to_canonical().to_string();
        let all: Vec<&str> = before.chain([peer.as_str()]).collect();
        if let Ok(all) = HeaderValue::from_str(&all.join(", ")) {
            headers.insert(FORWARDED_FOR, all);
        }
    }
    headers
}

/// Takes off what holds for one connection only, and what a connection says does.
fn strip(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter();
    let named: Vec<HeaderName> = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_THE_CONNECTION) {
        headers.remove(name);
    }
}

fn request(
    parts: &request::Parts,
    paths: &Paths,
    query: Option<&str>,
    headers: HeaderMap,
    body: Sent,
) -> Result<Request<Sent>> {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let uri = format!("{}{query}", paths.sent());
    let uri: Uri = uri
        .parse()
        .map_err(|error| ApiError::bad_request(format!("cannot pass on the path: {error}")))?;
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Connects and sends. What goes wrong is said as Go says it.
async fn exchange(
    target: &Target<'_>,
    request: Request<Sent>,
) -> std::result::Result<Response<Incoming>, String> {
    let (host, port) = (target.host.as_str(), target.port);
    match target.way {
        Way::Plain => converse(dial(host, port).await?, request).await,
        Way::Node(node) => converse(node.connect(host, port).await?, request).await,
        Way::Encrypted => {
            let stream = dial(host, port).await?;
            let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
            let connector = any_certificate().map_err(|error| error.to_string())?;
            let stream = connector.connect(name, stream).await;
            converse(stream.map_err(|error| handshake_error(&error))?, request).await
        }
    }
}

/// As Go says it of a server that speaks no TLS.
fn handshake_error(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        _ => error.to_string(),
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Sent>,
) -> std::result::Result<Response<Incoming>, String> {
    let text = |error: hyper::Error| {
        // A server that closes without a word.
        if error.is_incomplete_message() {
            "EOF".to_owned()
        } else {
            error.to_string()
        }
    };
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(text)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection of the proxy ended");
        }
    });
    sender.send_request(request).await.map_err(text)
}

/// What is answered, as it comes.
pub(super) fn as_body(body: Incoming) -> Body {
    let chunks = body.into_data_stream();
    Body::stream(futures::StreamExt::map(chunks, |chunk| {
        chunk.map_err(|error| BodyError(error.to_string()))
    }))
}

/// TLS that takes any certificate.
fn any_certificate() -> std::result::Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

//! The node's HTTPS server: where the API server fetches logs.
//!
//! `GET /containerLogs/<namespace>/<pod>/<container>` with the query of `kubectl logs`, as kubelet
//! serves it, and `GET /healthz`. Only a client with a certificate of the given authority is
//! answered; the handshake fails for everyone else.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::runtime::ProcessRuntime;
use crate::log::{LogOptions, Reader};

/// What the server shows its clients, and what it wants to see of them; all in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The server's certificate, with its chain; valid for 127.0.0.1.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// The authority that signs the certificates of clients.
    pub client_ca: String,
}

impl std::fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why the server cannot use what it was given.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A text is not the PEM it should be.
    #[error("cannot read the {what} of the node's server: {source}")]
    Pem {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// The authority of the clients cannot be used.
    #[error("cannot use the client authority of the node's server: {0}")]
    Authority(#[from] rustls::server::VerifierBuilderError),
    /// Certificate and key cannot be used.
    #[error("cannot use the certificate of the node's server: {0}")]
    Certificate(#[from] rustls::Error),
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Turns the PEM texts into what the handshake needs.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let pem = |what| move |source| TlsError::Pem { what, source };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(tls.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(pem("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes()).map_err(pem("key"))?;
    let mut authorities = rustls::RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(tls.client_ca.as_bytes()) {
        authorities.add(authority.map_err(pem("client authority"))?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider.clone())
            .build()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until told to stop; connections end with it.
pub(super) async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    runtime: ProcessRuntime,
    stopping: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(attend(stream, acceptor.clone(), runtime.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of file descriptors, most likely: some will be closed meanwhile.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn attend(stream: TcpStream, acceptor: TlsAcceptor, runtime: ProcessRuntime) {
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "a client without a proper certificate was turned away");
            return;
        }
    };
    let service = service_fn(|request| {
        let runtime = runtime.clone();
        async move { Ok::<_, Infallible>(answer(&request, &runtime).await) }
    });
    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection to the node's server broke");
    }
}

async fn answer(request: &Request<Incoming>, runtime: &ProcessRuntime) -> Response<Body> {
    let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    match (request.method(), path.as_slice()) {
        (&Method::GET, ["healthz"]) => text(StatusCode::OK, "ok"),
        (&Method::GET, ["containerLogs", namespace, pod, container]) => {
            match LogOptions::from_query(request.uri().query().unwrap_or_default()) {
                Ok(options) => logs(runtime, namespace, pod, container, options).await,
                Err(error) => text(StatusCode::BAD_REQUEST, error.to_string()),
            }
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

async fn logs(
    runtime: &ProcessRuntime,
    namespace: &str,
    pod: &str,
    container: &str,
    options: LogOptions,
) -> Response<Body> {
    // The name becomes part of a path.
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let found = is_name(container)
        .then(|| runtime.log(namespace, pod, container, options.previous))
        .flatten();
    let Some(log) = found else {
        let which = if options.previous {
            "previous terminated container"
        } else {
            "container"
        };
        let message = format!("{which} \"{container}\" in pod \"{pod}\" not found");
        return text(StatusCode::NOT_FOUND, message);
    };
    match Reader::open(&log.path, &options, runtime.clock().now(), log.progress).await {
        Ok(reader) => {
            let pieces = stream::try_unfold(reader, |mut reader| async move {
                let piece = reader.next().await?;
                Ok::<_, io::Error>(piece.map(|piece| (piece, reader)))
            });
            let body = StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync();
            let mut response = Response::new(body);
            response.headers_mut().insert(
                http::header::CONTENT_TYPE,
                http::HeaderValue::from_static("text/plain; charset=utf-8"),
            );
            response
        }
        Err(error) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot open the log: {error}"),
        ),
    }
}

fn text(status: StatusCode, message: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(message.into())
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

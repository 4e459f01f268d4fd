//! The server on a port: TLS, HTTP/1.1 and HTTP/2, one identity per connection.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth;
use crate::pki::KeyedCertificate;
use crate::server::ApiServer;

/// How long a client may take to finish the TLS handshake.
const HANDSHAKE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// The server's own certificate, and the CA that signs its clients'.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// What the server shows.
    pub serving: KeyedCertificate,
    /// Who signs client certificates, as PEM.
    pub client_ca: String,
}

/// A server that accepts connections until it is told to stop.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Serving {
    /// Stops accepting and closes every connection.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl ApiServer {
    /// Serves on `listener` until [`Serving::stop`].
    pub fn serve(&self, listener: TcpListener, tls: &TlsConfig) -> io::Result<Serving> {
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(Arc::new(rustls_config(tls)?));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let server = self.clone();
        let (stopped, tracker) = (stop.clone(), tasks.clone());
        tasks.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    biased;
                    () = stopped.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                match accepted {
                    Ok((stream, _)) => {
                        tracker.spawn(connection(
                            server.clone(),
                            acceptor.clone(),
                            stream,
                            stopped.clone(),
                        ));
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: others must close first.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    }
                }
            }
        });
        Ok(Serving {
            address,
            stop,
            tasks,
        })
    }
}

async fn connection(
    server: ApiServer,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await
    else {
        return;
    };
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first());
    let identity = certificate.and_then(|certificate| auth::identity_of(certificate));
    let identity = identity.map(Arc::new);
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, identity) = (server.clone(), identity.clone());
        async move { Ok::<_, Infallible>(server.handle(request, identity.as_ref()).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(error, "connection ended");
            }
        }
    }
}

fn rustls_config(tls: &TlsConfig) -> io::Result<rustls::ServerConfig> {
    let invalid = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{what}: {error}"))
    };
    let mut clients = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(tls.client_ca.as_bytes()) {
        let certificate = certificate.map_err(|error| invalid("client CA", &error))?;
        clients
            .add(certificate)
            .map_err(|error| invalid("client CA", &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(clients), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(|error| invalid("client CA", &error))?;
    let chain = CertificateDer::pem_slice_iter(tls.serving.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| invalid("serving certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(tls.serving.key.as_bytes())
        .map_err(|error| invalid("serving key", &error))?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS", &error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| invalid("serving certificate", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

//! The proxy between the operator and the API server: TLS on both sides, and an [`Edge`] between.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use http::Request;
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::client::Body;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, Service as _};
use windlass_apiserver::pki::{Authority, KeyedCertificate};

use crate::edge::Edge;

/// A proxy, until it is dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// The CA of its certificate, as PEM.
    pub(crate) ca: String,
    connections: Arc<Mutex<JoinSet<()>>>,
    refuses: Arc<AtomicBool>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(edge: Edge) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let authority = Authority::create().unwrap();
        let certificate = authority.server("proxy", &[address.ip()], &[]).unwrap();
        let acceptor = acceptor(&certificate);
        let connections: Arc<Mutex<JoinSet<()>>> = Arc::default();
        let refuses: Arc<AtomicBool> = Arc::default();
        let mut accepting = JoinSet::new();
        let (taken, closed) = (connections.clone(), refuses.clone());
        accepting.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                if closed.load(Ordering::Relaxed) {
                    continue;
                }
                let mut connections = taken.lock().unwrap();
                while connections.try_join_next().is_some() {}
                connections.spawn(serve(stream, acceptor.clone(), edge.clone()));
            }
        });
        Self {
            address,
            ca: authority.pem().certificate.clone(),
            connections,
            refuses,
            _accepting: accepting,
        }
    }

    /// Cuts every connection there is.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }

    /// Takes no connection any more, or takes them again.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }
}

fn acceptor(certificate: &KeyedCertificate) -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(certificate.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, edge: Edge) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request| forward(edge.clone(), request));
    // How a connection ends is what this is about.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn forward(
    mut edge: Edge,
    request: Request<Incoming>,
) -> Result<<Edge as tower::Service<Request<Body>>>::Response, BoxError> {
    let (mut parts, body) = request.into_parts();
    // The host is the API server's; the client that forwards sets it.
    parts.headers.remove(http::header::HOST);
    let body = body.collect().await?.to_bytes();
    edge.call(Request::from_parts(parts, Body::from(body)))
        .await
}

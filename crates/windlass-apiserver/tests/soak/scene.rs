//! A server on a port, and clients of it: such as behave, and such as do not.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::Authority;
use windlass_apiserver::{ApiServer, Config};

pub(crate) type Sent = UnsyncBoxBody<Bytes, io::Error>;
pub(crate) type Client = SendRequest<Sent>;

/// A server with threads of its own.
pub(crate) struct Scene {
    address: SocketAddr,
    authority: Authority,
    _serving: Serving,
    runtime: Runtime,
}

impl Scene {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let authority = Authority::create().expect("an authority");
        let tls = TlsConfig {
            serving: authority
                .server(
                    "kube-apiserver",
                    &[Ipv4Addr::LOCALHOST.into()],
                    &["localhost"],
                )
                .expect("a certificate"),
            client_ca: authority.pem().certificate.clone(),
        };
        let (address, serving) = runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .expect("a port");
            let address = listener.local_addr().expect("an address");
            let server = ApiServer::new(Config::default());
            (address, server.serve(listener, &tls).expect("it serves"))
        });
        Self {
            address,
            authority,
            _serving: serving,
            runtime,
        }
    }

    /// A connection on which nothing was said.
    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address)
            .await
            .expect("the kernel accepts")
    }

    /// A connection of a user of one group.
    pub(crate) async fn tls(
        &self,
        user: &str,
        group: &str,
        protocol: &[u8],
    ) -> TlsStream<TcpStream> {
        let keyed = self
            .authority
            .client(user, group)
            .expect("a certificate of a client");
        let mut roots = RootCertStore::empty();
        let ca = self.authority.pem().certificate.as_bytes();
        for certificate in CertificateDer::pem_slice_iter(ca) {
            roots
                .add(certificate.expect("PEM"))
                .expect("a certificate of an authority");
        }
        let chain = CertificateDer::pem_slice_iter(keyed.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(keyed.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .expect("a certificate of a client");
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config))
            .connect(name, self.tcp().await)
            .await
            .expect("a handshake")
    }

    /// An HTTP/2 client; `window` is how many bytes of each answer it lets come before it reads.
    pub(crate) async fn client(&self, user: &str, group: &str, window: Option<u32>) -> Client {
        let stream = self.tls(user, group, b"h2").await;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        if window.is_some() {
            builder.initial_stream_window_size(window);
        }
        let (client, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .expect("a connection");
        tokio::spawn(connection);
        client
    }

    pub(crate) fn stop(self) {
        self.runtime.shutdown_background();
    }
}

/// Runs clients on threads that the server has not.
pub(crate) fn with_clients<T>(clients: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let result = runtime.block_on(clients);
    runtime.shutdown_background();
    result
}

/// A body that is sent at once.
pub(crate) fn whole(body: impl Into<Bytes>) -> Sent {
    Full::new(body.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Sends a request; the answer's body is still to be read.
pub(crate) async fn begin(
    client: &mut Client,
    method: &str,
    path: &str,
    body: Sent,
) -> hyper::Result<Response<Incoming>> {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("content-type", "application/json")
        .body(body)
        .expect("a request");
    client.ready().await?;
    client.send_request(request).await
}

/// Sends a request and reads the answer.
pub(crate) async fn send(client: &mut Client, method: &str, path: &str, body: &Value) -> u16 {
    let body = match body {
        Value::Null => whole(Bytes::new()),
        body => whole(body.to_string()),
    };
    let answer = begin(client, method, path, body).await.expect("an answer");
    let code = answer.status().as_u16();
    answer.into_body().collect().await.expect("whole");
    code
}

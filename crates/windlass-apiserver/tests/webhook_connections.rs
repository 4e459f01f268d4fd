//! Connections to webhooks are kept, and one that is gone is replaced without anybody noticing.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::pki::Authority;
use windlass_apiserver::webhook::{TlsTransport, WebhookCall, WebhookTarget, WebhookTransport};

/// A webhook over TLS.
struct Hook {
    /// How many connections were made to it.
    connections: AtomicUsize,
    /// Ends the connections there are.
    hang_up: Notify,
    /// Told when one has ended.
    ended: Notify,
    /// Whether it answers that it wants no other request on a connection.
    closes: bool,
}

impl Hook {
    async fn serve(closes: bool) -> (Arc<Self>, WebhookCall) {
        let authority = Authority::create().expect("a CA");
        let loopback = std::net::Ipv4Addr::LOCALHOST;
        let serving = authority
            .server("hook", &[loopback.into()], &["localhost"])
            .expect("a certificate");
        let chain = CertificateDer::pem_slice_iter(serving.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("a chain");
        let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a TLS configuration");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((loopback, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let hook = Arc::new(Self {
            connections: AtomicUsize::new(0),
            hang_up: Notify::new(),
            ended: Notify::new(),
            closes,
        });
        let serving = Arc::clone(&hook);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, hook) = (acceptor.clone(), Arc::clone(&serving));
                hook.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.expect("a handshake");
                    let closes = hook.closes;
                    let service = service_fn(move |_: Request<Incoming>| async move {
                        let mut response = Response::new(Full::new(Bytes::from_static(b"{}")));
                        if closes {
                            let close = http::HeaderValue::from_static("close");
                            response.headers_mut().insert("connection", close);
                        }
                        Ok::<_, Infallible>(response)
                    });
                    let builder = hyper::server::conn::http1::Builder::new();
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    tokio::select! {
                        biased;
                        () = hook.hang_up.notified() => {}
                        _ = connection => {}
                    }
                    hook.ended.notify_one();
                });
            }
        });
        let call = WebhookCall {
            target: WebhookTarget::Url(format!("https://127.0.0.1:{port}/")),
            address: ("127.0.0.1".to_owned(), port),
            server_name: "127.0.0.1".to_owned(),
            path_and_query: "/".to_owned(),
            ca_bundle: authority.pem().certificate.clone().into_bytes(),
            body: "{}".into(),
        };
        (hook, call)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_connection() {
    let (hook, call) = Hook::serve(false).await;
    let transport = TlsTransport::default();
    for _ in 0..5 {
        transport.post(&call).await.expect("an answer");
    }
    assert_eq!(hook.connections(), 1);
    // Who trusts somebody else does not get a connection that was made before.
    let mut other = call.clone();
    other.ca_bundle = Authority::create()
        .expect("a CA")
        .pem()
        .certificate
        .clone()
        .into_bytes();
    assert!(transport.post(&other).await.is_err());
    // Calls at the same time have one each, and both are kept.
    let both = tokio::join!(transport.post(&call), transport.post(&call));
    assert!(both.0.is_ok() && both.1.is_ok());
    let made = hook.connections();
    let both = tokio::join!(transport.post(&call), transport.post(&call));
    assert!(both.0.is_ok() && both.1.is_ok());
    assert_eq!(hook.connections(), made);
}

#[tokio::test]
async fn a_webhook_that_hangs_up_is_called_anew() {
    let (hook, call) = Hook::serve(false).await;
    let transport = TlsTransport::default();
    for round in 1..=3 {
        transport.post(&call).await.expect("an answer");
        assert_eq!(hook.connections(), round);
        hook.hang_up.notify_one();
        hook.ended.notified().await;
    }
}

#[tokio::test]
async fn a_webhook_that_wants_no_second_request_gets_none() {
    let (hook, call) = Hook::serve(true).await;
    let transport = TlsTransport::default();
    for round in 1..=3 {
        transport.post(&call).await.expect("an answer");
        assert_eq!(hook.connections(), round);
    }
}

//! Clients that hold connections and do nothing with them: others are served all the same.

use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use windlass_apiserver::hooks::{HookFuture, Hooks, Outcome, Reply};
use windlass_apiserver::http::{ResourceRequest, Serving, TlsConfig};
use windlass_apiserver::pki::Authority;
use windlass_apiserver::{ApiServer, Config, Identity};

const PATIENCE: Duration = Duration::from_mins(1);

/// A server on a port, and how to reach it.
struct Scene {
    serving: Serving,
    connector: TlsConnector,
}

impl Scene {
    async fn start(max_connections: Option<usize>) -> Self {
        Self::with(Config {
            max_connections,
            ..Config::default()
        })
        .await
    }

    async fn with(config: Config) -> Self {
        let authority = Authority::create().expect("an authority");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = [[127, 0, 0, 1].into()];
        let ca = authority.pem().certificate.clone();
        let tls = TlsConfig {
            serving: authority
                .server("kube-apiserver", &address, &["localhost"])
                .expect("a certificate"),
            client_ca: ca.clone(),
        };
        let server = ApiServer::new(config);
        let serving = server.serve(listener, &tls).expect("it serves");
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
            roots
                .add(certificate.expect("PEM"))
                .expect("a certificate of an authority");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            serving,
            connector: TlsConnector::from(Arc::new(config)),
        }
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.serving.address)
            .await
            .expect("the kernel accepts")
    }

    async fn tls(&self) -> TlsStream<TcpStream> {
        let name = ServerName::try_from("localhost").expect("a name");
        let shaken = self.connector.connect(name, self.tcp().await);
        tokio::time::timeout(PATIENCE, shaken)
            .await
            .expect("in time")
            .expect("a handshake")
    }
}

async fn ask(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    answer(stream).await
}

/// What comes, up to its end or to the end of a short answer.
async fn answer(stream: &mut TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    let read = async {
        let mut chunk = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut chunk).await {
            text.extend_from_slice(&chunk[..length]);
            if text.ends_with(b"\r\n\r\nok") {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("in time");
    String::from_utf8_lossy(&text).into_owned()
}

/// Loses every answer.
struct Losing;

impl Hooks for Losing {
    fn after<'a>(
        &'a self,
        _: &'a Identity,
        _: &'a ResourceRequest,
        _: Outcome,
    ) -> HookFuture<'a, Reply> {
        Box::pin(std::future::ready(Reply::Lose))
    }
}

#[tokio::test]
async fn lost_answer_resets_its_connection() {
    let scene = Scene::with(Config {
        hooks: Some(Arc::new(Losing)),
        ..Config::default()
    })
    .await;
    let mut stream = scene.tls().await;
    assert!(ask(&mut stream, READYZ).await.starts_with("HTTP/1.1 200"));
    let pods = "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(ask(&mut stream, pods).await, "");
}

const READYZ: &str = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn when_there_are_too_many_connections_the_next_waits_for_its_turn() {
    let scene = Scene::start(Some(2)).await;
    let mut first = scene.tls().await;
    let mut second = scene.tls().await;
    assert!(ask(&mut first, READYZ).await.starts_with("HTTP/1.1 200"));
    let mut waiting = Box::pin(scene.tls());
    // Those that are there are served while it waits.
    for _ in 0..20 {
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(ask(&mut second, READYZ).await.starts_with("HTTP/1.1 200"));
    }
    drop(first);
    let mut third = waiting.as_mut().await;
    drop(waiting);
    assert!(ask(&mut third, READYZ).await.starts_with("HTTP/1.1 200"));
    scene.serving.stop().await;
}

/// Pods reach the port, and need no right to keep connections open for as long as they like.
#[tokio::test]
async fn connections_of_one_address_without_a_certificate_give_way_to_newer_ones() {
    let scene = Scene::start(Some(100)).await;
    let mut held = Vec::new();
    for _ in 0..70 {
        let mut stream = scene.tls().await;
        assert!(ask(&mut stream, READYZ).await.starts_with("HTTP/1.1 200"));
        held.push(stream);
    }
    assert_eq!(answer(&mut held[0]).await, "", "it was closed");
    let last = held.last_mut().expect("a connection");
    assert!(ask(last, READYZ).await.starts_with("HTTP/1.1 200"));
    scene.serving.stop().await;
}

#[tokio::test]
async fn connections_that_say_nothing_or_half_of_it_hinder_nobody() {
    let scene = Scene::start(None).await;
    let mut held = Vec::new();
    for _ in 0..50 {
        held.push(scene.tcp().await);
    }
    let mut halves = Vec::new();
    for half in [
        "",
        "GET /ready",
        "GET /readyz HTTP/1.1\r\nHost: local",
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ] {
        let mut stream = scene.tls().await;
        stream.write_all(half.as_bytes()).await.expect("it is sent");
        halves.push(stream);
    }
    let mut whole = scene.tls().await;
    assert!(ask(&mut whole, READYZ).await.starts_with("HTTP/1.1 200"));
    scene.serving.stop().await;
}

#[tokio::test]
async fn who_asks_and_closes_its_half_is_answered() {
    let scene = Scene::start(None).await;
    let mut stream = scene.tls().await;
    stream
        .write_all(READYZ.as_bytes())
        .await
        .expect("it is sent");
    // Without a word of TLS, as a program that ends does.
    stream
        .get_mut()
        .0
        .shutdown()
        .await
        .expect("its half is closed");
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
    scene.serving.stop().await;
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_others_are_served() {
    let scene = Scene::start(None).await;
    for (sent, expected) in [
        ("\x16\x03\x01 nonsense\r\n\r\n", "HTTP/1.1 400"),
        ("GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400"),
        (
            "GET /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 400",
        ),
    ] {
        let mut stream = scene.tls().await;
        let said = ask(&mut stream, sent).await;
        assert!(
            said.starts_with(expected) || said.is_empty(),
            "{sent:?}: {said}"
        );
    }
    let many = format!(
        "GET /readyz HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "x: y\r\n".repeat(500)
    );
    let mut stream = scene.tls().await;
    let said = ask(&mut stream, &many).await;
    assert!(said.starts_with("HTTP/1.1 431"), "{said}");
    let mut whole = scene.tls().await;
    assert!(ask(&mut whole, READYZ).await.starts_with("HTTP/1.1 200"));
    scene.serving.stop().await;
}

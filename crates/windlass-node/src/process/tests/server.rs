//! The HTTPS server: who is answered, and what.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::bench::{Bench, script};
use crate::agent::Directory;
use crate::fault::Faults;
use crate::server::{Limits, Server, Tls, acceptor, serve};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

fn issue(authority: &Authority, name: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

/// Asks the server, with a certificate or without one.
async fn get(
    port: u16,
    server_authority: &Authority,
    certificate: Option<&(String, String)>,
    path: &str,
) -> Result<(StatusCode, String), String> {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(server_authority.der().clone())
        .expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match certificate {
        Some((certificate, key)) => config
            .with_client_auth_cert(
                vec![
                    CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate"),
                ],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key"),
            )
            .expect("a certificate"),
        None => config.with_no_client_auth(),
    };
    let stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("a connection");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let text = |error: &dyn std::error::Error| error.to_string();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| text(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| text(&e))?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path)
        .header("Host", "127.0.0.1")
        .body(Empty::<Bytes>::new());
    let response = sender
        .send_request(request.expect("a request"))
        .await
        .map_err(|e| text(&e))?;
    let status = response.status();
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(|e| text(&e))?
        .to_bytes();
    connection.abort();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[tokio::test]
async fn logs_are_for_clients_of_the_authority() {
    let mut bench = Bench::new("server").await;
    let pod = bench.pod("one", &script("echo first; echo second"));
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.exited().await;

    let (ours, theirs) = (authority(), authority());
    let (certificate, key) = issue(&ours, "127.0.0.1");
    let tls = Tls {
        certificate,
        key,
        client_ca: ours.pem(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let stopping = CancellationToken::new();
    let acceptor = acceptor(&tls).expect("an acceptor");
    let directory = Directory::default();
    directory.put(&Arc::new(pod));
    let server = tokio::spawn(serve(
        listener,
        acceptor,
        Server {
            runtime: Arc::new(bench.runtime.clone()),
            directory,
            clock: windlass::testing::Clock::default(),
            faults: Faults::default(),
        },
        Limits::default(),
        stopping.clone(),
    ));

    let client = issue(&ours, "kube-apiserver");
    let ask = async |path: &str| {
        get(port, &ours, Some(&client), path)
            .await
            .expect("an answer")
    };
    let ok = |text: &str| (StatusCode::OK, text.to_owned());
    assert_eq!(ask("/healthz").await, ok("ok"));
    assert_eq!(
        ask("/containerLogs/default/one/main").await,
        ok("first\nsecond\n")
    );
    assert_eq!(
        ask("/containerLogs/default/one/main?tailLines=1").await,
        ok("second\n")
    );
    assert_eq!(
        ask("/containerLogs/default/one/main?follow=true").await,
        ok("first\nsecond\n")
    );
    assert_eq!(
        ask("/containerLogs/default/one/main?previous=true").await.0,
        400
    );
    assert_eq!(
        ask("/containerLogs/default/one/main?tailLines=x").await.0,
        400
    );
    assert_eq!(ask("/containerLogs/default/one/..").await.0, 404);
    assert_eq!(ask("/pods").await.0, 404);

    assert!(
        get(port, &ours, None, "/healthz").await.is_err(),
        "answered without a certificate"
    );
    let stranger = issue(&theirs, "kube-apiserver");
    let answer = get(port, &ours, Some(&stranger), "/healthz").await;
    assert!(answer.is_err(), "answered a stranger");

    stopping.cancel();
    server.await.expect("a clean end");
}

#[tokio::test]
async fn silent_connections_are_closed_and_others_are_answered() {
    use tokio::io::AsyncReadExt as _;

    let bench = Bench::new("silence").await;
    let ours = authority();
    let (certificate, key) = issue(&ours, "127.0.0.1");
    let tls = Tls {
        certificate,
        key,
        client_ca: ours.pem(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stopping = CancellationToken::new();
    let server = tokio::spawn(serve(
        listener,
        acceptor(&tls).expect("an acceptor"),
        Server {
            runtime: Arc::new(bench.runtime.clone()),
            directory: Directory::default(),
            clock: windlass::testing::Clock::default(),
            faults: Faults::default(),
        },
        Limits {
            handshake: Duration::from_secs(2),
            headers: Duration::from_secs(2),
            connections: 40,
        },
        stopping.clone(),
    ));
    // From an address of its own, as a pod's.
    let mut silent = Vec::new();
    for _ in 0..200 {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 2], 0).into()).expect("an address");
        silent.push(socket.connect(address).await.expect("a connection"));
    }
    let client = issue(&ours, "kube-apiserver");
    let asked = async {
        // A busy machine may need longer than a stranger is given.
        while get(address.port(), &ours, Some(&client), "/healthz")
            .await
            .is_err()
        {}
        for mut connection in silent {
            let mut nothing = Vec::new();
            // Closed, or reset.
            let _ = connection.read_to_end(&mut nothing).await;
            assert_eq!(nothing, b"");
        }
    };
    let within = tokio::time::timeout(Duration::from_mins(1), asked).await;
    within.expect("the server answers, and closes what is silent");
    stopping.cancel();
    server.await.expect("a clean end");
}

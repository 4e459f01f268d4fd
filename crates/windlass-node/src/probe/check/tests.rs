use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::simulated::{Delays, SimulatedNode, SimulatedRuntime};

const SECOND: Duration = Duration::from_secs(1);

fn target(port: u16) -> Target<SimulatedRuntime> {
    Target {
        runtime: SimulatedNode::new(Delays::default()).runtime(),
        uid: "u1".to_owned(),
        container: serde_json::from_value(
            json!({"name": "c", "ports": [{"name": "web", "containerPort": port}]}),
        )
        .expect("a container"),
        address: [127, 0, 0, 1].into(),
    }
}

fn probe(value: serde_json::Value) -> Probe {
    serde_json::from_value(value).expect("a probe")
}

#[tokio::test]
async fn tcp_by_number_and_by_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    for named in [json!(port), json!("web")] {
        let probe = probe(json!({"tcpSocket": {"port": named}}));
        assert_eq!(check(&probe, &target(port), SECOND).await, Outcome::Success);
    }
    drop(listener);
    let probe = probe(json!({"tcpSocket": {"port": port}}));
    let outcome = check(&probe, &target(port), SECOND).await;
    assert!(
        matches!(&outcome, Outcome::Failure(m) if m.contains("refused")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn http_by_status_code() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        for status in ["204 Fine", "503 Busy"] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.expect("a request");
            assert!(request[..length].starts_with(b"GET /ready HTTP/1.1\r\n"));
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            stream
                .write_all(answer.as_bytes())
                .await
                .expect("an answer");
        }
    });
    let probe = probe(json!({"httpGet": {"path": "/ready", "port": port}}));
    assert_eq!(check(&probe, &target(port), SECOND).await, Outcome::Success);
    let outcome = check(&probe, &target(port), SECOND).await;
    assert_eq!(
        outcome,
        Outcome::Failure("HTTP probe failed with statuscode: 503".into())
    );
    server.await.expect("the server");
}

#[tokio::test]
async fn silence_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let probe = probe(json!({"httpGet": {"port": port}}));
    let outcome = check(&probe, &target(port), Duration::from_millis(50)).await;
    assert!(matches!(outcome, Outcome::Failure(m) if m.starts_with("no answer")));
}

/// A gRPC server that knows two services, one of them well; without the health protocol it knows
/// none.
async fn grpc_server(listener: TcpListener, implements: bool) {
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Bytes, Frame};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    while let Ok((stream, _)) = listener.accept().await {
        let service = hyper::service::service_fn(
            move |request: http::Request<hyper::body::Incoming>| async move {
                assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
                assert_eq!(request.headers()["content-type"], "application/grpc");
                let asked = request
                    .into_body()
                    .collect()
                    .await
                    .expect("a question")
                    .to_bytes();
                let (code, answer): (&str, &[u8]) = match &asked[5..] {
                    _ if !implements => ("12", b""),
                    b"" | b"\x0a\x04shop" => ("0", b"\0\0\0\0\x02\x08\x01"),
                    b"\x0a\x04sick" => ("0", b"\0\0\0\0\x02\x08\x02"),
                    _ => ("5", b""),
                };
                let trailers = http::HeaderMap::from_iter([(
                    http::HeaderName::from_static("grpc-status"),
                    http::HeaderValue::from_static(code),
                )]);
                let frames = [
                    Ok::<_, std::convert::Infallible>(Frame::data(Bytes::copy_from_slice(answer))),
                    Ok(Frame::trailers(trailers)),
                ];
                let body = StreamBody::new(futures::stream::iter(frames));
                Ok::<_, std::convert::Infallible>(http::Response::new(body))
            },
        );
        tokio::spawn(
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}

#[tokio::test]
async fn grpc_by_the_health_of_a_service() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(grpc_server(listener, true));
    let ask = async |service: &str| {
        let probe = probe(json!({"grpc": {"port": port, "service": service}}));
        check(&probe, &target(port), SECOND * 30).await
    };
    assert_eq!(ask("").await, Outcome::Success);
    assert_eq!(ask("shop").await, Outcome::Success);
    assert_eq!(
        ask("sick").await,
        Outcome::Failure("service unhealthy (responded with \"NOT_SERVING\")".into())
    );
    assert!(matches!(ask("none").await, Outcome::Failure(m) if m.contains("code 5")));
    server.abort();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(grpc_server(listener, false));
    let probe = probe(json!({"grpc": {"port": port}}));
    let outcome = check(&probe, &target(port), SECOND * 30).await;
    assert!(
        matches!(outcome, Outcome::Failure(m) if m.contains("does not implement the grpc health protocol"))
    );
    server.abort();
}

#[tokio::test]
async fn https_without_asking_who_it_is() {
    let key = rcgen::generate_simple_self_signed(vec!["nobody.example".to_owned()]);
    let key = key.expect("a certificate");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private.expect("a key"))
        .expect("a certificate");
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut stream = acceptor.accept(stream).await.expect("a handshake");
        let mut request = vec![0; 4096];
        let _ = stream.read(&mut request).await.expect("a request");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(answer).await.expect("an answer");
        stream.flush().await.expect("an answer");
    });
    let probe = probe(json!({"httpGet": {"port": port, "scheme": "HTTPS"}}));
    let outcome = check(&probe, &target(port), SECOND * 30).await;
    assert_eq!(outcome, Outcome::Success);
    server.await.expect("the server");
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_a_failure() {
    for unaskable in [
        json!({"tcpSocket": {"port": "admin"}}),
        json!({"httpGet": {"port": "admin"}}),
        json!({}),
    ] {
        let outcome = check(&probe(unaskable.clone()), &target(80), SECOND).await;
        assert!(
            matches!(outcome, Outcome::Error(_)),
            "{unaskable}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn grpc_answer_without_end_fails_the_probe() {
    use http_body_util::StreamBody;
    use hyper::body::{Bytes, Frame};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(|_| async {
                let piece = || {
                    Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(&[0; 4096])))
                };
                let body = StreamBody::new(futures::stream::iter(std::iter::repeat_with(piece)));
                Ok::<_, std::convert::Infallible>(http::Response::new(body))
            });
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    let probe = probe(json!({"grpc": {"port": port}}));
    let outcome = check(&probe, &target(port), SECOND * 30).await;
    // At its limit, and not when time is up.
    assert_eq!(outcome, Outcome::Failure("length limit exceeded".into()));
    server.abort();
}

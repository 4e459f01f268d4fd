use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn target(port: u16) -> Target {
    let mut environment = Environment::default();
    environment.set("COLOUR", "red");
    environment.set("PATH", "/usr/bin:/bin");
    Target {
        container: serde_json::from_value(
            json!({"name": "c", "ports": [{"name": "web", "containerPort": port}]}),
        )
        .expect("a container"),
        environment,
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
async fn a_command_in_the_containers_environment() {
    let good = probe(json!({"exec": {"command": ["sh", "-c", "test $COLOUR = red"]}}));
    assert_eq!(
        check(&good, &target(1), SECOND * 30).await,
        Outcome::Success
    );
    let bad = probe(json!({"exec": {"command": ["sh", "-c", "echo no luck; exit 3"]}}));
    let outcome = check(&bad, &target(1), SECOND * 30).await;
    assert!(
        matches!(&outcome, Outcome::Failure(m) if m.ends_with("no luck")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn silence_is_a_failure_and_the_unknown_is_not() {
    let slow = probe(json!({"exec": {"command": ["sleep", "1000"]}}));
    let outcome = check(&slow, &target(1), Duration::from_millis(20)).await;
    assert!(matches!(outcome, Outcome::Failure(m) if m.starts_with("no answer")));
    let grpc = probe(json!({"grpc": {"port": 1}}));
    assert!(matches!(
        check(&grpc, &target(1), SECOND).await,
        Outcome::Unknown(_)
    ));
}

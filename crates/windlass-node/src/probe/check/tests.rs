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

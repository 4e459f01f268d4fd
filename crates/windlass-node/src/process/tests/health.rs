//! Probes of real processes, and memcached.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bench::{Bench, processes, script};
use crate::pod::Health;
use crate::runtime::Runtime;

#[tokio::test]
async fn readiness_follows_the_probe() {
    let mut bench = Bench::new("readiness").await;
    let mut container = script("echo up; exec sleep 1000");
    container["readinessProbe"] = json!({"exec": {"command": ["true"]}});
    let pod = bench.pod("one", &container);
    let address = bench.start(&pod, 0).await;
    bench.started().await;
    bench.probe(&pod, address);
    assert_eq!(bench.probed().await, Health::good());
    bench
        .runtime
        .tear_down(pod.metadata.uid.as_deref().unwrap_or(""))
        .await;
    assert_eq!(bench.exited().await.exit_code, 137);
}

#[tokio::test]
async fn startup_comes_first_and_liveness_has_the_last_word() {
    let mut bench = Bench::new("liveness").await;
    let mut container = script("exec sleep 1000");
    container["startupProbe"] = json!({"exec": {"command": ["true"]}});
    container["livenessProbe"] =
        json!({"exec": {"command": ["sh", "-c", "echo sick; exit 1"]}, "failureThreshold": 1});
    let pod = bench.pod("one", &container);
    let address = bench.start(&pod, 0).await;
    bench.started().await;
    bench.probe(&pod, address);
    assert_eq!(bench.probed().await, Health::good());
    let verdict = bench.probed().await.unhealthy.expect("a verdict");
    assert!(verdict.contains("sick"), "{verdict}");
    assert!(bench.notes.iter().any(|note| note.reason == "Unhealthy"));
    bench
        .runtime
        .tear_down(pod.metadata.uid.as_deref().unwrap_or(""))
        .await;
}

#[tokio::test]
async fn memcached_answers_on_its_pods_address() {
    if crate::image::find("memcached", &std::env::var("PATH").unwrap_or_default()).is_none()
        && std::env::var_os("CI").is_none()
    {
        windlass_skip::skip("memcached is not installed");
        return;
    }
    let mut bench = Bench::new("memcached").await;
    // The container of the well-known sample, twice: same port, two addresses.
    let container = json!({
        "name": "main", "image": "memcached:1.4.36-alpine",
        "command": ["memcached", "-m", "64", "-o", "modern", "-v"],
        "readinessProbe": {"tcpSocket": {"port": 11211}, "periodSeconds": 1},
    });
    for name in ["one", "two"] {
        let pod = bench.pod(name, &container);
        let address = bench.start(&pod, 0).await;
        let image_id = bench.started().await;
        bench.probe(&pod, address);
        assert!(image_id.contains("/memcached@1."), "{image_id}");
        assert_eq!(bench.probed().await, Health::good());
        let mut stream = TcpStream::connect((address, 11211))
            .await
            .expect("a connection");
        stream
            .write_all(b"stats\r\nquit\r\n")
            .await
            .expect("a question");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.contains("STAT pid"), "{answer}");
    }
    assert!(bench.notes.iter().any(|note| note.reason == "OtherVersion"));
    bench.runtime.drain(Duration::from_secs(10)).await;
    for name in ["one", "two"] {
        assert_eq!(processes(&bench.pod(name, &container)), [] as [i32; 0]);
    }
}

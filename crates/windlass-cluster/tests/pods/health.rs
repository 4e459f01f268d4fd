//! Probes of real containers. What answers over the network stands at the pod's address, in the
//! hands of the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::stage::{Stage, condition, end, script, status};

/// Answers every request at an address with a status that can be changed.
fn answer(listener: TcpListener, code: Arc<AtomicU16>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let code = code.load(Ordering::SeqCst);
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let answer =
                format!("HTTP/1.1 {code} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_follows_what_is_answered() {
    let stage = Stage::new("readiness").await;
    let mut http = script("http", "exec sleep 1000");
    http["ports"] = json!([{"name": "web", "containerPort": 18080}]);
    http["readinessProbe"] = json!({"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1});
    let mut tcp = script("tcp", "exec sleep 1000");
    tcp["readinessProbe"] = json!({"tcpSocket": {"port": 18081}, "periodSeconds": 1});
    stage.pod("one", json!({"containers": [http, tcp]})).await;
    let pod = stage.running("one").await;
    assert_eq!(condition(&pod, "Ready"), "False");
    let address = pod
        .status
        .as_ref()
        .and_then(|s| s.pod_ip.clone())
        .expect("an address");
    let told = stage.told("one", "Unhealthy").await;
    assert!(told.starts_with("Readiness probe failed: "), "{told}");
    assert!(told.contains("connection refused"), "{told}");

    let code = Arc::new(AtomicU16::new(200));
    let web = TcpListener::bind((address.as_str(), 18080))
        .await
        .expect("a port");
    let web = answer(web, code.clone());
    let plain = TcpListener::bind((address.as_str(), 18081))
        .await
        .expect("a port");
    let plain = answer(plain, code.clone());
    let pod = stage.ready("one").await;
    assert!(status(&pod, "http").is_some_and(|s| s.ready && s.restart_count == 0));
    code.store(503, Ordering::SeqCst);
    let pod = stage
        .when("one", "unready", |pod| condition(pod, "Ready") == "False")
        .await;
    assert!(
        status(&pod, "tcp").is_some_and(|s| s.ready),
        "a port that answers is open"
    );
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.clone());
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|c| c.type_ == "ContainersReady");
    assert_eq!(
        ready.and_then(|c| c.message).as_deref(),
        Some("containers with unready status: [http]")
    );
    web.abort();
    plain.abort();
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn startup_comes_first_and_liveness_restarts() {
    let stage = Stage::new("liveness").await;
    let file = stage.folder.join("alive");
    let mut main = script("main", "trap '' TERM; echo up; while :; do sleep 0.1; done");
    main["startupProbe"] = json!({
        "exec": {"command": ["test", "-e", &file]}, "periodSeconds": 1, "failureThreshold": 600,
    });
    main["livenessProbe"] = json!({
        "exec": {"command": ["sh", "-c", format!("test -e {} || {{ echo sick; exit 1; }}", file.display())]},
        "periodSeconds": 1, "failureThreshold": 1, "terminationGracePeriodSeconds": 1,
    });
    // With the pod's own grace period this test would be too late.
    let spec = json!({"terminationGracePeriodSeconds": 600, "containers": [main]});
    stage.pod("one", spec).await;
    let pod = stage.running("one").await;
    let waiting = status(&pod, "main").expect("a status");
    assert!(waiting.started == Some(false) && !waiting.ready);
    std::fs::write(&file, "").expect("a file");
    let pod = stage.ready("one").await;
    assert!(status(&pod, "main").is_some_and(|s| s.started == Some(true)));
    std::fs::remove_file(&file).expect("removed");
    let begun = Instant::now();
    let pod = stage
        .when("one", "restarted", |pod| {
            status(pod, "main").is_some_and(|s| s.restart_count == 1)
        })
        .await;
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_eq!(end(&pod, "main").map(|end| end.0), Some(137));
    let told = stage.told("one", "Killing").await;
    assert!(told.contains("Liveness probe failed: sick"), "{told}");
    let params = kube::api::DeleteParams::default().grace_period(1);
    stage.delete("one", &params).await;
    stage.gone("one").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_startup_probe_that_never_succeeds_ends_the_container() {
    let stage = Stage::new("startup").await;
    let mut main = script("main", "exec sleep 1000");
    main["startupProbe"] =
        json!({"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2});
    let spec = json!({"restartPolicy": "Never", "containers": [main]});
    stage.pod("one", spec).await;
    let pod = stage.ended("one", "Failed").await;
    assert_eq!(end(&pod, "main").map(|end| end.0), Some(143));
    let told = stage.told("one", "Killing").await;
    assert!(told.contains("Startup probe failed"), "{told}");
    stage.stop().await;
}

//! Probes of real containers. What answers does so as the test wishes, by files they share.

use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Stage, UNTIL_ASKED, condition, end, python, script, status};

/// Answers every request at a port once it is told to go, and well unless it is sick.
const ANSWER: &str = "
import http.server, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if os.path.exists(f'{SHARED}/sick') else 200)
        self.send_header('Content-Length', '0')
        self.end_headers()
while not os.path.exists(f'{SHARED}/go'):
    time.sleep(0.05)
http.server.HTTPServer((ADDRESS, PORT), Answer).serve_forever()
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_follows_what_is_answered() {
    let stage = Stage::new("readiness").await;
    let answer = |name: &str, port: u16| {
        let shared = stage.shared.display();
        python(
            name,
            &format!("SHARED, PORT = '{shared}', {port}\n{ANSWER}"),
        )
    };
    let mut http = answer("http", 18080);
    http["ports"] = json!([{"name": "web", "containerPort": 18080}]);
    http["readinessProbe"] = json!({"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1});
    let mut tcp = answer("tcp", 18081);
    tcp["readinessProbe"] = json!({"tcpSocket": {"port": 18081}, "periodSeconds": 1});
    let spec = stage.sharing(json!({"containers": [http, tcp]}));
    stage.pod("one", spec).await;
    let pod = stage.running("one").await;
    assert_eq!(condition(&pod, "Ready"), "False");
    let told = stage.told("one", "Unhealthy").await;
    assert!(told.starts_with("Readiness probe failed: "), "{told}");
    assert!(told.contains("connection refused"), "{told}");

    std::fs::write(stage.shared.join("go"), "").expect("a file");
    let pod = stage.ready("one").await;
    assert!(status(&pod, "http").is_some_and(|s| s.ready && s.restart_count == 0));
    std::fs::write(stage.shared.join("sick"), "").expect("a file");
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
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn startup_comes_first_and_liveness_restarts() {
    let stage = Stage::new("liveness").await;
    let file = stage.shared.join("alive");
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
    stage.pod("one", stage.sharing(spec)).await;
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
    let mut main = script("main", UNTIL_ASKED);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_cannot_be_run_says_nothing_about_the_container() {
    let stage = Stage::new("unasked").await;
    let mut main = script("main", UNTIL_ASKED);
    main["livenessProbe"] = json!({
        "exec": {"command": ["no-such-program"]}, "periodSeconds": 1, "failureThreshold": 1,
    });
    // By the time it is ready, the other one has been tried as often.
    main["readinessProbe"] =
        json!({"exec": {"command": ["true"]}, "periodSeconds": 1, "successThreshold": 3});
    stage.pod("one", json!({"containers": [main]})).await;
    let pod = stage.ready("one").await;
    assert_eq!(status(&pod, "main").map(|s| s.restart_count), Some(0));
    let told = stage.told("one", "Unhealthy").await;
    let errored = "Liveness probe errored and resulted in unknown state: ";
    assert!(told.starts_with(errored), "{told}");
    assert!(told.contains("no-such-program"), "{told}");
    stage.stop().await;
}

//! What is done right after the start of a container, and right before its end.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use serde_json::json;

use super::stage::{Stage, UNTIL_ASKED, end, phase, python, script, waits};

/// Writes down what it is asked, and answers that it is not well: whatever is answered is an answer.
const WITNESS: &str = "
import http.server
class Witness(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(FILE, 'w') as file:
            file.write(f'{self.requestline}\\n{self.headers}')
        self.send_response(500)
        self.send_header('Content-Length', '0')
        self.end_headers()
http.server.HTTPServer((ADDRESS, 18090), Witness).serve_forever()
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_runs_once_its_first_hook_is_done() {
    let stage = Stage::new("post-start").await;
    let (begun, done) = (stage.shared.join("begun"), stage.shared.join("done"));
    let mut main = script("main", "exec sleep 1000");
    let hook = format!(
        "touch {}; until test -e {}; do sleep 0.05; done",
        begun.display(),
        done.display()
    );
    main["lifecycle"] = json!({"postStart": {"exec": {"command": ["sh", "-c", hook]}}});
    let spec = stage.sharing(json!({"containers": [main]}));
    stage.pod("one", spec).await;
    stage
        .until("the hook", || async { begun.exists().then_some(()) })
        .await;
    let pod = stage.pods().get("one").await.expect("a pod");
    assert_eq!(
        (phase(&pod), waits(&pod, "main").as_str()),
        ("Pending", "ContainerCreating")
    );
    std::fs::write(&done, "").expect("a file");
    stage.ready("one").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_hook_that_fails_ends_the_container() {
    let stage = Stage::new("post-start-fails").await;
    let mut main = script("main", UNTIL_ASKED);
    main["lifecycle"] =
        json!({"postStart": {"exec": {"command": ["sh", "-c", "echo no luck; exit 3"]}}});
    let spec = json!({"restartPolicy": "Never", "containers": [main]});
    stage.pod("one", spec).await;
    let pod = stage.ended("one", "Failed").await;
    assert_eq!(end(&pod, "main").map(|end| end.0), Some(143));
    let told = stage.told("one", "FailedPostStartHook").await;
    assert!(told.contains("exited with 3: no luck"), "{told}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_hook_comes_before_the_end_and_its_time_counts() {
    let stage = Stage::new("pre-stop").await;
    let file = stage.shared.join("order");
    let note = |word: &str| format!("echo {word} >> {}", file.display());
    let text = format!(
        "trap '{}; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        note("term")
    );
    let with = |name: &str, hook: serde_json::Value| {
        let mut container = script(name, &text);
        container["lifecycle"] = json!({"preStop": hook});
        stage.sharing(json!({"terminationGracePeriodSeconds": 30, "containers": [container]}))
    };
    let exec = json!({"exec": {"command": ["sh", "-c", format!("sleep 0.3; {}", note("hook"))]}});
    stage.pod("exec", with("main", exec)).await;
    stage.line("exec", "main", "up").await;
    stage.delete("exec", &DeleteParams::default()).await;
    stage.gone("exec").await;
    assert_eq!(
        std::fs::read_to_string(&file).expect("a file"),
        "hook\nterm\n"
    );

    // One that takes too long is given up; then there is hardly any time left.
    let mut slow = with("main", json!({"exec": {"command": ["sleep", "1000"]}}));
    slow["terminationGracePeriodSeconds"] = json!(1);
    slow["containers"][0]["command"] = json!([
        "sh",
        "-c",
        "trap '' TERM; echo up; while :; do sleep 0.05; done"
    ]);
    stage.pod("slow", slow).await;
    stage.line("slow", "main", "up").await;
    let begun = Instant::now();
    stage.delete("slow", &DeleteParams::default()).await;
    stage.gone("slow").await;
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(2) && took < Duration::from_secs(30),
        "{took:?}"
    );
    let told = stage.told("slow", "FailedPreStopHook").await;
    assert!(told.contains("took longer than 1s"), "{told}");

    let begun = Instant::now();
    let sleep = json!({"sleep": {"seconds": 2}});
    stage.pod("sleep", with("main", sleep)).await;
    stage.line("sleep", "main", "up").await;
    stage.delete("sleep", &DeleteParams::default()).await;
    stage.gone("sleep").await;
    assert!(begun.elapsed() > Duration::from_secs(2));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_may_ask_over_http() {
    let stage = Stage::new("http-hook").await;
    let file = stage.shared.join("asked");
    let program = format!("FILE = '{}'\n{WITNESS}", file.display());
    let mut main = python("main", &program);
    main["readinessProbe"] = json!({"tcpSocket": {"port": 18090}, "periodSeconds": 1});
    main["lifecycle"] = json!({"preStop": {"httpGet": {"path": "/bye", "port": 18090}}});
    let spec = json!({"terminationGracePeriodSeconds": 20, "containers": [main]});
    stage.pod("one", stage.sharing(spec)).await;
    stage.ready("one").await;
    stage.delete("one", &DeleteParams::default()).await;
    stage.gone("one").await;
    let request = std::fs::read_to_string(&file).expect("a question");
    assert!(request.starts_with("GET /bye HTTP/1.1\n"), "{request}");
    assert!(
        request
            .to_ascii_lowercase()
            .contains("user-agent: kube-lifecycle/1.36\n"),
        "{request}"
    );
    assert!(!stage.events("one").await.contains_key("FailedPreStopHook"));
    stage.stop().await;
}

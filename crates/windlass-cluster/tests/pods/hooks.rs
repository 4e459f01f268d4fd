//! What is done right after the start of a container, and right before its end.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::stage::{Stage, end, phase, script, status, waits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_runs_once_its_first_hook_is_done() {
    let stage = Stage::new("post-start").await;
    let (begun, done) = (stage.folder.join("begun"), stage.folder.join("done"));
    let mut main = script("main", "exec sleep 1000");
    let hook = format!(
        "touch {}; until test -e {}; do sleep 0.05; done",
        begun.display(),
        done.display()
    );
    main["lifecycle"] = json!({"postStart": {"exec": {"command": ["sh", "-c", hook]}}});
    stage.pod("one", json!({"containers": [main]})).await;
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
    let mut main = script("main", "exec sleep 1000");
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
    let file = stage.folder.join("order");
    let note = |word: &str| format!("echo {word} >> {}", file.display());
    let text = format!(
        "trap '{}; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        note("term")
    );
    let with = |name: &str, hook: serde_json::Value| {
        let mut container = script(name, &text);
        container["lifecycle"] = json!({"preStop": hook});
        json!({"terminationGracePeriodSeconds": 30, "containers": [container]})
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
    let mut main = script("main", "exec sleep 1000");
    main["lifecycle"] = json!({"preStop": {"httpGet": {"path": "/bye", "port": 18090}}});
    let spec = json!({"terminationGracePeriodSeconds": 20, "containers": [main]});
    stage.pod("one", spec).await;
    let pod = stage.ready("one").await;
    let address = pod
        .status
        .as_ref()
        .and_then(|s| s.pod_ip.clone())
        .expect("an address");
    let listener = TcpListener::bind((address.as_str(), 18090))
        .await
        .expect("a port");
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a question");
        let mut request = [0; 1024];
        let length = stream.read(&mut request).await.expect("a question");
        // Whatever is answered is an answer.
        let _ = stream
            .write_all(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
            .await;
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    stage.delete("one", &DeleteParams::default()).await;
    stage.gone("one").await;
    let request = asked.await.expect("a question");
    assert!(request.starts_with("GET /bye HTTP/1.1\r\n"), "{request}");
    assert!(
        request
            .to_ascii_lowercase()
            .contains("user-agent: kube-lifecycle/1.36"),
        "{request}"
    );
    assert!(!stage.events("one").await.contains_key("FailedPreStopHook"));
    assert!(status(&pod, "main").is_some());
    stage.stop().await;
}

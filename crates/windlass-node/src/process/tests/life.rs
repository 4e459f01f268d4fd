//! Start, output, end.

use std::time::{Duration, Instant};

use serde_json::json;

use super::bench::{Bench, processes, script};
use crate::pod::Refusal;
use crate::runtime::{Report, Runtime};

#[tokio::test]
async fn output_and_exit_code() {
    let mut bench = Bench::new("exit-code").await;
    let pod = bench.pod("one", &script("echo out; echo err >&2; exit 3"));
    bench.start(&pod, 0).await;
    let image_id = bench.started().await;
    assert!(
        image_id.starts_with("host:///") && image_id.ends_with("/sh#busybox"),
        "{image_id}"
    );
    let end = bench.exited().await;
    assert_eq!((end.exit_code, end.reason.as_str()), (3, "Error"));
    let mut lines: Vec<String> = bench
        .output("one")
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["err", "out"]);
}

#[tokio::test]
async fn a_signal_counts_as_128_and_its_number() {
    // `$$` is one dollar sign once the node has expanded it, as in Kubernetes.
    let mut bench = Bench::new("signal").await;
    let pod = bench.pod("one", &script("kill -SEGV $$$$"));
    bench.start(&pod, 0).await;
    bench.started().await;
    assert_eq!(bench.exited().await.exit_code, 139);
}

#[tokio::test]
async fn the_environment_and_its_expansion() {
    let mut bench = Bench::new("environment").await;
    let mut container = script("echo $POD_IP $WORD $1 $KUBERNETES_SERVICE_PORT $0");
    container["args"] = json!(["$(WORD)-$(NOWHERE)", "$(POD_IP)"]);
    container["env"] = json!([
        {"name": "WORD", "value": "hello"},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]);
    let pod = bench.pod("one", &container);
    let address = bench.start(&pod, 0).await;
    bench.started().await;
    assert_eq!(bench.exited().await.exit_code, 0);
    assert_eq!(
        bench.output("one").await,
        format!("{address} hello {address} 6443 hello-$(NOWHERE)\n")
    );
}

#[tokio::test]
async fn the_whole_tree_ends_with_its_first_process() {
    let mut bench = Bench::new("tree").await;
    // One that left the process group, one that lost its environment, one that stayed.
    let pod = bench.pod(
        "one",
        &script("setsid sleep 1000 & env -i sleep 1001 & sleep 1002 & echo $!; wait"),
    );
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    assert!(processes(&pod).len() >= 3, "{:?}", processes(&pod));
    bench.runtime.stop(
        pod.metadata.uid.as_deref().unwrap_or(""),
        "main",
        Duration::from_secs(30),
    );
    assert_eq!(bench.exited().await.exit_code, 143);
    assert_eq!(processes(&pod), [] as [i32; 0]);
    let table = std::process::Command::new("ps")
        .args(["-eo", "args"])
        .output();
    if let Ok(table) = table {
        let table = String::from_utf8_lossy(&table.stdout).into_owned();
        assert!(
            !table.contains("sleep 1001"),
            "the one without an environment is left"
        );
    }
}

#[tokio::test]
async fn a_process_may_use_its_grace_period() {
    let mut bench = Bench::new("grace").await;
    let pod = bench.pod(
        "one",
        &script("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done"),
    );
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    bench.runtime.stop(
        pod.metadata.uid.as_deref().unwrap_or(""),
        "main",
        Duration::from_mins(1),
    );
    assert_eq!(bench.exited().await.exit_code, 7);
    assert_eq!(bench.output("one").await, "up\nbye\n");
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed() {
    let mut bench = Bench::new("kill").await;
    let pod = bench.pod(
        "one",
        &script("trap '' TERM; echo up; while :; do sleep 0.01; done"),
    );
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    let asked = Instant::now();
    let uid = pod.metadata.uid.as_deref().unwrap_or("");
    // A second request in more of a hurry than the first.
    bench.runtime.stop(uid, "main", Duration::from_mins(1));
    bench.runtime.stop(uid, "main", Duration::from_millis(300));
    assert_eq!(bench.exited().await.exit_code, 137);
    assert!(asked.elapsed() >= Duration::from_millis(300));
    assert_eq!(processes(&pod), [] as [i32; 0]);
}

#[tokio::test]
async fn what_cannot_be_run_says_why() {
    let mut bench = Bench::new("refused").await;
    let unknown = bench.pod(
        "unknown",
        &json!({"name": "main", "image": "example.com/nothing:1"}),
    );
    bench.start(&unknown, 0).await;
    match bench.report().await {
        Report::Refused {
            refusal: Refusal::Image,
            message,
            ..
        } => {
            assert!(
                message.contains("add the image to images.yaml"),
                "{message}"
            );
        }
        other => panic!("not refused: {other:?}"),
    }
    let missing = bench.pod(
        "missing",
        &json!({"name": "main", "command": ["no-such-program"]}),
    );
    bench.start(&missing, 0).await;
    let end = bench.exited().await;
    assert_eq!((end.exit_code, end.reason.as_str()), (128, "StartError"));
    let message = end.message.unwrap_or_default();
    assert!(message.contains("executable file not found"), "{message}");
}

#[tokio::test]
async fn logs_of_the_present_run_and_of_the_one_before() {
    let mut bench = Bench::new("runs").await;
    let pod = bench.pod("one", &script("echo run"));
    for run in 0..4 {
        bench.start(&pod, run).await;
        bench.started().await;
        bench.exited().await;
    }
    let path = |previous| {
        bench
            .runtime
            .log(pod.metadata.uid.as_deref().unwrap_or(""), "main", previous)
            .map(|log| log.path)
    };
    assert!(path(false).is_some_and(|path| path.ends_with("3.log")));
    assert!(path(true).is_some_and(|path| path.ends_with("2.log")));
    let folder = path(false).expect("a path").with_file_name("1.log");
    assert!(!folder.exists(), "older logs are removed");
}

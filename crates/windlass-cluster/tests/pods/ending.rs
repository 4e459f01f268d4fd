//! Ends: grace periods, signals, exit codes and last messages.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use serde_json::json;

use super::stage::{Stage, end, is_sandboxed, marked, script, status, uid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_does_not_listen_dies_with_all_its_children() {
    let stage = Stage::new("deaf").await;
    // One child that leaves the process group, one that loses its environment; none listens.
    let deaf = "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & \
                env -i sleep 7654321 & echo up; while :; do sleep 0.1; done";
    let spec = json!({"terminationGracePeriodSeconds": 2, "containers": [script("main", deaf)]});
    let pod = stage.pod("one", spec).await;
    stage.line("one", "main", "up").await;
    let folder = stage.folder.to_string_lossy().into_owned();
    assert!(marked(&folder).len() >= 2);
    let begun = Instant::now();
    stage.delete("one", &DeleteParams::default()).await;
    stage.gone("one").await;
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(20),
        "{took:?}"
    );
    assert_eq!(marked(&folder), [] as [i32; 0]);
    let table = std::process::Command::new("ps")
        .args(["-eo", "args"])
        .output();
    let table = String::from_utf8_lossy(&table.expect("a table").stdout).into_owned();
    assert!(!table.contains("sleep 7654321"), "a child was left");
    // The node removes its folders once it is informed that the pod is gone.
    for kept in ["node/volumes", "node/pods"] {
        let folder = stage.folder.join(kept).join(uid(&pod));
        stage
            .until("the end of a pod's folder", || async {
                (!folder.exists()).then_some(())
            })
            .await;
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_in_a_hurry_does_not_wait_for_its_grace_period() {
    let stage = Stage::new("hurry").await;
    let deaf = "trap '' TERM; echo up; while :; do sleep 0.1; done";
    let spec = json!({"terminationGracePeriodSeconds": 600, "containers": [script("main", deaf)]});
    stage.pod("one", spec).await;
    stage.line("one", "main", "up").await;
    stage.delete("one", &DeleteParams::default()).await;
    stage
        .delete("one", &DeleteParams::default().grace_period(1))
        .await;
    stage.gone("one").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_and_signals_as_kubernetes_reports_them() {
    let stage = Stage::new("codes").await;
    let cases = [
        ("well", "exit 0", 0, "Completed", "Succeeded"),
        ("badly", "exit 3", 3, "Error", "Failed"),
        ("killed", "kill -KILL $$$$", 137, "Error", "Failed"),
        ("terminated", "kill -TERM $$$$", 143, "Error", "Failed"),
        ("broken", "kill -SEGV $$$$", 139, "Error", "Failed"),
    ];
    for (name, command, ..) in cases {
        // The first process of a PID namespace is not killed by its own.
        let command = match command.strip_prefix("kill ") {
            Some(_) if is_sandboxed() => format!("sh -c '{command}'; exit $?"),
            _ => command.to_owned(),
        };
        let command = command.as_str();
        let spec = json!({"restartPolicy": "Never", "containers": [script("main", command)]});
        stage.pod(name, spec).await;
    }
    for (name, _, code, reason, phase) in cases {
        let pod = stage.ended(name, phase).await;
        let (seen, why, _) = end(&pod, "main").expect("an end");
        assert_eq!((seen, why.as_str()), (code, reason), "{name}");
        let over = status(&pod, "main").and_then(|s| s.state.clone()?.terminated);
        let over = over.expect("an end");
        assert!(over.started_at.is_some() && over.finished_at.is_some());
        let id = over.container_id.unwrap_or_default();
        let runtime = id.split("://").next().unwrap_or_default();
        let known: &[&str] = if is_sandboxed() {
            &["runc", "crun"]
        } else {
            &["process"]
        };
        assert!(known.contains(&runtime), "{id}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_messages_from_a_file_and_from_the_log() {
    let stage = Stage::new("messages").await;
    let file = "echo spoken; printf written > $WINDLASS_TERMINATION_MESSAGE_PATH; exit 1";
    let with = |name: &str, command: &str, policy: &str| {
        let mut container = script(name, command);
        container["terminationMessagePolicy"] = json!(policy);
        container
    };
    let containers = [
        with("file", file, "File"),
        with("silent", "echo spoken; exit 1", "File"),
        with("log", "echo spoken >&2; exit 1", "FallbackToLogsOnError"),
        with("both", file, "FallbackToLogsOnError"),
        with("well", "echo spoken", "FallbackToLogsOnError"),
        with(
            "long",
            "yes 0123456789 | head -c 9000 > $WINDLASS_TERMINATION_MESSAGE_PATH",
            "File",
        ),
    ];
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    stage.pod("one", spec).await;
    let pod = stage.ended("one", "Failed").await;
    let message = |name: &str| end(&pod, name).map(|end| end.2).unwrap_or_default();
    assert_eq!(message("file"), "written");
    assert_eq!(message("silent"), "");
    assert_eq!(message("log"), "spoken\n");
    assert_eq!(message("both"), "written");
    assert_eq!(message("well"), "");
    assert_eq!(message("long").len(), 4096);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sidecars_end_after_the_others_and_the_last_first() {
    let stage = Stage::new("sidecars").await;
    let file = stage.shared.join("order");
    let last = |name: &str| {
        let file = file.display();
        let text = format!(
            "trap 'sleep 0.2; echo {name} >> {file}; exit 0' TERM; echo up; while :; do sleep 0.05; done"
        );
        let mut container = script(name, &text);
        if name != "main" {
            container["restartPolicy"] = json!("Always");
        }
        container
    };
    let spec = json!({
        "terminationGracePeriodSeconds": 30,
        "initContainers": [last("first"), last("second")],
        "containers": [last("main")],
    });
    stage.pod("one", stage.sharing(spec)).await;
    for name in ["first", "second", "main"] {
        stage.line("one", name, "up").await;
    }
    stage.delete("one", &DeleteParams::default()).await;
    stage.gone("one").await;
    let order = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(order, "main\nsecond\nfirst\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_takes_more_memory_than_it_may_is_killed_and_says_so() {
    let stage = Stage::new("memory").await;
    let greedy = |limit: &str| {
        let mut main = script("main", "exec python3 -c 'bytearray(200 << 20)'");
        main["resources"] = json!({"limits": {"memory": limit}});
        json!({"restartPolicy": "Never", "containers": [main]})
    };
    stage.pod("enough", greedy("1Gi")).await;
    let pod = stage.ended("enough", "Succeeded").await;
    let how = |end: (i32, String, String)| (end.0, end.1);
    assert_eq!(end(&pod, "main").map(how), Some((0, "Completed".into())));
    stage.pod("little", greedy("64Mi")).await;
    // Plain processes have no limits.
    let (phase, wanted) = if is_sandboxed() {
        ("Failed", (137, "OOMKilled".into()))
    } else {
        ("Succeeded", (0, "Completed".into()))
    };
    let pod = stage.ended("little", phase).await;
    assert_eq!(end(&pod, "main").map(how), Some(wanted));
    stage.stop().await;
}

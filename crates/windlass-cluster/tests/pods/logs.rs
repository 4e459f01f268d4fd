//! What containers have written, read by kubectl.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::kubectl::{PATIENCE, kubectls};
use super::stage::{Stage, script, status};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_as_they_are_asked_for() {
    let stage = Stage::new("logs").await;
    let file = stage.shared.join("go");
    let wait = format!("until test -e {}; do sleep 0.05; done", file.display());
    let main = script(
        "main",
        &format!("echo one; echo two; echo three; {wait}; echo four"),
    );
    let spec = json!({"restartPolicy": "Never", "containers": [main]});
    stage.pod("one", stage.sharing(spec)).await;
    stage.line("one", "main", "three").await;
    let crashing = script("main", "echo run $WINDLASS_VOLUME_DATA; exit 1");
    stage.pod("again", json!({"containers": [crashing]})).await;
    let kubectls = kubectls(&stage);
    for kubectl in &kubectls {
        let (code, out, error) = kubectl.run(&["logs", "one", "--tail=1"]).await;
        assert_eq!((code, out.as_str()), (0, "three\n"), "{error}");
        let (_, out, _) = kubectl
            .run(&["logs", "one", "--timestamps", "--tail=2"])
            .await;
        for (line, end) in out.lines().zip(["two", "three"]) {
            let (time, rest) = line.split_once(' ').expect("a time");
            assert!(
                time.ends_with('Z') && time.contains('T') && rest == end,
                "{line}"
            );
        }
        let (_, out, _) = kubectl.run(&["logs", "one", "--limit-bytes=5"]).await;
        assert_eq!(out, "one\nt");
        let (_, out, _) = kubectl
            .run(&["logs", "one", "--since-time=2099-01-01T00:00:00Z"])
            .await;
        assert_eq!(out, "");
        let (code, _, error) = kubectl.run(&["logs", "one", "--previous"]).await;
        assert_eq!(code, 1);
        assert!(
            error.contains("previous terminated container \"main\" in pod \"one\" not found"),
            "{error}"
        );
    }
    stage
        .when("again", "restarted", |pod| {
            status(pod, "main").is_some_and(|s| s.restart_count >= 1)
        })
        .await;
    for kubectl in &kubectls {
        let (code, out, error) = kubectl.run(&["logs", "again", "--previous"]).await;
        assert_eq!((code, out.as_str()), (0, "run\n"), "{error}");
    }
    let mut following: Vec<_> = kubectls
        .iter()
        .map(|kubectl| {
            kubectl
                .command(&["logs", "-f", "one"])
                .spawn()
                .expect("kubectl")
        })
        .collect();
    // Each has begun before the container goes on.
    let mut outputs = Vec::new();
    for child in &mut following {
        let mut lines = child
            .stdout
            .take()
            .map(BufReader::new)
            .expect("an output")
            .lines();
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        assert_eq!(
            first.expect("in time").expect("a line").as_deref(),
            Some("one")
        );
        outputs.push(lines);
    }
    std::fs::write(&file, "").expect("a file");
    for mut lines in outputs {
        let mut rest = Vec::new();
        while let Ok(Some(line)) = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .expect("in time")
        {
            rest.push(line);
        }
        assert_eq!(rest, ["two", "three", "four"]);
    }
    for mut child in following {
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
        assert!(ended.expect("in time").expect("an end").success());
    }
    stage.stop().await;
}

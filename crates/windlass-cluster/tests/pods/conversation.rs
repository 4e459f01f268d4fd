//! Talking to containers with kubectl: commands, copies and attaching.

use std::path::PathBuf;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::kubectl::{PATIENCE, kubectls};
use super::stage::{Stage, end, is_sandboxed, script, status};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_in_containers() {
    let stage = Stage::new("exec").await;
    let mut main = script("main", "exec sleep 1000");
    main["env"] = json!([{"name": "COLOUR", "value": "red"}]);
    let containers = json!([
        main,
        script("side", "exec sleep 1000"),
        script("over", "exit 0")
    ]);
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    stage.pod("one", spec).await;
    stage
        .when("one", "half over", |pod| {
            let ready = |name: &str| status(pod, name).is_some_and(|s| s.ready);
            ready("main") && ready("side") && end(pod, "over").is_some()
        })
        .await;
    for kubectl in kubectls(&stage) {
        let exec = ["exec", "one", "-c", "main", "--"];
        let line = "echo out $COLOUR; echo err >&2; exit 3";
        let (code, out, error) = kubectl
            .run(&[&exec[..], &["sh", "-c", line]].concat())
            .await;
        assert_eq!((code, out.as_str()), (3, "out red\n"), "{error}");
        assert!(error.contains("err\n"), "{error}");
        assert!(
            error.contains("command terminated with exit code 3"),
            "{error}"
        );

        let (code, out, error) = kubectl.run(&[&exec[..], &["true"]].concat()).await;
        assert_eq!((code, out.as_str(), error.as_str()), (0, "", ""));

        // A megabyte there and back, and the end of the input is heard.
        let much = vec![b'x'; 1 << 20];
        let (code, out, error) = kubectl
            .fed(&["exec", "-i", "one", "-c", "main", "--", "cat"], &much)
            .await;
        assert_eq!((code, out.len()), (0, much.len()), "{error}");

        let (code, _, error) = kubectl
            .run(&[&exec[..], &["no-such-program"]].concat())
            .await;
        assert_eq!(code, 1);
        let who = if is_sandboxed() {
            "OCI runtime exec failed: exec failed: unable to start container process"
        } else {
            "exec failed"
        };
        let why = "exec: \"no-such-program\": executable file not found in $PATH";
        let told = format!("error executing command in container: {who}: {why}");
        assert!(error.contains(&told), "{error}");

        let (code, _, error) = kubectl
            .run(&["exec", "one", "-c", "over", "--", "true"])
            .await;
        assert_eq!(code, 1);
        assert!(error.contains("container not found (\"over\")"), "{error}");

        let (code, _, error) = kubectl.run(&["exec", "nobody", "--", "true"]).await;
        assert_eq!(code, 1);
        assert!(error.contains("pods \"nobody\" not found"), "{error}");
        let (code, _, error) = kubectl
            .run(&["exec", "one", "-c", "none", "--", "true"])
            .await;
        assert_eq!(code, 1);
        assert!(
            error.contains("container none") || error.contains("container not found"),
            "{error}"
        );
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interactive_command_has_a_terminal_of_the_right_size() {
    let stage = Stage::new("exec-tty").await;
    stage
        .pod(
            "one",
            json!({"containers": [script("main", "exec sleep 1000")]}),
        )
        .await;
    stage.ready("one").await;
    for kubectl in kubectls(&stage) {
        // The size comes after the start, as it does when a window is changed.
        let line = "test -t 0 && test -t 1 && until test \\\"`stty size`\\\" = \\\"40 100\\\"; do sleep 0.05; done; echo sized $TERM; exit 5";
        let rest = format!(
            "exec -it one -- sh -c \"{}\"",
            line.replace('`', "\\`").replace("$TERM", "\\$TERM")
        );
        let (code, out, error) = kubectl.at_terminal(&rest).await;
        assert!(out.contains("sized xterm"), "{out} {error}");
        assert!(out.contains("exit code 5"), "{out} {error}");
        assert_eq!(code, 5, "{out} {error}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_copied_both_ways() {
    let stage = Stage::new("cp").await;
    let spec = json!({"containers": [script("main", "exec sleep 1000")]});
    stage.pod("one", stage.sharing(spec)).await;
    stage.ready("one").await;
    for (number, kubectl) in kubectls(&stage).iter().enumerate() {
        let name = |name: &str| format!("{name}-{number}");
        let from = stage.folder.join(name("from"));
        let there = stage.shared.join(name("there"));
        let back = stage.folder.join(name("back"));
        let content: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&from, &content).expect("a file");
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let remote = format!("one:{}", text(&there));
        let (code, _, error) = kubectl.run(&["cp", &text(&from), &remote]).await;
        assert_eq!(code, 0, "{error}");
        let (code, _, error) = kubectl.run(&["cp", &remote, &text(&back)]).await;
        assert_eq!(code, 0, "{error}");
        assert!(
            std::fs::read(&back).expect("a file") == content,
            "something else came back"
        );
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_is_joined() {
    let stage = Stage::new("attach").await;
    for (number, kubectl) in kubectls(&stage).iter().enumerate() {
        let plain = format!("plain-{number}");
        let mut main = script(
            "main",
            "while read line; do echo heard $line; test $line = end && exit 0; done; echo over",
        );
        main["stdin"] = json!(true);
        main["stdinOnce"] = json!(true);
        stage
            .pod(
                &plain,
                json!({"restartPolicy": "Never", "containers": [main]}),
            )
            .await;
        stage.ready(&plain).await;
        let (code, out, error) = kubectl
            .fed(&["attach", "-i", &plain], b"hello\nend\n")
            .await;
        assert_eq!(code, 0, "{out} {error}");
        assert!(out.contains("heard hello\nheard end\n"), "{out} {error}");
        stage.ended(&plain, "Succeeded").await;

        // Watching alone; it goes on without whoever watched.
        let steady = format!("steady-{number}");
        stage
            .pod(
                &steady,
                json!({"containers": [script("main", "while :; do echo tick; sleep 0.1; done")]}),
            )
            .await;
        stage.ready(&steady).await;
        let mut child = kubectl
            .command(&["attach", &steady])
            .spawn()
            .expect("kubectl");
        let mut lines = child
            .stdout
            .take()
            .map(BufReader::new)
            .expect("an output")
            .lines();
        for _ in 0..3 {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
            assert_eq!(
                line.expect("in time").expect("a line").as_deref(),
                Some("tick")
            );
        }
        child.kill().await.expect("killed");
        let pod = stage.pods().get(&steady).await.expect("a pod");
        assert!(status(&pod, "main").is_some_and(|s| s.ready && s.restart_count == 0));

        // At a terminal, which the container has had from the start.
        let typed = format!("typed-{number}");
        let mut main = script(
            "main",
            "until test \"`stty size`\" = '40 100'; do sleep 0.05; done; echo sized; sleep 0.3",
        );
        main["stdin"] = json!(true);
        main["tty"] = json!(true);
        stage
            .pod(
                &typed,
                json!({"restartPolicy": "Never", "containers": [main]}),
            )
            .await;
        stage.ready(&typed).await;
        let (_, out, error) = kubectl.at_terminal(&format!("attach -it {typed}")).await;
        assert!(out.contains("sized"), "{out} {error}");
        stage.ended(&typed, "Succeeded").await;
    }
    stage.stop().await;
}

//! Talking to containers with kubectl: commands, copies, attaching, ports and logs.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::stage::{Stage, end, script, status};

const PATIENCE: Duration = Duration::from_mins(1);

/// One kubectl, and the cluster it talks to.
struct Kubectl {
    program: PathBuf,
    config: PathBuf,
}

/// Every kubectl that is there; at least one must be.
fn kubectls(stage: &Stage) -> Vec<Kubectl> {
    let config = stage.folder.join("kubeconfig");
    let text = serde_json::to_string(stage.cluster().kubeconfig()).expect("a kubeconfig");
    std::fs::write(&config, text).expect("a file");
    let found: Vec<Kubectl> = ["KUBECTL", "KUBECTL_OLD"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(|program| Kubectl {
            program: program.into(),
            config: config.clone(),
        })
        .collect();
    assert!(
        !found.is_empty(),
        "set KUBECTL to kubectl 1.37 or KUBECTL_OLD to kubectl 1.32: scripts/test does"
    );
    found
}

impl Kubectl {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.config)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(self.command(args).output()).await
    }

    /// With something to read.
    async fn fed(&self, args: &[&str], input: &[u8]) -> (i32, String, String) {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .spawn()
            .expect("kubectl");
        let mut stdin = child.stdin.take().expect("an input");
        stdin.write_all(input).await.expect("an input");
        drop(stdin);
        told(child.wait_with_output()).await
    }

    /// At a terminal of 100 columns and 40 rows.
    async fn at_terminal(&self, rest: &str) -> (i32, String, String) {
        let line = format!(
            "stty rows 40 cols 100; {} --kubeconfig {} {rest}",
            self.program.display(),
            self.config.display()
        );
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the program script");
        // Held open: the end of its input would be the end of the terminal.
        let stdin = child.stdin.take();
        let output = told(child.wait_with_output()).await;
        drop(stdin);
        output
    }
}

async fn told(output: impl Future<Output = std::io::Result<Output>>) -> (i32, String, String) {
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.expect("an end in time").expect("an end");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

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
        assert!(
            error.contains("executable file not found in $PATH"),
            "{error}"
        );

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
    stage
        .pod(
            "one",
            json!({"containers": [script("main", "exec sleep 1000")]}),
        )
        .await;
    stage.ready("one").await;
    for (number, kubectl) in kubectls(&stage).iter().enumerate() {
        let path = |name: &str| stage.folder.join(format!("{name}-{number}"));
        let (from, there, back) = (path("from"), path("there"), path("back"));
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
async fn ports_are_forwarded() {
    let stage = Stage::new("forward").await;
    stage
        .pod(
            "one",
            json!({"containers": [script("main", "exec sleep 1000")]}),
        )
        .await;
    let pod = stage.ready("one").await;
    let address = pod
        .status
        .and_then(|status| status.pod_ip)
        .expect("an address");
    // An echo at the pod's address.
    let listener = TcpListener::bind((address.as_str(), 18100))
        .await
        .expect("a port");
    let echo = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    for kubectl in kubectls(&stage) {
        let (mut child, port) = forward(&kubectl, "18100").await;
        let talk = async |length: usize| {
            let mut stream = TcpStream::connect(("127.0.0.1", port))
                .await
                .expect("a connection");
            let sent: Vec<u8> = (0..length)
                .map(|n| u8::try_from(n % 251).unwrap_or(0))
                .collect();
            let (mut from, mut to) = stream.split();
            let (written, back) = futures::join!(
                async {
                    to.write_all(&sent).await?;
                    to.shutdown().await
                },
                async {
                    let mut back = Vec::new();
                    from.read_to_end(&mut back).await.map(|_| back)
                }
            );
            written.expect("written");
            assert!(back.expect("an answer") == sent, "something else came back");
        };
        // Several connections at once, and one after them.
        tokio::time::timeout(PATIENCE, async {
            futures::join!(talk(10), talk(2_000_000), talk(300_000));
            talk(5).await;
        })
        .await
        .expect("in time");
        child.kill().await.expect("killed");

        // Where nobody listens, kubectl says so.
        let (mut child, port) = forward(&kubectl, "18101").await;
        let mut stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("a connection");
        let mut nothing = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut nothing)).await;
        assert_eq!(nothing, b"");
        let mut error = child.stderr.take().map(BufReader::new).expect("errors");
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, error.read_line(&mut line))
            .await
            .expect("in time")
            .expect("a line");
        assert!(line.contains("error forwarding port 18101"), "{line}");
        assert!(
            line.to_ascii_lowercase().contains("connection refused"),
            "{line}"
        );
        child.kill().await.expect("killed");
    }
    echo.abort();
    stage.stop().await;
}

/// Forwards a port of the pod, and says where from.
async fn forward(kubectl: &Kubectl, port: &str) -> (Child, u16) {
    let port = format!(":{port}");
    let args = ["port-forward", "--address", "127.0.0.1", "pod/one", &port];
    let mut child = kubectl.command(&args).spawn().expect("kubectl");
    let mut out = child.stdout.take().map(BufReader::new).expect("an output");
    let mut line = String::new();
    let read = tokio::time::timeout(PATIENCE, out.read_line(&mut line)).await;
    read.expect("in time").expect("a line");
    // Read on, or it would stop at a full pipe.
    tokio::spawn(async move { tokio::io::copy(&mut out, &mut tokio::io::sink()).await });
    let local = line.strip_prefix("Forwarding from 127.0.0.1:");
    let local = local.and_then(|rest| rest.split(' ').next()?.parse().ok());
    (
        child,
        local.unwrap_or_else(|| panic!("no port in {line:?}")),
    )
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_as_they_are_asked_for() {
    let stage = Stage::new("logs").await;
    let file = stage.folder.join("go");
    let wait = format!("until test -e {}; do sleep 0.05; done", file.display());
    let main = script(
        "main",
        &format!("echo one; echo two; echo three; {wait}; echo four"),
    );
    stage
        .pod(
            "one",
            json!({"restartPolicy": "Never", "containers": [main]}),
        )
        .await;
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

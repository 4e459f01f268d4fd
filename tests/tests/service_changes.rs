//! Services on both runtimes: clients stick to an endpoint where a Service says so, and addresses and
//! names follow changes soon.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_tests::machine::is_root;
use windlass_tests::{Folder, ready_pods};

/// Servers on a port that needs no privileges, behind a Service that is sticky and one that is not.
const CACHES: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec:
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 3}}
  selector: {app: cache}
  ports: [{port: 11211}]
---
apiVersion: v1
kind: Service
metadata: {name: plain}
spec:
  selector: {app: cache}
  ports: [{port: 11211}]
---
apiVersion: v1
kind: Service
metadata: {name: one}
spec:
  clusterIP: None
  selector: {app: cache, one: "yes"}
  ports: [{port: 11211}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cache}
spec:
  replicas: 3
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: memcached
        readinessProbe: {tcpSocket: {port: 11211}, periodSeconds: 1}
"#;

const ALONE: &str = "
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: memcached}]
";

/// A cluster with the servers in it; none where there can be no sandboxes.
#[track_caller]
fn caches(test: &str, runtime: &str) -> Option<Folder> {
    if runtime == "sandbox" && !is_root() {
        windlass_skip::skip("sandboxes need root");
        return None;
    }
    let folder = Folder::new(&format!("{test}-{runtime}"));
    folder.windlass_ok(&["up", "--runtime", runtime, "--detach"]);
    fs::write(folder.path().join("caches.yaml"), CACHES).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "caches.yaml"]);
    folder.until("three ready pods", |status| {
        (ready_pods(status).len() == 3).then_some(())
    });
    Some(folder)
}

fn address(folder: &Folder, service: &str) -> String {
    folder.kubectl(&[
        "get",
        "service",
        service,
        "-o",
        "jsonpath={.spec.clusterIP}",
    ])
}

/// What a server at an address answers.
fn ask(address: &str, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect((address, 11211)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(command.as_bytes()).ok()?;
    stream.write_all(b"quit\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Gives each server something to tell it by: the address it is at.
fn mark(folder: &Folder) {
    for (_, address) in ready_pods(&folder.status()) {
        let set = format!("set mark 0 0 {}\r\n{address}\r\n", address.len());
        assert_eq!(ask(&address, &set).as_deref(), Some("STORED\r\n"));
    }
}

/// The server that an address leads to.
fn server(address: &str) -> Option<String> {
    Some(ask(address, "get mark\r\n")?.lines().nth(1)?.to_owned())
}

fn servers(address: &str, connections: usize) -> BTreeSet<String> {
    (0..connections).filter_map(|_| server(address)).collect()
}

fn a_client_sticks_to_its_server(runtime: &str) {
    let Some(folder) = caches("sticky", runtime) else {
        return;
    };
    mark(&folder);
    let (sticky, plain) = (address(&folder, "sticky"), address(&folder, "plain"));
    folder.until("an answer through both", |_| {
        server(&sticky).and_then(|_| server(&plain))
    });
    let first = servers(&sticky, 30);
    assert_eq!(first.len(), 1, "{first:?}");
    // Without it thirty connections do not all go to one of three.
    assert!(servers(&plain, 30).len() > 1);
    // The server goes: the client is sent to another, and sticks to that.
    let gone = first.first().expect("a server").clone();
    let pods = ready_pods(&folder.status());
    let (name, _) = pods.iter().find(|(_, at)| *at == gone).expect("its pod");
    folder.kubectl(&["label", "pod", name, "app-"]);
    let second = folder.until("another server", |_| {
        server(&sticky).filter(|server| *server != gone)
    });
    assert_eq!(servers(&sticky, 30), BTreeSet::from([second]));
}

/// How long after each of several changes something was seen.
fn are_short(what: &str, delays: &[Duration]) {
    println!("{what} followed changes within {delays:?}");
    let longest = delays.iter().max().expect("delays");
    assert!(*longest < Duration::from_secs(1), "{what}: {delays:?}");
}

/// Does something and measures how long it takes until it is seen.
fn delay(change: impl FnOnce(), is_seen: impl Fn() -> bool) -> Duration {
    change();
    let begun = Instant::now();
    while !is_seen() {
        assert!(begun.elapsed() < Duration::from_secs(10), "never seen");
        // A flood of connections fills a queue of the kernel, and the next one has to try twice.
        std::thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

fn addresses_follow_changes(runtime: &str) {
    let Some(folder) = caches("addresses", runtime) else {
        return;
    };
    let plain = address(&folder, "plain");
    folder.until("an answer", |_| ask(&plain, "version\r\n"));
    // One pod that nobody replaces, whose label is taken and given back.
    folder.kubectl(&["scale", "deployment/cache", "--replicas=0"]);
    folder.until("no pods", |status| {
        status["pods"].as_array()?.is_empty().then_some(())
    });
    fs::write(folder.path().join("alone.yaml"), ALONE).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "alone.yaml"]);
    folder.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "--timeout=60s",
        "pod/alone",
    ]);
    let reaches = || TcpStream::connect((plain.as_str(), 11211)).is_ok();
    let mut delays = Vec::new();
    for _ in 0..3 {
        let label = |label: &str| drop(folder.kubectl(&["label", "pod", "alone", label]));
        delays.push(delay(|| label("app=cache"), reaches));
        delays.push(delay(|| label("app-"), || !reaches()));
    }
    are_short(&format!("a ClusterIP ({runtime})"), &delays);
}

#[test]
fn a_client_sticks_to_its_server_with_processes() {
    a_client_sticks_to_its_server("process");
}

#[test]
fn a_client_sticks_to_its_server_with_sandboxes() {
    a_client_sticks_to_its_server("sandbox");
}

#[test]
fn addresses_follow_changes_with_processes() {
    addresses_follow_changes("process");
}

#[test]
fn addresses_follow_changes_with_sandboxes() {
    addresses_follow_changes("sandbox");
}

/// The addresses that the cluster's own server gives for a headless Service, asked from a pod.
#[test]
fn names_follow_changes() {
    let Some(folder) = caches("names", "sandbox") else {
        return;
    };
    let pods = ready_pods(&folder.status());
    let (asking, told) = (&pods[0].0, &pods[1].0);
    // One call that asks as fast as it can, so that starting it does not count.
    let script = "for i in $(seq 1 4000); do getent ahostsv4 one >/dev/null && echo yes || echo no; sleep 0.01; done";
    let mut delays = Vec::new();
    for _ in 0..3 {
        let kubeconfig = folder.path().join(".windlass/kubeconfig");
        let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        let mut child = Command::new(kubectl)
            .args(["exec", asking, "--", "sh", "-c", script])
            .env("KUBECONFIG", kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let mut answers = BufReader::new(child.stdout.take().expect("answers")).lines();
        let mut answered = |wanted: &str| answers.any(|line| line.expect("a line") == wanted);
        assert!(answered("no"));
        for (label, wanted) in [("one=yes", "yes"), ("one-", "no")] {
            folder.kubectl(&["label", "pod", told, label]);
            let begun = Instant::now();
            assert!(answered(wanted), "{label} was never seen");
            delays.push(begun.elapsed());
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    are_short("a name", &delays);
}

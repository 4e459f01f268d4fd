//! `windlass up` is killed with -9 and started again: pods go on as they are, in both runtimes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use windlass_tests::machine::{Traces, is_root, text};
use windlass_tests::{Folder, Signal, eventually, exists, memcached_pid_at, signal};

/// One that writes all the time, one that answers at a port, and two that end when a file appears.
/// `SIGNALS` stands for a folder that they and the test see.
const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: signals, hostPath: {path: SIGNALS}}]
  containers:
  - name: main
    image: none
    command: [sh, -c, "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done"]
    readinessProbe: {exec: {command: [sh, -c, "test ! -e SIGNALS/sick"]}, periodSeconds: 1, failureThreshold: 1}
    volumeMounts: [{name: signals, mountPath: SIGNALS}]
---
apiVersion: v1
kind: Pod
metadata: {name: cache}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: memcached
    readinessProbe: {tcpSocket: {port: 11211}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  volumes: [{name: signals, hostPath: {path: SIGNALS}}]
  containers:
  - name: main
    image: none
    command: [sh, -c, "echo waiting; while [ ! -e SIGNALS/end ]; do sleep 0.05; done; echo ended; exit 7"]
    volumeMounts: [{name: signals, mountPath: SIGNALS}]
---
apiVersion: v1
kind: Pod
metadata: {name: again}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: signals, hostPath: {path: SIGNALS}}]
  containers:
  - name: main
    image: none
    command: [sh, -c, "[ -e SIGNALS/end ] && exec sleep 1000; while [ ! -e SIGNALS/end ]; do sleep 0.05; done; exit 3"]
    volumeMounts: [{name: signals, mountPath: SIGNALS}]
"#;

fn wait_for(what: &str, is: impl Fn() -> bool) {
    eventually(what, || is().then_some(()));
}

fn pid_of(folder: &Folder) -> i32 {
    let pid = folder.status()["pid"].as_i64();
    i32::try_from(pid.expect("status tells the process")).expect("a process number")
}

/// Kills the cluster. What it held, its folder's lock first of all, is free once it is gone.
fn kill(folder: &Folder) {
    let cluster = pid_of(folder);
    signal(cluster, Signal::KILL);
    wait_for("the end of the cluster", || !exists(cluster));
}

/// The pods of a status, by name.
fn pods(status: &Value) -> BTreeMap<String, Value> {
    let pods = status["pods"].as_array().into_iter().flatten();
    pods.filter_map(|pod| Some((pod["metadata"]["name"].as_str()?.to_owned(), pod.clone())))
        .collect()
}

fn main_of(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

/// The shims of a folder's pods, by the pods' uids.
fn shims(folder: &Path) -> BTreeMap<String, i32> {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let pods = format!("{}/.windlass/node/pods/", folder.display());
    let shim = |pid: i32| {
        let line = text(&format!("/proc/{pid}/cmdline"));
        let mut words = line.split('\0').skip_while(|word| *word != "pod-shim");
        let uid = words.nth(1)?.strip_prefix(&pods)?.to_owned();
        Some((uid, pid))
    };
    entries
        .filter_map(|entry| shim(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The first processes of a pod's containers: the children of its shim.
fn firsts(folder: &Path, pod: &Value) -> BTreeSet<String> {
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let Some(shim) = shims(folder).get(uid).copied() else {
        return BTreeSet::new();
    };
    let children = text(&format!("/proc/{shim}/task/{shim}/children"));
    children.split_whitespace().map(str::to_owned).collect()
}

/// What does not change when a container goes on: its id, its start, its runs, its processes.
fn identity(folder: &Path, pod: &Value) -> (Value, Value, Value, BTreeSet<String>) {
    let main = main_of(pod);
    (
        main["containerID"].clone(),
        main["state"]["running"]["startedAt"].clone(),
        main["restartCount"].clone(),
        firsts(folder, pod),
    )
}

fn log_of(folder: &Path, pod: &Value) -> PathBuf {
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let pod = folder.join(".windlass/node/pods").join(uid);
    pod.join("containers/main/0.log")
}

/// A `kubectl` that goes on until it is dropped.
struct Kubectl {
    child: Child,
    /// Kept open: it ends when nobody listens.
    lines: Lines<BufReader<ChildStdout>>,
}

impl Kubectl {
    fn start(folder: &Folder, args: &[&str]) -> Self {
        let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        let mut child = Command::new(kubectl)
            .args(args)
            .current_dir(folder.path())
            .env("KUBECONFIG", folder.path().join(".windlass/kubeconfig"))
            .env("KUBECACHEDIR", folder.path().join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let output = child.stdout.take().expect("its output");
        let lines = BufReader::new(output).lines();
        Self { child, lines }
    }

    fn line(&mut self, is: impl Fn(&str) -> bool) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find(|line| is(line)).expect("a line")
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole story, in one runtime.
fn pods_go_on(folder: &Folder, runtime: &str) {
    let before_all = Traces::now(folder.path());
    let up = ["up", "--runtime", runtime, "--detach"];
    folder.windlass_ok(&up);
    let signals = folder.path().join("signals");
    fs::create_dir(&signals).expect("a folder can be made");
    let yaml = PODS.replace("SIGNALS", &signals.to_string_lossy());
    fs::write(folder.path().join("pods.yaml"), yaml).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "pods.yaml"]);
    let before = folder.until("four pods that are ready", |status| {
        let pods = pods(status);
        let ready = |pod: &Value| main_of(pod)["ready"] == true;
        (pods.len() == 4 && pods.values().all(ready)).then_some(pods)
    });
    let address = folder.status()["address"].clone();
    let known = |name: &str, pods: &BTreeMap<String, Value>| identity(folder.path(), &pods[name]);
    let same = ["writer", "cache"].map(|name| (name, known(name, &before)));
    for (name, identity) in &same {
        assert_eq!(identity.3.len(), 1, "the processes of {name}: {identity:?}");
    }
    let ending: Vec<BTreeSet<String>> = ["once", "again"]
        .iter()
        .map(|name| firsts(folder.path(), &before[*name]))
        .collect();
    assert!(ending.iter().all(|pids| pids.len() == 1), "{ending:?}");

    kill(folder);
    // Two end and one writes while nobody looks.
    let log = log_of(folder.path(), &before["writer"]);
    let lines = || text(&log.to_string_lossy()).lines().count();
    let written = lines();
    fs::write(signals.join("end"), "").expect("a file can be written");
    let is_over = |pid: &String| !exists(pid.parse().expect("a process number"));
    wait_for("the two that end", || ending.iter().flatten().all(is_over));
    wait_for("what is written meanwhile", || lines() > written + 10);

    folder.windlass_ok(&up);
    assert_eq!(
        folder.status()["address"],
        address,
        "an old kubeconfig goes on working"
    );
    let after = folder.until("what ended meanwhile", |status| {
        let pods = pods(status);
        let once = &main_of(&pods["once"])["state"]["terminated"];
        let again = main_of(&pods["again"]);
        let ready = ["writer", "cache", "again"]
            .iter()
            .all(|name| main_of(&pods[*name])["ready"] == true);
        (once["exitCode"] == 7 && again["restartCount"] == 1 && ready).then_some(pods)
    });
    assert_eq!(after["once"]["status"]["phase"], "Failed");
    assert_eq!(main_of(&after["once"])["restartCount"], 0);
    let last = &main_of(&after["again"])["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 3, "{last}");
    assert_eq!(folder.kubectl(&["logs", "once"]), "waiting\nended\n");
    for (name, identity) in &same {
        assert_eq!(known(name, &after), *identity, "{name} did not go on");
    }
    // Nothing that was written is missing, and more comes.
    let said = folder.kubectl(&["logs", "writer"]);
    for (number, line) in (1..).zip(said.lines()) {
        assert_eq!(line, format!("line {number}"));
    }
    assert!(said.lines().count() > written + 10);
    wait_for("more of the log", || lines() > said.lines().count());

    talk(folder, &after);

    // Its probe still decides.
    fs::write(signals.join("sick"), "").expect("a file can be written");
    folder.until("the probe's word", |status| {
        (main_of(&pods(status)["writer"])["ready"] == false).then_some(())
    });
    // One that is over for good costs nothing.
    let uid = |name: &str| after[name]["metadata"]["uid"].as_str().expect("a uid");
    let running = shims(folder.path());
    assert!(!running.contains_key(uid("once")), "{running:?}");
    for shim in running.values() {
        let rollup = text(&format!("/proc/{shim}/smaps_rollup"));
        let of = |name: &str| rollup.lines().find(|line| line.starts_with(name));
        eprintln!(
            "{runtime}: a shim has {:?}, {:?}",
            of("Rss:"),
            of("Private_Dirty:")
        );
    }
    folder.kubectl(&["delete", "pod", "writer", "--timeout=30s"]);
    assert!(same[0].1.3.iter().all(is_over));
    folder.windlass_ok(&["down"]);
    let mut left = Traces::now(folder.path());
    // What the test itself has put there is no trace.
    left.files.clone_from(&before_all.files);
    assert_eq!(left, before_all);
}

/// Commands, attaching and ports of pods that have gone on.
fn talk(folder: &Folder, pods: &BTreeMap<String, Value>) {
    let said = folder.kubectl(&["exec", "writer", "--", "sh", "-c", "echo hello $HOSTNAME"]);
    assert_eq!(said, "hello writer\n");
    let mut attached = Kubectl::start(folder, &["attach", "writer"]);
    attached.line(|line| line.starts_with("line "));
    let mut forward = Kubectl::start(folder, &["port-forward", "pod/cache", ":11211"]);
    let line = forward.line(|line| line.starts_with("Forwarding from 127.0.0.1:"));
    let port = line
        .split(" -> ")
        .next()
        .and_then(|from| from.rsplit(':').next());
    let port = port.and_then(|port| port.parse().ok()).expect("a port");
    let pid = memcached_pid_at("127.0.0.1", port);
    let address = pods["cache"]["status"]["podIP"]
        .as_str()
        .expect("an address");
    assert!(pid.is_some(), "nobody answers at the forwarded port");
    assert_eq!(pid, memcached_pid_at(address, 11211));
}

#[test]
fn killed_with_9_and_started_again_processes_go_on() {
    pods_go_on(&Folder::new("killed-process"), "process");
}

#[test]
fn killed_with_9_and_started_again_sandboxes_go_on() {
    if !is_root() {
        windlass_skip::skip("sandboxes need root");
        return;
    }
    pods_go_on(&Folder::new("killed-sandbox"), "sandbox");
}

#[test]
fn killed_with_9_while_pods_start_nothing_is_lost_or_doubled() {
    let folder = Folder::new("killed-early");
    let up = ["up", "--runtime", "process", "--detach"];
    folder.windlass_ok(&up);
    let yaml = "apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 12
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: none, command: [sleep, '1234']}]
";
    fs::write(folder.path().join("many.yaml"), yaml).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "many.yaml"]);
    // As soon as some run, and the others do not yet.
    for _ in 0..3 {
        let some = shims(folder.path()).len() + 2;
        wait_for("some pods", || shims(folder.path()).len() >= some.min(12));
        kill(&folder);
        folder.windlass_ok(&up);
    }
    let pods = folder.until("all pods", |status| {
        let pods = pods(status);
        let ready = |pod: &Value| main_of(pod)["ready"] == true;
        (pods.len() == 12 && pods.values().all(ready)).then_some(pods)
    });
    for (name, pod) in &pods {
        let firsts = firsts(folder.path(), pod);
        assert_eq!(firsts.len(), 1, "{name} has {firsts:?}");
    }
    assert_eq!(shims(folder.path()).len(), 12);
    folder.windlass_ok(&["down"]);
    assert_eq!(shims(folder.path()).len(), 0);
    assert!(Traces::now(folder.path()).processes.is_empty());
}

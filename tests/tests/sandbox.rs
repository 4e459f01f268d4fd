//! Pods in sandboxes: namespaces, a network of their own, Services, names, and nothing left behind.
//!
//! They need root, and are skipped without it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_skip::skip;
use windlass_tests::machine::{Traces, is_root};
use windlass_tests::{Folder, Signal, memcached_pid, ready_pods, signal};

/// Starts the rest of a test only where sandboxes can be had.
#[track_caller]
fn sandbox(test: &str) -> Option<Folder> {
    if is_root() {
        return Some(Folder::new(test));
    }
    skip("sandboxes need root");
    None
}

fn pid_of(folder: &Folder) -> i32 {
    let pid = folder.status()["pid"]
        .as_i64()
        .expect("status tells the process");
    i32::try_from(pid).expect("a process number")
}

fn apply(folder: &Folder, name: &str, yaml: &str) {
    let path = folder.path().join(name);
    fs::write(&path, yaml).expect("a file can be written");
    folder.kubectl(&["apply", "-f", name]);
}

/// Until every pod of a status is ready, and there are as many as wanted.
fn ready(folder: &Folder, count: usize) -> Vec<(String, String)> {
    folder.until("the pods' readiness", |status| {
        let pods = ready_pods(status);
        (pods.len() == count && status["pods"].as_array()?.len() == count).then_some(pods)
    })
}

/// The first process of each container, as the machine counts, by its pod's uid.
fn processes(folder: &Folder) -> BTreeMap<String, i32> {
    let oci = folder.path().join(".windlass/node/oci");
    let entries = fs::read_dir(oci)
        .expect("the OCI runtime's state")
        .flatten();
    let state = |path: std::path::PathBuf| -> Value {
        serde_json::from_slice(&fs::read(path.join("state.json")).expect("a state")).expect("JSON")
    };
    entries
        .map(|entry| {
            let pid = state(entry.path())["init_process_pid"]
                .as_i64()
                .expect("a process");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, i32::try_from(pid).expect("a process number"))
        })
        .collect()
}

/// What a command says in a pod.
fn exec(folder: &Folder, pod: &str, command: &str) -> String {
    folder.kubectl(&["exec", pod, "--", "sh", "-c", command])
}

#[test]
fn memcached_answers_at_its_pod_address_and_through_its_service() {
    let Some(folder) = sandbox("sandbox-memcached") else {
        return;
    };
    let printed = folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    assert!(
        printed.contains("runtime sandbox: pods have namespaces of their own"),
        "{printed}"
    );
    let pods = ready_pods(&folder.status());
    assert_eq!(pods.len(), 3);
    for (name, address) in &pods {
        // The first process of a PID namespace.
        assert_eq!(memcached_pid(address), Some(1), "{name} at {address}");
        assert_eq!(exec(&folder, name, "hostname").trim(), name);
    }
    let wide = folder.kubectl(&["get", "pods", "-o", "wide"]);
    assert!(
        pods.iter().all(|(_, address)| wide.contains(address)),
        "{wide}"
    );
    folder.kubectl(&[
        "expose",
        "deployment",
        "example-memcached-deployment",
        "--name=cache",
        "--port=11211",
        "--type=NodePort",
    ]);
    let port = folder.kubectl(&[
        "get",
        "service",
        "cache",
        "-o",
        "jsonpath={.spec.clusterIP} {.spec.ports[0].nodePort}",
    ]);
    let (service, node_port) = port.split_once(' ').expect("an address and a port");
    let reached = Instant::now();
    while memcached_pid(service).is_none() {
        assert!(
            reached.elapsed() < Duration::from_secs(10),
            "{service} does not answer"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // From another pod, and through the machine's own port.
    let ask = |address: &str, port: &str| {
        format!(
            "printf 'stats\\r\\nquit\\r\\n' | timeout 5 bash -c 'exec 3<>/dev/tcp/{address}/{port}; cat >&3; cat <&3' | head -1"
        )
    };
    let answer = exec(&folder, &pods[0].0, &ask(service, "11211"));
    assert!(answer.starts_with("STAT pid"), "{answer}");
    let here = Command::new("sh")
        .args(["-c", &ask("127.0.0.1", node_port)])
        .output()
        .expect("sh runs");
    assert!(
        String::from_utf8_lossy(&here.stdout).starts_with("STAT pid"),
        "{here:?}"
    );
    // A pod reaches itself through its own Service.
    folder.kubectl(&[
        "scale",
        "deployment",
        "example-memcached-deployment",
        "--replicas=3",
    ]);
    for _ in 0..12 {
        let answer = exec(&folder, &pods[1].0, &ask(service, "11211"));
        assert!(answer.starts_with("STAT pid"), "{answer}");
    }
    let logs = folder.kubectl(&["logs", &pods[0].0]);
    assert!(logs.is_empty(), "{logs}");
}

const NAMES: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: web-headless}
spec:
  clusterIP: None
  selector: {app: web}
  ports: [{name: http, port: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: web-early}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: never-ready}
  ports: [{name: http, port: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, labels: {app: web}}
spec:
  hostname: first
  subdomain: web-headless
  containers:
  - name: main
    image: none
    command: [python3, -m, http.server, "8080"]
    readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: early, labels: {app: never-ready}}
spec:
  hostname: early
  subdomain: web-early
  containers:
  - name: main
    image: none
    command: [sleep, "1000"]
    readinessProbe: {exec: {command: ["false"]}, periodSeconds: 1}
"#;

#[test]
fn names_are_answered_in_pods_and_services_follow_ready_endpoints() {
    let Some(folder) = sandbox("sandbox-names") else {
        return;
    };
    folder.windlass_ok(&["up", "--detach"]);
    apply(&folder, "names.yaml", NAMES);
    let pods: BTreeMap<String, String> = folder.until("the web pod's readiness", |status| {
        let ready = ready_pods(status);
        let all = status["pods"].as_array()?.iter();
        let address = |pod: &Value| {
            let text = |value: &Value| Some(value.as_str()?.to_owned());
            Some((
                text(&pod["metadata"]["name"])?,
                text(&pod["status"]["podIP"])?,
            ))
        };
        let all: BTreeMap<String, String> = all.filter_map(address).collect();
        (all.len() == 2 && ready.len() == 1).then_some(all)
    });
    let service = folder.kubectl(&["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]);
    let looked_up = |name: &str| {
        let found = exec(
            &folder,
            "web-0",
            &format!("getent ahostsv4 {name} || echo nothing"),
        );
        found
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(looked_up("web"), service);
    assert_eq!(looked_up("web.default.svc.cluster.local"), service);
    assert_eq!(looked_up("web-headless"), pods["web-0"]);
    assert_eq!(looked_up("first.web-headless"), pods["web-0"]);
    // Not ready, but published.
    assert_eq!(looked_up("early.web-early"), pods["early"]);
    assert_eq!(looked_up("example.com"), "nothing");
    assert_eq!(looked_up("no-such-service"), "nothing");
    assert_eq!(
        looked_up("kubernetes.default"),
        folder.kubectl(&[
            "get",
            "service",
            "kubernetes",
            "-o",
            "jsonpath={.spec.clusterIP}"
        ])
    );
    // The API server answers at its Service's address, with a certificate for its name.
    let version = exec(
        &folder,
        "web-0",
        "curl -sS --max-time 10 --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt -H \"Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)\" https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/version",
    );
    assert!(version.contains("gitVersion"), "{version}");
    let by_name = exec(
        &folder,
        "web-0",
        "curl -sS --max-time 10 --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt https://kubernetes.default.svc/readyz",
    );
    assert_eq!(by_name, "ok");

    // An endpoint that is no longer ready is left out within a second of its being known.
    let reaches = || {
        let address = format!("http://{service}/");
        let done = Command::new("curl")
            .args(["-s", "--max-time", "2", "-o", "/dev/null", &address])
            .status();
        done.expect("curl runs").success()
    };
    assert!(reaches());
    folder.kubectl(&["label", "pod", "web-0", "app-"]);
    let left = Instant::now();
    while reaches() {
        assert!(
            left.elapsed() < Duration::from_secs(2),
            "the Service still leads to the pod"
        );
    }
    folder.kubectl(&["label", "pod", "web-0", "app=web"]);
    let back = Instant::now();
    while !reaches() {
        assert!(
            back.elapsed() < Duration::from_secs(2),
            "the Service does not lead to the pod"
        );
    }
    eprintln!("a Service followed a change within {:?}", back.elapsed());
}

#[test]
fn down_leaves_no_process_mount_interface_rule_cgroup_or_file_behind() {
    let Some(folder) = sandbox("sandbox-traces") else {
        return;
    };
    let before = Traces::now(folder.path());
    folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    let during = Traces::now(folder.path());
    // The bridge and three links; three shims, three containers and the cluster itself.
    assert_eq!(
        during.interfaces.len(),
        before.interfaces.len() + 4,
        "{during:#?}"
    );
    assert!(
        during.processes.len() >= 7 && during.rules.contains("dnat"),
        "{during:#?}"
    );
    assert!(!during.cgroups.is_empty(), "{during:#?}");
    folder.windlass_ok(&["down"]);
    assert_eq!(Traces::now(folder.path()), before);
    assert!(
        folder.path().join(".windlass/store").exists(),
        "objects are kept"
    );

    // The same after it was killed.
    folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    signal(pid_of(&folder), Signal::KILL);
    folder.windlass_ok(&["down"]);
    assert_eq!(Traces::now(folder.path()), before);
    folder.windlass_ok(&["down", "--purge"]);
    assert!(!folder.path().join(".windlass").exists());
    assert_eq!(Traces::now(folder.path()), before);
}

const SHARED: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: shared}
spec:
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 1234, runAsGroup: 2345}
  volumes: [{name: scratch, emptyDir: {}}]
  containers:
  - name: one
    image: none
    command: [sleep, "1111"]
    volumeMounts: [{name: scratch, mountPath: /scratch/here}]
  - name: two
    image: none
    command: [sh, -c, "id -u > /scratch/there/user; trap '' TERM; while true; do sleep 1; done"]
    volumeMounts: [{name: scratch, mountPath: /scratch/there}]
"#;

#[test]
fn containers_of_a_pod_share_what_it_says_and_nothing_of_the_machine() {
    let Some(folder) = sandbox("sandbox-shared") else {
        return;
    };
    folder.windlass_ok(&["up", "--detach"]);
    apply(&folder, "shared.yaml", SHARED);
    ready(&folder, 1);
    let one =
        |command: &str| folder.kubectl(&["exec", "shared", "-c", "one", "--", "sh", "-c", command]);
    // Each sees the other's processes, and none of the machine's.
    let seen = one("ps -o pid=,args= -e");
    assert!(
        seen.contains("sleep 1111") && seen.contains("trap") && seen.contains("pod-holder"),
        "{seen}"
    );
    assert!(seen.lines().count() < 12, "{seen}");
    assert_eq!(one("cat /scratch/here/user; id -g"), "1234\n2345\n");
    // What is written to the root is the container's alone.
    one("test -w /tmp && echo mine > /tmp/windlass-of-one && cat /tmp/windlass-of-one");
    assert!(!std::path::Path::new("/tmp/windlass-of-one").exists());
    let data = folder.path().join(".windlass");
    let hidden = one(&format!("ls -A {} 2>/dev/null | wc -l", data.display()));
    assert_eq!(hidden.trim(), "0", "the cluster's keys are in sight");
    let links = one("cat /proc/net/dev | grep -c :");
    assert_eq!(links.trim(), "2", "{links}");
    // One of them ignores SIGTERM; the pod goes all the same.
    folder.kubectl(&["delete", "pod", "shared", "--timeout=30s"]);
    assert!(processes(&folder).is_empty());
}

//! What a cluster costs: idle, and while 500 pods come up. Numbers, printed by `make bench-cluster`.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use windlass_tests::machine::{megabytes, processor_seconds, text};
use windlass_tests::{Folder, ready_pods};

/// How long an idle cluster is watched.
const IDLE: Duration = Duration::from_secs(30);
/// How many pods come up, and how long they may take.
const PODS: usize = 500;
const LIMIT: Duration = Duration::from_mins(10);

/// What the shims of the pods have for themselves alone, in MB, and how many there are.
fn shims(folder: &Folder) -> (f64, usize) {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let mut found = (0.0, 0);
    for pid in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let line = text(&format!("/proc/{pid}/cmdline"));
        if line.contains("pod-shim") && line.contains(&*folder.path().to_string_lossy()) {
            let rollup = text(&format!("/proc/{pid}/smaps_rollup"));
            let private = rollup
                .lines()
                .filter_map(|line| line.strip_prefix("Private_Dirty:"));
            let private =
                private.filter_map(|value| value.split_whitespace().next()?.parse::<f64>().ok());
            found.0 += private.sum::<f64>() / 1024.0;
            found.1 += 1;
        }
    }
    found
}

#[test]
#[ignore = "takes minutes and wants a quiet machine: make bench-cluster"]
fn idle_and_with_500_pods() {
    let folder = Folder::new("bench");
    let runtime = std::env::var("BENCH_RUNTIME").unwrap_or_else(|_| "sandbox".to_owned());
    folder.windlass_ok(&["up", "--runtime", &runtime, "--detach"]);
    let pid = folder.status()["pid"].as_i64().expect("a process");
    std::thread::sleep(Duration::from_secs(5));
    let (before, _) = processor_seconds(pid);
    std::thread::sleep(IDLE);
    let (after, _) = processor_seconds(pid);
    let share = (after - before) / IDLE.as_secs_f64() * 100.0;
    let resident = megabytes(&pid.to_string(), "VmRSS:");
    println!("runtime {runtime}");
    println!("idle, no pods:     {share:.2} % of a core, {resident:.1} MB resident");

    let yaml = format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: many}}
spec:
  replicas: {PODS}
  selector: {{matchLabels: {{app: many}}}}
  template:
    metadata: {{labels: {{app: many}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: memcached
        args: ["-m", "8", "-t", "1"]
        readinessProbe: {{tcpSocket: {{port: 11211}}, periodSeconds: 10}}
"#
    );
    fs::write(folder.path().join("many.yaml"), yaml).expect("a file can be written");
    let (before, children) = processor_seconds(pid);
    let started = Instant::now();
    folder.kubectl(&["apply", "-f", "many.yaml"]);
    let ready = loop {
        let count = ready_pods(&folder.status()).len();
        if count >= PODS {
            break count;
        }
        assert!(
            started.elapsed() < LIMIT,
            "only {count} pods were ready within {LIMIT:?}"
        );
        std::thread::sleep(Duration::from_secs(1));
    };
    let (after, of_children) = processor_seconds(pid);
    println!(
        "{ready} pods ready:     {:.1} s; control plane and node: {:.1} s of a processor, {:.1} s in programs they ran",
        started.elapsed().as_secs_f64(),
        after - before,
        of_children - children,
    );
    println!(
        "memory then:       {:.1} MB resident, {:.1} MB at most",
        megabytes(&pid.to_string(), "VmRSS:"),
        megabytes(&pid.to_string(), "VmHWM:"),
    );
    let (private, count) = shims(&folder);
    if count > 0 {
        println!(
            "shims:             {count}, {:.2} MB each of their own",
            private / f64::from(u32::try_from(count).unwrap_or(1))
        );
    }
    let (before, _) = processor_seconds(pid);
    std::thread::sleep(IDLE);
    let (after, _) = processor_seconds(pid);
    println!(
        "running, no change: {:.2} % of a core",
        (after - before) / IDLE.as_secs_f64() * 100.0
    );
    let stopped = Instant::now();
    folder.windlass_ok(&["down"]);
    println!(
        "down:              {:.1} s",
        stopped.elapsed().as_secs_f64()
    );
    let left = Command::new("ip")
        .args(["-brief", "link"])
        .output()
        .expect("ip runs");
    assert!(
        !String::from_utf8_lossy(&left.stdout).contains("wl"),
        "{left:?}"
    );
}

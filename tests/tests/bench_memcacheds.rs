//! What the memcached operator needs for a hundred Memcacheds of size 1 whose pods are real
//! processes. Numbers, printed by `make bench-memcacheds`.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windlass_tests::machine::{megabytes, processor_seconds};
use windlass_tests::{Folder, memcached_pid, program, ready_pods};

const MANY: usize = 100;
const LIMIT: Duration = Duration::from_mins(5);

/// The operator, ended with the test.
struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the operator as a person would on a laptop; answers where its metrics are.
fn operator(folder: &Folder) -> (Operator, String) {
    let program = program().with_file_name("memcached-operator");
    assert!(
        program.exists(),
        "{} is not built; run `cargo build --workspace --bins`",
        program.display()
    );
    let command = |argument: &str| {
        let mut command = Command::new(&program);
        let kubeconfig = folder.path().join(".windlass/kubeconfig");
        command.arg(argument).env("KUBECONFIG", kubeconfig);
        command
    };
    let installed = command("install").status().expect("the operator runs");
    assert!(installed.success());
    let run = command("run").stderr(Stdio::piped()).spawn();
    let mut operator = Operator(run.expect("the operator runs"));
    let mut log = BufReader::new(operator.0.stderr.take().expect("a log"));
    let metrics = loop {
        let mut line = String::new();
        let read = log.read_line(&mut line).expect("a log");
        assert!(read > 0, "the operator ended");
        let place = line.split("http://").nth(1);
        if let Some((address, _)) = place.and_then(|place| place.split_once("/metrics")) {
            break address.to_owned();
        }
    };
    // Whoever writes a log wants it read.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    (operator, metrics)
}

fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("metrics");
    let ask = "GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n";
    stream.write_all(ask.as_bytes()).expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
#[ignore = "takes a minute and wants a quiet machine: make bench-memcacheds"]
fn a_hundred_of_size_one_with_real_processes() {
    let folder = Folder::new("memcacheds");
    let runtime = std::env::var("BENCH_RUNTIME").unwrap_or_else(|_| "sandbox".to_owned());
    folder.windlass_ok(&["up", "--runtime", &runtime, "--detach"]);
    let cluster = folder.status()["pid"].as_i64().expect("a process");
    // Their pods ask for ten cores between them, and use next to nothing.
    let node = folder.kubectl(&["get", "nodes", "-o", "name"]);
    let cores = r#"{"status": {"capacity": {"cpu": "16"}, "allocatable": {"cpu": "16"}}}"#;
    folder.kubectl(&["patch", node.trim(), "--subresource=status", "-p", cores]);
    let (operator, address) = operator(&folder);
    let pid = i64::from(operator.0.id());
    let mut yaml = String::new();
    for number in 0..MANY {
        let _ = writeln!(
            yaml,
            "---\napiVersion: cache.example.com/v1\nkind: Memcached\nmetadata: {{name: cache-{number:03}}}\nspec: {{size: 1}}"
        );
    }
    fs::write(folder.path().join("many.yaml"), yaml).expect("a file can be written");
    let before = (processor_seconds(pid).0, processor_seconds(cluster).0);
    let begun = Instant::now();
    folder.kubectl(&["apply", "-f", "many.yaml"]);
    let pods = loop {
        let status = folder.status();
        let of_all = |key: &str| status[key].as_array().map_or(0, Vec::len);
        let resources = status["customResources"].as_array().into_iter().flatten();
        let complete = resources.filter(|one| one["status"]["readyReplicas"] == 1);
        if complete.count() == MANY && of_all("pods") == MANY {
            break ready_pods(&status);
        }
        assert!(
            begun.elapsed() < LIMIT,
            "{} pods after {LIMIT:?}",
            of_all("pods")
        );
        std::thread::sleep(Duration::from_millis(200));
    };
    let took = begun.elapsed();
    for (name, address) in &pods {
        assert!(memcached_pid(address).is_some(), "{name} at {address}");
    }
    println!(
        "{MANY} Memcacheds of size 1, runtime {runtime}: {} processes answer after {:.1} s",
        pods.len(),
        took.as_secs_f64()
    );
    println!(
        "the operator: {:.1} MB resident, {:.1} MB at most, {:.2} s of a processor",
        megabytes(&pid.to_string(), "VmRSS:"),
        megabytes(&pid.to_string(), "VmHWM:"),
        processor_seconds(pid).0 - before.0,
    );
    println!(
        "windlass up: {:.1} MB resident, {:.2} s of a processor",
        megabytes(&cluster.to_string(), "VmRSS:"),
        processor_seconds(cluster).0 - before.1,
    );
    let metrics = metrics(&address);
    for line in metrics.lines() {
        if line.starts_with("rest_client_requests_total") {
            println!("{line}");
        }
    }
}

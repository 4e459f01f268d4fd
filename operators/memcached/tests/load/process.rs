//! The same on the wire: the operator is a process of its own, so that what it needs is its own.
//! API server, controllers and the simulated node are in this one, in real time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use memcached_operator::Memcached;
use windlass_cluster::{Cluster, ClusterConfig, SimulatedNodeConfig, simulated_node};

use super::gauge::used;
use super::{many, memcached, room};

const LIMIT: Duration = Duration::from_mins(15);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The operator as a process, ended with the test.
struct Operator {
    child: Child,
    metrics: SocketAddr,
}

impl Operator {
    fn start(kubeconfig: &Path) -> Self {
        let program = env!("CARGO_BIN_EXE_memcached-operator");
        let command = |argument: &str| {
            let mut command = Command::new(program);
            command.arg(argument).env("KUBECONFIG", kubeconfig);
            command
        };
        let installed = command("install").output().expect("the operator runs");
        assert!(installed.status.success(), "{installed:?}");
        let mut child = command("run")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the operator runs");
        let mut log = BufReader::new(child.stderr.take().expect("a log"));
        let metrics = loop {
            let mut line = String::new();
            let read = log.read_line(&mut line).expect("a log");
            assert!(read > 0, "the operator ended");
            let place = line.split("http://").nth(1);
            if let Some((address, _)) = place.and_then(|place| place.split_once("/metrics")) {
                break address.parse().expect("an address");
            }
        };
        // Whoever writes a log wants it read.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, metrics }
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics).expect("metrics");
        let ask = "GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n";
        stream.write_all(ask.as_bytes()).expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn fill(client: &Client, many: usize) {
    let memcacheds: Api<Memcached> = Api::default_namespaced(client.clone());
    let created = stream::iter(0..many).map(|number| {
        let memcacheds = memcacheds.clone();
        async move {
            let one = memcached(&format!("cache-{number:04}"), 3);
            memcacheds.create(&PostParams::default(), &one).await
        }
    });
    let created: Vec<_> = created.buffer_unordered(32).collect().await;
    for one in created {
        one.expect("created");
    }
}

/// How many have all their pods.
async fn complete(client: &Client) -> usize {
    let memcacheds: Api<Memcached> = Api::default_namespaced(client.clone());
    let all = memcacheds
        .list(&ListParams::default())
        .await
        .expect("a list");
    all.iter().filter(|one| super::is_complete(one)).count()
}

#[ignore = "takes minutes: `make bench-memcacheds`"]
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_of_size_three_by_a_process_of_its_own() {
    let many = many();
    let folder = format!("windlass-memcacheds-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(folder));
    let mut cluster = Cluster::start(ClusterConfig {
        data_dir: folder.0.clone(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        names: Vec::new(),
        in_memory: true,
        controllers: true,
        node: None,
    })
    .await
    .expect("a cluster");
    let (node, _) = simulated_node(SimulatedNodeConfig::new("simulated"));
    cluster.run_operator(&node).await.expect("a node");
    let client = cluster.client().await.expect("a client");
    let nodes: Api<Node> = Api::all(client.clone());
    while nodes
        .get_opt("simulated")
        .await
        .expect("an answer")
        .is_none()
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    nodes
        .patch_status("simulated", &PatchParams::default(), &Patch::Merge(room()))
        .await
        .expect("room");
    let kubeconfig = folder.0.join("operator.kubeconfig");
    let config = serde_json::to_string(cluster.kubeconfig()).expect("a kubeconfig");
    std::fs::write(&kubeconfig, config).expect("a file");
    let operator = Operator::start(&kubeconfig);
    let pid = operator.child.id().to_string();

    let (before, cluster_before, begun) = (used(&pid), used("self"), Instant::now());
    fill(&client, many).await;
    let created = begun.elapsed();
    loop {
        let complete = complete(&client).await;
        if complete == many {
            break;
        }
        assert!(
            begun.elapsed() < LIMIT,
            "only {complete} of {many} are complete"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let (took, after, cluster_after) = (begun.elapsed(), used(&pid), used("self"));
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pods = pods.list_metadata(&ListParams::default()).await;
    let pods = pods.expect("a list").items.len();
    println!(
        "{many} Memcacheds of size 3, the operator a process of its own: created in {:.1} s, complete with {pods} pods after {:.1} s",
        created.as_secs_f64(),
        took.as_secs_f64(),
    );
    println!(
        "the operator: {:.1} MiB before, {:.1} MiB then, {:.1} MiB at most; {:.1} CPU s",
        before.resident,
        after.resident,
        after.peak,
        after.seconds - before.seconds,
    );
    println!(
        "API server, controllers and node: {:.1} MiB then, {:.1} MiB at most; {:.1} CPU s",
        cluster_after.resident,
        cluster_after.peak,
        cluster_after.seconds - cluster_before.seconds,
    );
    let metrics = operator.metrics();
    for line in metrics.lines() {
        if ["rest_client_requests_total", "windlass_cache_bytes"]
            .iter()
            .any(|name| line.starts_with(name))
        {
            println!("{line}");
        }
    }
    assert_eq!(pods, many * 3);
    drop(operator);
    cluster.stop().await;
}

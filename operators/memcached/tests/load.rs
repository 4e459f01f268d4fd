//! Two thousand Memcacheds of size 3 at once, on the simulated node. Prints what the operator needs.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use memcached_operator::{Memcached, MemcachedSpec, operator};
use serde_json::json;
use windlass_cluster::TestCluster;

const NAME: &str = "memcached-operator";

/// How many: two thousand, unless the environment variable MEMCACHEDS says otherwise.
fn many() -> usize {
    let told = std::env::var("MEMCACHEDS").ok();
    told.and_then(|told| told.parse().ok()).unwrap_or(2000)
}

/// A number of this process from `/proc`: resident memory in MiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or_default() / 1024
}

/// CPU seconds of this process, in hundredths.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok());
    next().unwrap_or_default() + next().unwrap_or_default()
}

#[ignore = "takes minutes: `make bench-memcacheds`"]
#[windlass_cluster::test]
async fn two_thousand_of_size_three_converge(cluster: TestCluster) {
    let many = many();
    cluster.start(operator()).await;
    // A node that is large enough.
    let nodes: Api<Node> = Api::all(cluster.client());
    let room = json!({ "pods": "10000", "cpu": "1000", "memory": "2Ti" });
    let status = json!({ "status": { "capacity": room, "allocatable": room } });
    let params = PatchParams::default();
    nodes
        .patch_status("simulated", &params, &Patch::Merge(status))
        .await
        .unwrap();
    let (memory, before, begun) = (resident(), cpu(), std::time::Instant::now());
    for number in 0..many {
        let spec = MemcachedSpec {
            size: Some(3),
            expose: false,
        };
        cluster
            .create(Memcached::new(&format!("cache-{number:04}"), spec))
            .await;
    }
    cluster.settle().await;
    let all = cluster.list::<Memcached>().await;
    let complete = |memcached: &&Memcached| {
        let status = memcached.status.clone().unwrap_or_default();
        status.nodes.len() == 3 && status.ready_replicas == 3
    };
    assert_eq!(all.iter().filter(complete).count(), many);
    let requests = cluster.requests_of(NAME);
    let writes: Vec<_> = requests
        .iter()
        .filter(|request| request.verb.writes())
        .collect();
    let on = |resource: &str| {
        writes
            .iter()
            .filter(|request| request.resource == resource)
            .count()
    };
    let refused = writes.iter().filter(|request| request.code >= 400).count();
    println!(
        "{many} Memcacheds of size 3: {:.1} s, {:.1} CPU s and {} MiB more for the whole cluster in this process",
        begun.elapsed().as_secs_f64(),
        f64::from(u32::try_from(cpu() - before).unwrap_or(u32::MAX)) / 100.0,
        resident() - memory,
    );
    println!(
        "the operator: {} requests; writes: {} of Deployments, {} of statuses, {} of events; {refused} refused",
        requests.len(),
        on("deployments.apps"),
        on("memcacheds.cache.example.com/status"),
        on("events.events.k8s.io"),
    );
    for line in cluster
        .metrics(NAME)
        .lines()
        .filter(|line| line.starts_with("windlass_cache_bytes"))
    {
        println!("{line}");
    }
    let counted = requests.len();
    cluster.restart_operators().await;
    let again = cluster.requests_of(NAME).split_off(counted);
    let writes = again.iter().filter(|request| request.verb.writes()).count();
    println!("after a restart: {} requests, {writes} writes", again.len());
}

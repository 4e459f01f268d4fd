//! Two thousand Memcacheds of size 3 at once, on the simulated node. Prints what the operator needs.

mod gauge;
mod process;

use gauge::used;
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

fn memcached(name: &str, size: i32) -> Memcached {
    let spec = MemcachedSpec {
        size: Some(size),
        expose: false,
    };
    Memcached::new(name, spec)
}

/// What makes a node large enough.
fn room() -> serde_json::Value {
    let room = json!({ "pods": "10000", "cpu": "1000", "memory": "2Ti" });
    json!({ "status": { "capacity": room, "allocatable": room } })
}

fn is_complete(memcached: &Memcached) -> bool {
    let status = memcached.status.clone().unwrap_or_default();
    status.nodes.len() == 3 && status.ready_replicas == 3
}

#[ignore = "takes minutes: `make bench-memcacheds`"]
#[windlass_cluster::test]
async fn two_thousand_of_size_three_converge(cluster: TestCluster) {
    let many = many();
    cluster.start(operator()).await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let params = PatchParams::default();
    nodes
        .patch_status("simulated", &params, &Patch::Merge(room()))
        .await
        .unwrap();
    let (before, begun) = (used("self"), std::time::Instant::now());
    for number in 0..many {
        cluster
            .create(memcached(&format!("cache-{number:04}"), 3))
            .await;
    }
    cluster.settle().await;
    let all = cluster.list::<Memcached>().await;
    assert_eq!(all.iter().filter(|one| is_complete(one)).count(), many);
    let after = used("self");
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
        "{many} Memcacheds of size 3 in virtual time: {:.1} s, {:.1} CPU s and {:.1} MiB more for the whole cluster in this process",
        begun.elapsed().as_secs_f64(),
        after.seconds - before.seconds,
        after.resident - before.resident,
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

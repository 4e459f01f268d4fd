//! The operator in an in-process cluster, under virtual time.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use memcached_operator::{Memcached, MemcachedSpec, operator};
use serde_json::json;
use windlass_cluster::{TestCluster, hours};

fn memcached(name: &str, size: i32) -> Memcached {
    Memcached::new(name, MemcachedSpec { size, expose: false })
}

async fn nodes(cluster: &TestCluster, name: &str) -> Vec<String> {
    cluster.get::<Memcached>(name).await.status.unwrap_or_default().nodes
}

#[windlass_cluster::test]
async fn created_gives_as_many_nodes_as_asked_for(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 3)).await;
    cluster.settle().await;
    let pods = cluster.list::<Pod>().await;
    let mut names: Vec<String> = pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    names.sort();
    assert_eq!(nodes(&cluster, "cache").await, names);
    assert_eq!(names.len(), 3);
    let status = cluster.get::<Memcached>("cache").await.status.unwrap();
    assert_eq!(status.ready_replicas, 3);
    let available = status.conditions.iter().find(|condition| condition.type_ == "Available").unwrap();
    assert_eq!(available.status, "True", "{available:?}");
}

//! What the example promises, in a cluster and with a simulation of the provider.

mod provider;

use external_api_operator::{Record, RecordSpec, operator_with};
use kube::ResourceExt;
use serde_json::json;
use windlass_cluster::{TestCluster, minutes};

use provider::Provider;

fn record(host: &str, address: &str) -> Record {
    let spec = RecordSpec {
        host: host.to_owned(),
        address: address.to_owned(),
    };
    Record::new("web", spec)
}

async fn start(cluster: &TestCluster) {
    cluster
        .start_made(|cluster| operator_with(Provider::beside(cluster)))
        .await;
}

fn address_of(cluster: &TestCluster, host: &str) -> Option<String> {
    cluster.kept::<Provider>().address_of(host)
}

#[windlass_cluster::test]
async fn record_exists_at_the_provider_as_long_as_its_object(cluster: TestCluster) {
    start(&cluster).await;
    cluster.create(record("www.example.com", "192.0.2.1")).await;
    cluster.settle().await;
    assert_eq!(
        address_of(&cluster, "www.example.com").as_deref(),
        Some("192.0.2.1")
    );
    let record = cluster.get::<Record>("web").await;
    assert_eq!(record.finalizers(), ["example.com/external-api"]);
    assert_eq!(record.status.unwrap().address.as_deref(), Some("192.0.2.1"));

    cluster
        .patch::<Record>("web", json!({"spec": {"address": "192.0.2.2"}}))
        .await;
    cluster.settle().await;
    assert_eq!(
        address_of(&cluster, "www.example.com").as_deref(),
        Some("192.0.2.2")
    );

    cluster.delete::<Record>("web").await;
    cluster.settle().await;
    assert_eq!(address_of(&cluster, "www.example.com"), None);
    assert!(cluster.find::<Record>("web").await.is_none());
}

#[windlass_cluster::test]
async fn change_at_the_provider_is_undone(cluster: TestCluster) {
    start(&cluster).await;
    cluster.create(record("www.example.com", "192.0.2.1")).await;
    cluster.settle().await;
    cluster
        .kept::<Provider>()
        .set("www.example.com", "203.0.113.9");
    cluster.advance(minutes(6)).await;
    assert_eq!(
        address_of(&cluster, "www.example.com").as_deref(),
        Some("192.0.2.1")
    );
}

#[windlass_cluster::test]
async fn disturbed_operator_leaves_nothing_behind(cluster: TestCluster) {
    start(&cluster).await;
    let scenario = async |cluster: TestCluster| {
        cluster.create(record("www.example.com", "192.0.2.1")).await;
        cluster.settle().await;
        cluster.delete::<Record>("web").await;
        cluster.settle().await;
        assert_eq!(address_of(&cluster, "www.example.com"), None);
    };
    assert!(cluster.crash_after_every_write(scenario).await > 2);
}

//! What the example promises, in a cluster and with a simulation of the provider.

mod provider;

use external_api_operator::{Record, RecordSpec};
use kube::ResourceExt;
use serde_json::json;
use windlass_cluster::{TestCluster, minutes};

use provider::NameService;

const HOST: &str = "www.example.com";

fn record(address: &str) -> Record {
    let spec = RecordSpec {
        host: HOST.to_owned(),
        address: address.to_owned(),
    };
    Record::new("web", spec)
}

async fn start(cluster: &TestCluster) {
    cluster.start_made(NameService::operator_beside).await;
}

fn address(cluster: &TestCluster) -> Option<String> {
    cluster.kept::<NameService>().address_of(HOST)
}

#[windlass_cluster::test]
async fn record_exists_at_the_provider_as_long_as_its_object(cluster: TestCluster) {
    start(&cluster).await;
    cluster.create(record("192.0.2.1")).await;
    cluster.settle().await;
    assert_eq!(address(&cluster).as_deref(), Some("192.0.2.1"));
    let record = cluster.get::<Record>("web").await;
    assert_eq!(record.finalizers(), ["example.com/external-api"]);
    assert_eq!(record.status.unwrap().address, "192.0.2.1");

    cluster
        .patch::<Record>("web", json!({"spec": {"address": "192.0.2.2"}}))
        .await;
    cluster.settle().await;
    assert_eq!(address(&cluster).as_deref(), Some("192.0.2.2"));

    cluster.delete::<Record>("web").await;
    cluster.settle().await;
    assert_eq!(address(&cluster), None);
    assert!(cluster.find::<Record>("web").await.is_none());
}

#[windlass_cluster::test]
async fn change_at_the_provider_is_undone(cluster: TestCluster) {
    start(&cluster).await;
    cluster.create(record("192.0.2.1")).await;
    cluster.settle().await;
    cluster.kept::<NameService>().set(HOST, "203.0.113.9");
    cluster.advance(minutes(6)).await;
    assert_eq!(address(&cluster).as_deref(), Some("192.0.2.1"));
}

#[windlass_cluster::test]
async fn refused_record_is_degraded_until_it_changes(cluster: TestCluster) {
    start(&cluster).await;
    cluster.create(record("")).await;
    cluster.settle().await;
    let record = cluster.get::<Record>("web").await;
    let conditions = record.status.unwrap().conditions;
    let degraded = conditions.iter().find(|one| one.type_ == "Degraded");
    assert_eq!(
        degraded.unwrap().message,
        "cannot PUT www.example.com: 400 Bad Request"
    );

    cluster
        .patch::<Record>("web", json!({"spec": {"address": "192.0.2.1"}}))
        .await;
    cluster.settle().await;
    assert_eq!(address(&cluster).as_deref(), Some("192.0.2.1"));
}

#[windlass_cluster::test]
async fn disturbed_operator_leaves_nothing_behind(cluster: TestCluster) {
    start(&cluster).await;
    let scenario = async |cluster: TestCluster| {
        cluster.create(record("192.0.2.1")).await;
        cluster.settle().await;
        cluster.delete::<Record>("web").await;
        cluster.settle().await;
        assert_eq!(address(&cluster), None);
    };
    assert!(cluster.crash_after_every_write(scenario).await > 2);
}

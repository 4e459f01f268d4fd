//! The operator's role: what it does, and nothing beyond.

use etcd_operator::{EtcdCluster, operator};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use serde_json::json;
use windlass_cluster::TestCluster;

use crate::scenarios::make;

#[windlass_cluster::test]
async fn lives_with_exactly_the_role_it_declares(cluster: TestCluster) {
    cluster.start_made(make).await;
    let spec = json!({ "size": 3, "storage": { "size": "1Gi" } });
    let spec = serde_json::from_value(spec).unwrap();
    cluster.create(EtcdCluster::new("c", spec)).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>().await.len(), 3);
    let small = json!({ "spec": { "size": 1 } });
    cluster.patch::<EtcdCluster>("c", small).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<PersistentVolumeClaim>().await.len(), 1);
    cluster.delete::<EtcdCluster>("c").await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>().await, []);
    let requests = cluster.requests_of("etcd-operator");
    let refused: Vec<_> = requests.iter().filter(|one| one.code == 403).collect();
    assert!(!requests.is_empty() && refused.is_empty(), "{refused:#?}");
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    let role = roles.get("etcd-operator").await.unwrap();
    let declared = windlass::manifests::role::policy_rules(&operator().description());
    assert_eq!(role.rules, Some(declared));
}

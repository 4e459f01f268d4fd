//! The operator's role: what it does, and nothing beyond.

use etcd_operator::restore::EtcdRestore;
use etcd_operator::{EtcdCluster, operator};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use serde_json::json;
use windlass_cluster::{Failure, TestCluster};

use crate::scenarios::{backup, make, restore, secret};
use crate::vault::SECRET_KEY;

const NAME: &str = "etcd-operator";

/// Why a kind that is applied is also read one by one.
const IN_THE_WAY: &str =
    "looks at somebody else's object that has the name of ours and is not in the cache yet";

#[windlass_cluster::test]
async fn lives_with_exactly_the_role_it_declares(cluster: TestCluster) {
    cluster.start_made(make).await;
    cluster.create(with_volumes("c", 3)).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>().await.len(), 3);
    let small = json!({ "spec": { "size": 1 } });
    cluster.patch::<EtcdCluster>("c", small).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<PersistentVolumeClaim>().await.len(), 1);
    back_up_and_restore(&cluster).await;
    cluster.delete::<EtcdCluster>("d").await;
    cluster.delete::<EtcdCluster>("c").await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>().await, []);
    let requests = cluster.requests_of(NAME);
    let refused: Vec<_> = requests.iter().filter(|one| one.code == 403).collect();
    assert!(!requests.is_empty() && refused.is_empty(), "{refused:#?}");
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    let role = roles.get(NAME).await.unwrap();
    let declared = windlass::manifests::role::policy_rules(&operator().description());
    assert_eq!(role.rules, Some(declared));
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    cluster.start_made(make).await;
    let exceptions = [
        (
            "update etcdclusters/finalizers.etcd.database.coreos.com",
            "asked for by an admission plugin that real clusters may have",
        ),
        (
            "patch etcdbackups.etcd.database.coreos.com",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
        (
            "patch etcdrestores.etcd.database.coreos.com",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
        (
            "delete services",
            "a cluster has its Services as long as it lives",
        ),
        (
            "delete poddisruptionbudgets.policy",
            "a cluster has its budget as long as it lives",
        ),
        ("get pods", IN_THE_WAY),
        ("get persistentvolumeclaims", IN_THE_WAY),
        ("get poddisruptionbudgets.policy", IN_THE_WAY),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            cluster.create(with_volumes("c", 3)).await;
            cluster.settle().await;
            let small = json!({ "spec": { "size": 1 } });
            cluster.patch::<EtcdCluster>("c", small).await;
            cluster.settle().await;
            back_up_and_restore(&cluster).await;
            // An API server that cannot stream lists is asked for pages.
            for resource in [
                "pods",
                "persistentvolumeclaims",
                "services",
                "poddisruptionbudgets.policy",
                "etcdclusters.etcd.database.coreos.com",
                "etcdbackups.etcd.database.coreos.com",
                "etcdrestores.etcd.database.coreos.com",
                "secrets",
                "validatingwebhookconfigurations.admissionregistration.k8s.io",
            ] {
                cluster.fail(Failure::with(400).by(NAME).on(resource).times(1));
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 20, "{shown}");
}

fn with_volumes(name: &str, size: i32) -> EtcdCluster {
    let spec = json!({ "size": size, "storage": { "size": "1Gi" } });
    EtcdCluster::new(name, serde_json::from_value(spec).unwrap())
}

/// A backup, restored over the cluster that it is of, and into one that it makes.
async fn back_up_and_restore(cluster: &TestCluster) {
    cluster.create(secret(SECRET_KEY)).await;
    let mut of = backup("b");
    of.spec.etcd_endpoints = vec!["http://c-client:2379".to_owned()];
    cluster.create(of).await;
    cluster.settle().await;
    let restore = |name: &str, spec| {
        let mut restore = restore(name);
        restore.metadata.name = Some(name.to_owned());
        restore.spec.replace_running = true;
        restore.spec.keep_old_data_seconds = Some(0);
        restore.spec.cluster_spec = spec;
        restore
    };
    cluster.create(restore("c", None)).await;
    cluster.settle().await;
    cluster
        .create(restore("d", Some(with_volumes("d", 1).spec)))
        .await;
    cluster.settle().await;
    for name in ["c", "d"] {
        let restored = cluster.get::<EtcdRestore>(name).await;
        let status = restored.status.unwrap_or_default();
        assert!(status.succeeded, "{name}: {status:#?}");
    }
}

//! The class that every cluster of ours has: Kubernetes leaves making volumes to others.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use serde_json::json;
use windlass_cluster::TestCluster;

use super::phase;

#[windlass_cluster::test]
async fn a_pod_gets_a_volume_of_its_own_and_it_goes_with_the_claim(cluster: TestCluster) {
    let data: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }))
    .unwrap();
    cluster.create(data).await;
    cluster.settle().await;
    let waits = cluster.get::<PersistentVolumeClaim>("data").await;
    assert_eq!(phase(&waits), "Pending");
    assert_eq!(
        waits.spec.as_ref().unwrap().storage_class_name.as_deref(),
        Some("local")
    );
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "user" },
        "spec": {
            "containers": [{ "name": "main", "image": "a" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        },
    }))
    .unwrap();
    cluster.create(pod).await;
    cluster.settle().await;
    let claim = cluster.get::<PersistentVolumeClaim>("data").await;
    assert_eq!(phase(&claim), "Bound");
    let name = claim.spec.unwrap().volume_name.unwrap();
    assert_eq!(name, format!("pvc-{}", claim.metadata.uid.unwrap()));
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let spec = volumes.get(&name).await.unwrap().spec.unwrap();
    assert_eq!(spec.host_path.unwrap().path, format!("/volumes/{name}"));
    let pod = cluster.get::<Pod>("user").await;
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
    cluster.delete::<Pod>("user").await;
    cluster.delete::<PersistentVolumeClaim>("data").await;
    cluster.settle().await;
    assert!(
        volumes.get_opt(&name).await.unwrap().is_none(),
        "the volume went with its claim"
    );
}

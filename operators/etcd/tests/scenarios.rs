//! What the operator promises where no pod runs: played in process, disturbed in every way there is,
//! and on a real control plane.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use etcd_operator::etcd::{Call, Etcd, EtcdError, Member, MemberStatus, Membership, Snapshot};
use etcd_operator::store::Remote;
use etcd_operator::{EtcdCluster, EtcdClusterSpec, EtcdClusterStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use windlass::Operator;
use windlass_cluster::Stage;

windlass_cluster::scenarios! {
    super::operator,
    anywhere: [
        services_budget_and_first_pod_are_made,
        services_and_budget_select_only_pods_of_this_object,
        a_volume_comes_before_its_pod,
        the_yaml_of_the_seed_ends_in_what_to_do,
        sizes_and_names_are_judged_by_the_schema,
        storage_cannot_be_changed,
        a_service_deleted_by_accident_is_recreated,
        what_is_not_offered_yet_is_refused_by_a_condition,
        a_paused_cluster_is_not_begun,
        deleted_takes_its_children_with_it,
    ],
    with_pods: [],
}

/// An etcd of which no member ever answers.
struct Nobody;

fn silence(call: Call) -> EtcdError {
    EtcdError::Unreachable {
        call,
        message: "nobody is there".to_owned(),
    }
}

#[async_trait]
impl Etcd for Nobody {
    async fn members(&self, _: &[String]) -> Result<Membership, EtcdError> {
        Err(silence(Call::Members))
    }
    async fn status(&self, _: &str) -> Result<MemberStatus, EtcdError> {
        Err(silence(Call::Status))
    }
    async fn add_member(&self, _: &[String], _: &[String], _: bool) -> Result<Member, EtcdError> {
        Err(silence(Call::AddMember))
    }
    async fn promote_member(&self, _: &[String], _: u64) -> Result<(), EtcdError> {
        Err(silence(Call::PromoteMember))
    }
    async fn remove_member(&self, _: &[String], _: u64) -> Result<(), EtcdError> {
        Err(silence(Call::RemoveMember))
    }
    async fn move_leader(&self, _: &str, _: u64) -> Result<(), EtcdError> {
        Err(silence(Call::MoveLeader))
    }
    async fn snapshot(&self, _: &str) -> Result<Snapshot, EtcdError> {
        Err(silence(Call::Snapshot))
    }
}

fn operator() -> Operator {
    etcd_operator::operator_with(Arc::new(Nobody), Arc::new(Remote::default()))
}

fn cluster(name: &str, spec: Value) -> EtcdCluster {
    let spec: EtcdClusterSpec = serde_json::from_value(spec).unwrap();
    EtcdCluster::new(name, spec)
}

fn status(cluster: &EtcdCluster) -> EtcdClusterStatus {
    cluster.status.clone().unwrap_or_default()
}

/// Waits until a condition is True with a reason; answers its message.
async fn told(stage: &Stage, name: &str, kind: &str, reason: &str) -> String {
    let find = |cluster: &EtcdCluster| {
        let conditions = status(cluster).conditions.into_iter();
        let mut told = conditions.filter(|one| one.type_ == kind && one.status == "True");
        told.find(|one| one.reason == reason)
    };
    let found = stage
        .until(name, reason, |cluster: &EtcdCluster| {
            find(cluster).is_some()
        })
        .await;
    find(&found).unwrap().message
}

/// The first member, once it is recorded.
async fn first_member(stage: &Stage, name: &str) -> String {
    let recorded = |cluster: &EtcdCluster| status(cluster).intent.is_some();
    let found = stage.until(name, "begun", recorded).await;
    status(&found).intent.unwrap().member
}

async fn services_budget_and_first_pod_are_made(stage: Stage) {
    stage.create(&cluster("c", json!({ "size": 3 }))).await;
    let peers = stage
        .until("c", "there", |_: &Service| true)
        .await
        .spec
        .unwrap();
    assert_eq!(peers.cluster_ip.as_deref(), Some("None"));
    assert_eq!(peers.publish_not_ready_addresses, Some(true));
    let clients = stage.until("c-client", "there", |_: &Service| true).await;
    assert_eq!(clients.spec.unwrap().selector, None, "nobody is let in yet");
    let budget = stage
        .until("c", "there", |_: &PodDisruptionBudget| true)
        .await;
    assert_eq!(
        budget.spec.unwrap().min_available,
        Some(IntOrString::Int(2))
    );
    let member = first_member(&stage, "c").await;
    let pod = stage.until(&member, "there", |_: &Pod| true).await;
    let alone = format!("{member}=http://{member}.c.{}.svc:2380", stage.namespace());
    let annotations = pod.metadata.annotations.unwrap();
    assert_eq!(
        annotations["etcd.database.coreos.com/initial-cluster"],
        alone
    );
    let spec = pod.spec.unwrap();
    assert_eq!(
        (spec.hostname, spec.subdomain),
        (Some(member.clone()), Some("c".to_owned()))
    );
    let command = spec.containers[0].command.clone().unwrap();
    for flag in [
        "--initial-cluster-state=new",
        "--initial-cluster=$(INITIAL_CLUSTER)",
    ] {
        assert!(command.contains(&flag.to_owned()), "{command:?}");
    }
    stage.rest().await;
    assert_eq!(stage.list::<Pod>().await.len(), 1, "one member begins");
}

/// After a cluster is deleted and made again, the pods of the first one may still be there.
async fn services_and_budget_select_only_pods_of_this_object(stage: Stage) {
    stage.create(&cluster("c", json!({ "size": 1 }))).await;
    let made = stage.until("c", "there", |_: &EtcdCluster| true).await;
    let uid = made.metadata.uid.unwrap();
    let selected = |selector: BTreeMap<String, String>| {
        let found = selector.get(etcd_operator::CLUSTER_UID);
        assert_eq!(found, Some(&uid), "{selector:?}");
    };
    let peers = stage.until("c", "there", |_: &Service| true).await;
    selected(peers.spec.unwrap().selector.unwrap());
    let budget = stage
        .until("c", "there", |_: &PodDisruptionBudget| true)
        .await;
    selected(budget.spec.unwrap().selector.unwrap().match_labels.unwrap());
    let member = first_member(&stage, "c").await;
    let pod = stage.until(&member, "there", |_: &Pod| true).await;
    selected(pod.metadata.labels.unwrap());
    stage.rest().await;
}

async fn a_volume_comes_before_its_pod(stage: Stage) {
    let spec = json!({ "size": 1, "storage": { "size": "1Gi" } });
    stage.create(&cluster("c", spec)).await;
    let member = first_member(&stage, "c").await;
    let claim = stage
        .until(&member, "there", |_: &PersistentVolumeClaim| true)
        .await;
    let asked = claim.spec.unwrap().resources.unwrap().requests.unwrap();
    assert_eq!(asked["storage"].0, "1Gi");
    let pod = stage
        .until(&member, "there", |_: &Pod| true)
        .await
        .spec
        .unwrap();
    let volume = pod.volumes.unwrap().remove(0).persistent_volume_claim;
    assert_eq!(volume.unwrap().claim_name, member);
    stage.rest().await;
}

async fn the_yaml_of_the_seed_ends_in_what_to_do(stage: Stage) {
    let yaml: Value = serde_saphyr::from_str(include_str!("seed.yaml")).unwrap();
    stage.apply::<EtcdCluster>(&yaml).await;
    let name = "example-etcd-cluster";
    let message = told(&stage, name, "Degraded", "UnsupportedVersion").await;
    assert!(
        message.contains("set spec.version to one of these"),
        "{message}"
    );
    stage.rest().await;
    assert!(stage.list::<Pod>().await.is_empty());
    stage
        .patch::<EtcdCluster>(name, json!({ "spec": { "version": "3.4.23" } }))
        .await;
    first_member(&stage, name).await;
    stage.rest().await;
}

async fn sizes_and_names_are_judged_by_the_schema(stage: Stage) {
    for size in [-1, 0, 8] {
        let refused = stage.refused(&cluster("c", json!({ "size": size }))).await;
        assert!(refused.message.contains("spec.size"), "{}", refused.message);
    }
    let long = "c".repeat(53);
    for name in [long.as_str(), "1c", "a.b"] {
        let refused = stage.refused(&cluster(name, json!({ "size": 1 }))).await;
        assert!(
            refused.message.contains("at most 52"),
            "{}",
            refused.message
        );
    }
    // An operator that writes nothing has nothing to be killed after.
    stage.create(&cluster("fits", json!({ "size": 7 }))).await;
    first_member(&stage, "fits").await;
    stage.rest().await;
}

async fn storage_cannot_be_changed(stage: Stage) {
    let spec = json!({ "size": 1, "storage": { "size": "1Gi" } });
    stage.create(&cluster("c", spec)).await;
    let params = kube::api::PatchParams::default();
    for storage in [json!({ "size": "2Gi" }), Value::Null] {
        let patch = kube::api::Patch::Merge(json!({ "spec": { "storage": storage } }));
        let api = stage.api::<EtcdCluster>();
        let refused = windlass_cluster::answered(async || api.patch("c", &params, &patch).await)
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("storage cannot be changed"),
            "{refused}"
        );
    }
    first_member(&stage, "c").await;
    stage.rest().await;
}

async fn a_service_deleted_by_accident_is_recreated(stage: Stage) {
    stage.create(&cluster("c", json!({ "size": 1 }))).await;
    let first = stage.until("c", "there", |_: &Service| true).await;
    first_member(&stage, "c").await;
    stage.rest().await;
    stage.delete::<Service>("c").await;
    let another = |service: &Service| service.metadata.uid != first.metadata.uid;
    stage.until("c", "made again", another).await;
    stage.rest().await;
}

async fn what_is_not_offered_yet_is_refused_by_a_condition(stage: Stage) {
    let spec = json!({ "size": 1, "TLS": { "static": { "operatorSecret": "s" } } });
    stage.create(&cluster("c", spec)).await;
    let message = told(&stage, "c", "Degraded", "TLSNotSupported").await;
    assert!(message.contains("remove spec.TLS"), "{message}");
    stage.rest().await;
    assert!(stage.list::<Pod>().await.is_empty());
    stage
        .patch::<EtcdCluster>("c", json!({ "spec": { "TLS": null } }))
        .await;
    first_member(&stage, "c").await;
    stage.rest().await;
}

async fn a_paused_cluster_is_not_begun(stage: Stage) {
    stage
        .create(&cluster("c", json!({ "size": 1, "paused": true })))
        .await;
    let paused = |cluster: &EtcdCluster| status(cluster).phase == "Paused";
    stage.until("c", "paused", paused).await;
    stage.rest().await;
    assert!(stage.list::<Pod>().await.is_empty());
    stage
        .patch::<EtcdCluster>("c", json!({ "spec": { "paused": false } }))
        .await;
    first_member(&stage, "c").await;
    stage.rest().await;
}

async fn deleted_takes_its_children_with_it(stage: Stage) {
    stage.create(&cluster("c", json!({ "size": 1 }))).await;
    let member = first_member(&stage, "c").await;
    stage.until(&member, "there", |_: &Pod| true).await;
    stage.rest().await;
    stage.delete::<EtcdCluster>("c").await;
    stage.until_gone::<Pod>(&member).await;
    stage.until_gone::<Service>("c").await;
    stage.until_gone::<PodDisruptionBudget>("c").await;
    stage.rest().await;
}

#[test]
fn manifests_are_current() {
    windlass_cluster::manifests_are_current(&etcd_operator::operator(), env!("CARGO_MANIFEST_DIR"));
}

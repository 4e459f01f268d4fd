//! `--cascade=orphan`: what an owner leaves behind stays, however late any controller hears of it.
//!
//! The garbage collector strikes the owner from its dependents, and then lets the owner go. A
//! controller whose watch is late sees objects that match and that nothing controls, and an owner
//! that is not being deleted: what it adopts then would be deleted with the owner.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;
use windlass::testing::Random;
use windlass_cluster::{TestCluster, minutes};

use crate::scene::{Namespaced, image, web};

/// How late the controllers hear of owners.
const LATE: Duration = Duration::from_secs(20);

fn api<K: Namespaced>(cluster: &TestCluster) -> Api<K> {
    Api::namespaced(cluster.client(), "default")
}

async fn all<K: Namespaced>(cluster: &TestCluster) -> Vec<K> {
    let list = api::<K>(cluster).list(&ListParams::default()).await;
    list.expect("a list").items
}

async fn create<K: Namespaced + serde::Serialize>(cluster: &TestCluster, object: Value) {
    let object: K = serde_json::from_value(object).expect("a valid object");
    let created = api::<K>(cluster)
        .create(&PostParams::default(), &object)
        .await;
    created.expect("created");
}

/// The names of the objects of a kind that have an owner of this kind.
async fn owned<K: Namespaced>(cluster: &TestCluster, owner: &str) -> Vec<String> {
    let mut all = all::<K>(cluster).await;
    all.retain(|one| one.owner_references().iter().any(|one| one.kind == owner));
    all.iter().map(ResourceExt::name_any).collect()
}

/// Does what the garbage collector does about the dependents of an orphaning owner; answers which.
async fn cut_loose<K: Namespaced>(cluster: &TestCluster, owner: &str) -> Vec<String> {
    let names = owned::<K>(cluster, owner).await;
    for name in &names {
        let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
        let params = PatchParams::default();
        let patched = api::<K>(cluster).patch(name, &params, &patch).await;
        patched.expect("struck");
    }
    names
}

async fn delete_orphaning<K: Namespaced>(cluster: &TestCluster, name: &str) {
    let deleted = api::<K>(cluster)
        .delete(name, &DeleteParams::orphan())
        .await;
    deleted.expect("deleted");
}

/// Checks that nothing of a kind was adopted, and that everything is still there at the end.
struct Orphans {
    names: Vec<String>,
    owner: &'static str,
}

impl Orphans {
    async fn of<K: Namespaced>(cluster: &TestCluster, owner: &'static str) -> Self {
        let names = cut_loose::<K>(cluster, owner).await;
        assert!(!names.is_empty(), "no {} of the {owner}", K::plural(&()));
        Self { names, owner }
    }

    async fn are_left_alone<K: Namespaced>(&self, cluster: &TestCluster) {
        let adopted = owned::<K>(cluster, self.owner).await;
        assert_eq!(adopted, [""; 0], "adopted by the {}", self.owner);
        let there = all::<K>(cluster).await;
        for name in &self.names {
            let kept = there.iter().any(|one| one.name_any() == *name);
            assert!(kept, "{} {name} is gone", K::kind(&()));
        }
    }
}

/// Deletes the owner while the controllers' watch of its kind is late, strikes it from what it
/// owns, and looks before and after they hear of it.
macro_rules! orphaned {
    ($cluster:expr, $owner:ty, $plural:literal, $name:literal, [$($kind:ty),+]) => {{
        let cluster: &TestCluster = $cluster;
        let kind = <$owner as kube::Resource>::kind(&()).into_owned();
        let kind: &'static str = kind.leak();
        cluster.delay_controllers($plural, LATE);
        delete_orphaning::<$owner>(cluster, $name).await;
        let mut orphans = Vec::new();
        $(orphans.push(Orphans::of::<$kind>(cluster, kind).await);)+
        sleep(LATE / 2).await;
        let mut early = orphans.iter();
        $(early.next().expect("one for each kind").are_left_alone::<$kind>(cluster).await;)+
        sleep(minutes(2)).await;
        assert_eq!(all::<$owner>(cluster).await.len(), 0, "the owner is gone");
        let mut late = orphans.iter();
        $(late.next().expect("one for each kind").are_left_alone::<$kind>(cluster).await;)+
    }};
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "a" }] },
    })
}

#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn owner(spec: Value) -> Value {
    let mut object = json!({ "metadata": { "name": "web" }, "spec": spec });
    object["spec"]["template"] = template();
    object["spec"]["selector"] = json!({ "matchLabels": { "app": "web" } });
    object
}

#[windlass_cluster::test]
async fn orphaned_replica_set_is_not_adopted_when_watch_of_deployments_is_late(
    cluster: TestCluster,
) {
    create::<Deployment>(&cluster, web(2, "a")).await;
    cluster.settle().await;
    orphaned!(
        &cluster,
        Deployment,
        "deployments.apps",
        "web",
        [ReplicaSet]
    );
    assert_eq!(all::<Pod>(&cluster).await.len(), 2);
}

#[windlass_cluster::test]
async fn orphaned_pods_are_not_adopted_when_watch_of_replica_sets_is_late(cluster: TestCluster) {
    create::<ReplicaSet>(&cluster, owner(json!({ "replicas": 3 }))).await;
    cluster.settle().await;
    orphaned!(&cluster, ReplicaSet, "replicasets.apps", "web", [Pod]);
    assert_eq!(
        all::<Pod>(&cluster).await.len(),
        3,
        "none was created instead"
    );
}

#[windlass_cluster::test]
async fn orphaned_pods_and_revisions_are_not_adopted_when_watch_of_stateful_sets_is_late(
    cluster: TestCluster,
) {
    let spec = json!({ "replicas": 2, "serviceName": "web" });
    create::<StatefulSet>(&cluster, owner(spec)).await;
    cluster.settle().await;
    orphaned!(
        &cluster,
        StatefulSet,
        "statefulsets.apps",
        "web",
        [Pod, ControllerRevision]
    );
}

/// A claim that is deleted with its set is data that is lost.
#[windlass_cluster::test]
async fn orphaned_claims_get_no_owner_again_when_watch_of_stateful_sets_is_late(
    cluster: TestCluster,
) {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let spec = json!({
        "replicas": 2, "serviceName": "web", "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Delete", "whenScaled": "Retain" },
    });
    create::<StatefulSet>(&cluster, owner(spec)).await;
    cluster.settle().await;
    orphaned!(
        &cluster,
        StatefulSet,
        "statefulsets.apps",
        "web",
        [PersistentVolumeClaim]
    );
}

#[windlass_cluster::test]
async fn orphaned_pods_and_revisions_are_not_adopted_when_watch_of_daemon_sets_is_late(
    cluster: TestCluster,
) {
    create::<DaemonSet>(&cluster, owner(json!({}))).await;
    cluster.settle().await;
    orphaned!(
        &cluster,
        DaemonSet,
        "daemonsets.apps",
        "web",
        [Pod, ControllerRevision]
    );
}

#[windlass_cluster::test]
async fn orphaned_pods_are_not_adopted_when_watch_of_jobs_is_late(cluster: TestCluster) {
    let mut job = json!({ "metadata": { "name": "web" }, "spec": { "template": template() } });
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job["spec"]["parallelism"] = json!(2);
    create::<Job>(&cluster, job).await;
    cluster.settle().await;
    orphaned!(&cluster, Job, "jobs.batch", "web", [Pod]);
}

/// The collector's graph does not show the `ReplicaSet` yet when it is to cut it loose.
#[windlass_cluster::test]
async fn dependent_that_the_collector_has_not_seen_is_orphaned_too(cluster: TestCluster) {
    create::<Deployment>(&cluster, web(1, "a")).await;
    cluster.settle().await;
    cluster.delay_controllers("configmaps", minutes(1));
    let owner = api::<Deployment>(&cluster).get("web").await.unwrap();
    let mut reference = json!(kube::Resource::owner_ref(&owner, &()));
    reference["controller"] = json!(false);
    let map = json!({ "metadata": { "name": "young", "ownerReferences": [reference] } });
    create::<ConfigMap>(&cluster, map).await;
    delete_orphaning::<Deployment>(&cluster, "web").await;
    sleep(minutes(5)).await;
    assert_eq!(all::<Deployment>(&cluster).await.len(), 0);
    let maps = all::<ConfigMap>(&cluster).await;
    let young = maps.iter().find(|map| map.name_any() == "young");
    assert_eq!(young.expect("it stays").owner_references(), []);
}

/// How many Deployments are there at once.
const AT_ONCE: usize = 25;
/// How late each watch delivers, at most.
const JITTER: Duration = Duration::from_secs(3);

/// A `ReplicaSet` as the orphaning deletion found it.
struct Left {
    set: ReplicaSet,
    /// The pods of a Deployment that had settled; none for one in the middle of a roll-out.
    pods: Option<Vec<String>>,
}

async fn pods_of(cluster: &TestCluster, set: &ReplicaSet) -> Vec<String> {
    let uid = set.uid().unwrap_or_default();
    let mut pods = all::<Pod>(cluster).await;
    pods.retain(|pod| pod.owner_references().iter().any(|one| one.uid == uid));
    pods.iter().filter_map(ResourceExt::uid).collect()
}

/// Creates Deployments, lets most of them settle, rolls the others out, and deletes them all,
/// orphaning. Answers how many `ReplicaSets` were found and how many of them, or of their pods, lost.
async fn round(cluster: &TestCluster, random: &Random) -> (usize, Vec<String>) {
    for number in 0..AT_ONCE {
        let mut deployment = web(1, "a");
        let name = format!("web-{number}");
        deployment["metadata"]["name"] = json!(name);
        deployment["spec"]["selector"]["matchLabels"]["app"] = json!(name);
        deployment["spec"]["template"]["metadata"]["labels"]["app"] = json!(name);
        create::<Deployment>(cluster, deployment).await;
    }
    sleep(minutes(3)).await;
    let mut left = Vec::new();
    for number in 0..AT_ONCE {
        let name = format!("web-{number}");
        let rolls = random.below(4) == 0;
        if rolls {
            let patch = Patch::Merge(image("b"));
            let deployments = api::<Deployment>(cluster);
            let params = PatchParams::default();
            let patched = deployments.patch(&name, &params, &patch).await;
            patched.expect("patched");
        }
        sleep(Duration::from_millis(random.below(2000))).await;
        for set in all::<ReplicaSet>(cluster).await {
            if set.owner_references().iter().any(|one| one.name == name) {
                let pods = pods_of(cluster, &set).await;
                let pods = (!rolls).then_some(pods);
                left.push(Left { set, pods });
            }
        }
        delete_orphaning::<Deployment>(cluster, &name).await;
    }
    sleep(minutes(3)).await;
    assert_eq!(all::<Deployment>(cluster).await.len(), 0, "all are gone");
    let there = all::<ReplicaSet>(cluster).await;
    let mut lost = Vec::new();
    for Left { set, pods } in &left {
        let name = set.name_any();
        let Some(kept) = there.iter().find(|one| one.uid() == set.uid()) else {
            lost.push(format!("ReplicaSet {name}"));
            continue;
        };
        if !kept.owner_references().is_empty() {
            lost.push(format!("ReplicaSet {name} has an owner"));
        }
        let now = pods_of(cluster, kept).await;
        if pods.as_ref().is_some_and(|pods| *pods != now) {
            lost.push(format!("pods of ReplicaSet {name}"));
        }
    }
    for set in &there {
        let name = set.name_any();
        let background = DeleteParams::background();
        let deleted = api::<ReplicaSet>(cluster).delete(&name, &background).await;
        deleted.expect("deleted");
    }
    sleep(minutes(3)).await;
    assert_eq!(all::<Pod>(cluster).await.len(), 0, "and so are their pods");
    (left.len(), lost)
}

/// `ORPHANING_ROUNDS` rounds of 25 deletions each, with every watch late by up to three seconds at
/// random: `make orphaning` plays forty.
#[test]
fn orphaning_deletions_lose_nothing_when_watches_are_late_at_random() {
    let rounds = std::env::var("ORPHANING_ROUNDS");
    let rounds: u64 = rounds.map_or(2, |text| text.parse().expect("a number of rounds"));
    let (mut found, mut lost) = (0, Vec::new());
    for seed in 1..=rounds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let (sets, gone) = runtime.expect("a runtime").block_on(async {
            let cluster = TestCluster::new(seed).await;
            cluster.delay_watches_at_random(JITTER);
            round(&cluster, &Random::seeded(seed)).await
        });
        found += sets;
        lost.extend(gone.into_iter().map(|what| format!("seed {seed}: {what}")));
    }
    let deletions = rounds * AT_ONCE as u64;
    println!(
        "{deletions} orphaning deletions left {found} ReplicaSets, lost {}",
        lost.len()
    );
    assert_eq!(lost, [""; 0]);
}

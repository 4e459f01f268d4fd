//! The operator in an in-process cluster, under virtual time.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::ListParams;
use memcached_operator::{Memcached, MemcachedSpec, operator};
use serde_json::json;
use windlass_cluster::{Failure, TestCluster, hours, seconds};

fn memcached(name: &str, size: i32) -> Memcached {
    Memcached::new(
        name,
        MemcachedSpec {
            size: Some(size),
            expose: false,
        },
    )
}

async fn nodes(cluster: &TestCluster, name: &str) -> Vec<String> {
    cluster
        .get::<Memcached>(name)
        .await
        .status
        .unwrap_or_default()
        .nodes
}

#[windlass_cluster::test]
async fn a_pod_that_crashes_is_unavailable_until_it_is_back(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 1)).await;
    cluster.settle().await;
    let pod = nodes(&cluster, "cache").await.remove(0);
    cluster
        .node()
        .crash("default", &pod, "memcached", 1)
        .unwrap();
    cluster.settle().await;
    let pod = cluster.get::<Pod>(&pod).await;
    assert_eq!(
        pod.status.unwrap().container_statuses.unwrap()[0].restart_count,
        1
    );
    assert_eq!(
        cluster
            .get::<Memcached>("cache")
            .await
            .status
            .unwrap()
            .ready_replicas,
        1
    );
}

#[windlass_cluster::test]
async fn settled_it_sends_nothing_but_watches_even_after_a_restart(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 3)).await;
    cluster.settle().await;
    let before = cluster.requests_of("memcached-operator").len();
    cluster.advance(hours(24)).await;
    cluster.restart_operators().await;
    let later = cluster.requests_of("memcached-operator").split_off(before);
    let writes: Vec<_> = later
        .iter()
        .filter(|request| request.verb.writes())
        .collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

async fn requests_of_a_life(seed: u64) -> Vec<windlass_cluster::Request> {
    let cluster = TestCluster::new(seed).await;
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 3)).await;
    cluster.settle().await;
    cluster.delete::<Memcached>("cache").await;
    cluster.settle().await;
    cluster.requests()
}

#[windlass_cluster::test]
async fn one_seed_gives_one_sequence_of_requests(_cluster: TestCluster) {
    let (first, again) = (requests_of_a_life(7).await, requests_of_a_life(7).await);
    assert_eq!(first, again);
    assert_ne!(
        first,
        requests_of_a_life(8).await,
        "pod names follow from the seed"
    );
}

#[windlass_cluster::test]
async fn lives_with_exactly_the_role_it_declares(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 2)).await;
    cluster.settle().await;
    let exposed = json!({"spec": {"size": 1, "expose": true}});
    cluster.patch::<Memcached>("cache", exposed).await;
    cluster.settle().await;
    let hidden = json!({"spec": {"expose": false}});
    cluster.patch::<Memcached>("cache", hidden).await;
    cluster.settle().await;
    cluster.delete::<Memcached>("cache").await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>().await, []);
    let requests = cluster.requests_of("memcached-operator");
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| request.code == 403)
        .collect();
    assert!(!requests.is_empty() && refused.is_empty(), "{refused:#?}");
    // The role in the cluster is the one its manifests would install, and it is bound to nothing more.
    let role = Api::<ClusterRole>::all(cluster.client())
        .get("memcached-operator")
        .await
        .unwrap();
    let declared = windlass::manifests::role::policy_rules(&operator().description());
    assert_eq!(role.rules, Some(declared));
    let secrets: Api<Secret> = Api::all(cluster.client_as("memcached-operator"));
    let denied = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(
        denied.to_string().contains(
            r#"User "system:serviceaccount:memcached-operator-system:memcached-operator" cannot list resource "secrets""#
        ),
        "{denied}"
    );
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    const NAME: &str = "memcached-operator";
    cluster.start(operator()).await;
    let exceptions = [
        (
            "update memcacheds/finalizers.cache.example.com",
            "asked for by an admission plugin that real clusters may have",
        ),
        (
            "patch memcacheds.cache.example.com",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
        (
            "delete deployments.apps",
            "every Memcached has its Deployment as long as it lives",
        ),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            let mut exposed = memcached("cache", 1);
            exposed.spec.expose = true;
            cluster.create(exposed.clone()).await;
            cluster.settle().await;
            let hidden = json!({ "spec": { "expose": false } });
            cluster.patch::<Memcached>("cache", hidden).await;
            cluster.settle().await;
            // Somebody else's, which the cache does not show yet: they are looked at, and left alone.
            let deployment = cluster.get::<Deployment>("cache-deployment").await;
            let mut other = Deployment::default();
            other.metadata.name = Some("two-deployment".to_owned());
            other.spec = deployment.spec;
            for resource in ["deployments.apps", "services"] {
                cluster.delay_watch(NAME, resource, seconds(30));
            }
            cluster.create(other).await;
            let other = json!({ "metadata": { "name": "three-service" }, "spec": { "ports": [{ "port": 1 }] } });
            cluster.create::<Service>(serde_json::from_value(other).unwrap()).await;
            for name in ["two", "three"] {
                exposed.metadata.name = Some(name.to_owned());
                cluster.create(exposed.clone()).await;
            }
            cluster.settle().await;
            // An API server that cannot stream lists is asked for pages.
            let configuration = "webhookconfigurations.admissionregistration.k8s.io";
            let mutating = format!("mutating{configuration}");
            let validating = format!("validating{configuration}");
            let memcacheds = "memcacheds.cache.example.com";
            let read = ["pods", "services", "deployments.apps", memcacheds, "secrets", &mutating, &validating];
            for resource in read {
                cluster.fail(Failure::with(400).by(NAME).on(resource).times(1));
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 10, "{shown}");
}

#[test]
fn the_manifests_in_the_repository_are_current() {
    windlass_cluster::manifests_are_current(&operator(), env!("CARGO_MANIFEST_DIR"));
}

#[windlass_cluster::test]
async fn events_tell_what_became_of_its_children(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 1)).await;
    cluster.settle().await;
    for spec in [
        json!({ "expose": true }),
        json!({ "size": 2 }),
        json!({ "expose": false }),
    ] {
        let patch = json!({ "spec": spec });
        cluster.patch::<Memcached>("cache", patch).await;
        cluster.settle().await;
    }
    let events = cluster.list::<Event>().await;
    let about = |event: &&Event| {
        event
            .regarding
            .as_ref()
            .is_some_and(|it| it.kind.as_deref() == Some("Memcached"))
    };
    let told = |event: &Event| {
        Some(format!(
            "{}: {}",
            event.reason.as_ref()?,
            event.note.as_ref()?
        ))
    };
    let mut told: Vec<String> = events.iter().filter(about).filter_map(told).collect();
    told.sort();
    assert_eq!(
        told,
        [
            "Created: created deployments.apps default/cache-deployment",
            "Created: created services default/cache-service",
            "Deleted: deleted services default/cache-service",
            "Updated: updated deployments.apps default/cache-deployment",
        ]
    );
}

#[windlass_cluster::test]
async fn explored_with_faults_it_ends_alike(cluster: TestCluster) {
    cluster.start(operator()).await;
    let report = cluster
        .explore(|cluster| async move {
            cluster.create(memcached("cache", 2)).await;
            cluster.settle().await;
            let smaller = json!({ "spec": { "size": 1 } });
            cluster.patch::<Memcached>("cache", smaller).await;
            cluster.settle().await;
        })
        .plans(60)
        .await;
    report.expect_sound();
}

#[windlass_cluster::test]
#[ignore = "`make bench-explore` runs it"]
async fn bench_explore(cluster: TestCluster) {
    cluster.start(operator()).await;
    let began = std::time::Instant::now();
    let report = cluster
        .explore(|cluster| async move {
            cluster.create(memcached("cache", 2)).await;
            cluster.settle().await;
            let smaller = json!({ "spec": { "size": 1 } });
            cluster.patch::<Memcached>("cache", smaller).await;
            cluster.settle().await;
        })
        .plans(1_000)
        .await;
    report.expect_sound();
    // A test has one thread, which is never idle.
    #[allow(clippy::cast_precision_loss, reason = "it is a small number")]
    let rate = report.runs as f64 / began.elapsed().as_secs_f64() * 60.0;
    println!(
        "memcached: {} plans, {rate:.0} a minute and core",
        report.runs
    );
}

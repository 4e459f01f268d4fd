//! The operator in an in-process cluster, under virtual time.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
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
            size,
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
async fn created_gives_as_many_nodes_as_asked_for(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 3)).await;
    cluster.settle().await;
    let pods = cluster.list::<Pod>().await;
    let mut names: Vec<String> = pods
        .iter()
        .filter_map(|pod| pod.metadata.name.clone())
        .collect();
    names.sort();
    assert_eq!(nodes(&cluster, "cache").await, names);
    assert_eq!(names.len(), 3);
    let status = cluster.get::<Memcached>("cache").await.status.unwrap();
    assert_eq!(status.ready_replicas, 3);
    let available = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Available")
        .unwrap();
    assert_eq!(available.status, "True", "{available:?}");
}

#[windlass_cluster::test]
async fn resized_up_and_down(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 1)).await;
    cluster.settle().await;
    for size in [4, 2, 0, 3] {
        cluster
            .patch::<Memcached>("cache", json!({"spec": {"size": size}}))
            .await;
        cluster.settle().await;
        assert_eq!(
            nodes(&cluster, "cache").await.len(),
            usize::try_from(size).unwrap()
        );
    }
}

#[windlass_cluster::test]
async fn a_deployment_edited_by_hand_is_repaired(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 2)).await;
    cluster.settle().await;
    let broken = json!({"spec": {"replicas": 7, "template": {"spec": {"containers": [
        {"name": "memcached", "image": "memcached:0"}]}}}});
    cluster
        .patch::<Deployment>("cache-deployment", broken)
        .await;
    cluster.settle().await;
    let spec = cluster
        .get::<Deployment>("cache-deployment")
        .await
        .spec
        .unwrap();
    assert_eq!(spec.replicas, Some(2));
    assert_eq!(
        spec.template.spec.unwrap().containers[0].image.as_deref(),
        Some("memcached:1.6.6")
    );
    assert_eq!(nodes(&cluster, "cache").await.len(), 2);
}

#[windlass_cluster::test]
async fn a_deployment_deleted_by_hand_comes_back(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 2)).await;
    cluster.settle().await;
    let before = nodes(&cluster, "cache").await;
    cluster.delete::<Deployment>("cache-deployment").await;
    cluster.settle().await;
    let after = nodes(&cluster, "cache").await;
    assert_eq!(after.len(), 2);
    assert!(
        before.iter().all(|name| !after.contains(name)),
        "{before:?} {after:?}"
    );
}

#[windlass_cluster::test]
async fn the_service_is_there_exactly_while_it_is_asked_for(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 1)).await;
    cluster.settle().await;
    assert!(cluster.find::<Service>("cache-service").await.is_none());
    cluster
        .patch::<Memcached>("cache", json!({"spec": {"expose": true}}))
        .await;
    cluster.settle().await;
    assert!(cluster.find::<Service>("cache-service").await.is_some());
    cluster.delete::<Service>("cache-service").await;
    cluster.settle().await;
    assert!(
        cluster.find::<Service>("cache-service").await.is_some(),
        "deleted by accident, it is made again"
    );
    cluster
        .patch::<Memcached>("cache", json!({"spec": {"expose": false}}))
        .await;
    cluster.settle().await;
    assert!(cluster.find::<Service>("cache-service").await.is_none());
}

#[windlass_cluster::test]
async fn deleted_takes_everything_with_it(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("cache", 3)).await;
    cluster.settle().await;
    cluster.delete::<Memcached>("cache").await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Deployment>().await, []);
    assert_eq!(cluster.list::<Pod>().await, []);
}

#[windlass_cluster::test]
async fn two_instances_never_count_each_others_pods(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(memcached("one", 1)).await;
    cluster.create(memcached("two", 2)).await;
    cluster.settle().await;
    let (one, two) = (nodes(&cluster, "one").await, nodes(&cluster, "two").await);
    assert_eq!((one.len(), two.len()), (1, 2));
    assert!(
        one.iter().all(|name| name.starts_with("one-"))
            && two.iter().all(|name| name.starts_with("two-"))
    );
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
async fn a_negative_size_is_refused_with_the_field_named(cluster: TestCluster) {
    cluster.start(operator()).await;
    let api: kube::Api<Memcached> = kube::Api::default_namespaced(cluster.client());
    let error = api
        .create(&kube::api::PostParams::default(), &memcached("cache", -1))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("spec.size: Invalid value: -1"),
        "{error}"
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

#[windlass_cluster::test]
async fn killed_after_any_write_it_ends_the_same(cluster: TestCluster) {
    cluster.start(operator()).await;
    let replays = cluster
        .crash_after_every_write(|cluster| async move {
            cluster.create(memcached("cache", 2)).await;
            cluster.settle().await;
            cluster
                .patch::<Memcached>("cache", json!({"spec": {"size": 3, "expose": true}}))
                .await;
            cluster.settle().await;
            cluster.delete::<Deployment>("cache-deployment").await;
            cluster.settle().await;
            cluster
                .patch::<Memcached>("cache", json!({"spec": {"expose": false}}))
                .await;
            cluster.settle().await;
        })
        .await;
    assert!(replays >= 5, "only {replays} writes");
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
                cluster.delay_watch(NAME, resource, seconds(60));
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
            for resource in ["pods", "services", "deployments.apps", "memcacheds.cache.example.com"] {
                cluster.fail(Failure::with(400).by(NAME).on(resource).times(1));
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 10, "{shown}");
}

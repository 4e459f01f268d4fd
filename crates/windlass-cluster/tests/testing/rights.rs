//! Operators run with the role that follows from their declaration, and nothing else.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use windlass::{
    Operator,
    handle::{Access, Verb},
};
use windlass_cluster::{Failure, TestCluster, seconds};

use crate::operators::{diligent, wish};

fn message<T>(result: kube::Result<T>) -> String {
    match result {
        Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
        Err(error) => panic!("not an answer of the API server: {error}"),
        Ok(_) => "allowed".to_owned(),
    }
}

async fn list_pods(client: Client) -> String {
    let pods: Api<Pod> = Api::default_namespaced(client);
    message(pods.list(&ListParams::default()).await)
}

#[windlass_cluster::test]
async fn what_an_operator_did_not_declare_it_is_refused(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let client = cluster.client_as("diligent");
    assert_eq!(
        list_pods(client.clone()).await,
        r#"403 pods is forbidden: User "system:serviceaccount:diligent-system:diligent" cannot list resource "pods" in API group "" in the namespace "default""#
    );
    let configs: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert_eq!(
        message(configs.list(&ListParams::default()).await),
        "allowed"
    );
    // Nor can it help itself to more.
    let roles: Api<ClusterRole> = Api::all(client);
    let more =
        json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }] });
    let helped = roles
        .patch("diligent", &PatchParams::default(), &Patch::Merge(more))
        .await;
    assert_eq!(
        message(helped),
        r#"403 clusterroles.rbac.authorization.k8s.io "diligent" is forbidden: User "system:serviceaccount:diligent-system:diligent" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope"#
    );
}

#[windlass_cluster::test]
async fn a_raw_client_reaches_no_further_than_its_grants(cluster: TestCluster) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let grants = [Access::of::<Pod>([Verb::List])];
    let curious = Operator::new("curious").task("look", grants, move |task| {
        let told = told.clone();
        async move {
            let client = task.client;
            let secrets: Api<Secret> = Api::all(client.clone());
            let secrets = message(secrets.list(&ListParams::default()).await);
            let pods = list_pods(client).await;
            told.lock().unwrap().extend([pods, secrets]);
            Ok(())
        }
    });
    cluster.start(curious).await;
    cluster.settle().await;
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "allowed",
            r#"403 secrets is forbidden: User "system:serviceaccount:curious-system:curious" cannot list resource "secrets" in API group "" at the cluster scope"#,
        ]
    );
}

async fn give(cluster: &TestCluster, rules: serde_json::Value) {
    let patch = Patch::Merge(json!({ "rules": rules }));
    let params = PatchParams::default();
    let api: Api<ClusterRole> = Api::all(cluster.client());
    api.patch("diligent", &params, &patch).await.unwrap();
}

#[windlass_cluster::test]
async fn a_role_counts_from_the_write_that_changes_it(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let client = || cluster.client_as("diligent");
    let pods = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }]);
    give(&cluster, pods).await;
    assert_eq!(list_pods(client()).await, "allowed");
    give(&cluster, json!([])).await;
    assert!(list_pods(client()).await.starts_with("403 "));
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    let all = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
    give(&cluster, all).await;
    assert_eq!(list_pods(client()).await, "allowed");
    let now = DeleteParams::default();
    bindings.delete("diligent", &now).await.unwrap();
    assert!(list_pods(client()).await.starts_with("403 "));
}

#[windlass_cluster::test]
#[should_panic(
    expected = r#"User \"system:serviceaccount:diligent-system:diligent\" cannot watch resource \"secrets\" in API group \"\" at the cluster scope"#
)]
async fn an_operator_without_a_right_it_needs_fails_its_test(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let configs = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"] }]);
    give(&cluster, configs).await;
    cluster.restart_operators().await;
}

#[windlass_cluster::test]
async fn controllers_and_node_live_with_their_own_roles(cluster: TestCluster) {
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "a" }] },
            },
        },
    });
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let web: Deployment = serde_json::from_value(web).unwrap();
    deployments
        .create(&PostParams::default(), &web)
        .await
        .unwrap();
    cluster.settle().await;
    let image = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "b" }] } } } });
    cluster.patch::<Deployment>("web", image).await;
    cluster.settle().await;
    let foreground = DeleteParams::foreground();
    deployments.delete("web", &foreground).await.unwrap();
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>().await, []);
    let requests = cluster.requests();
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| request.code == 403)
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    for user in [
        "system:serviceaccount:kube-system:windlass-workloads",
        "system:node:simulated",
    ] {
        assert!(
            requests.iter().any(|request| request.user == user),
            "{user} did nothing"
        );
    }
}

/// Gives an operator's cache its first lists in pages, as an API server does that cannot stream them.
async fn list_in_pages(cluster: &TestCluster, operator: &str, resources: &[&str]) {
    for resource in resources {
        cluster.fail(Failure::with(400).by(operator).on(*resource).times(1));
    }
    cluster.restart_operators().await;
}

#[windlass_cluster::test]
async fn every_right_of_a_small_operator_is_needed(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let exceptions = [
        (
            "update secrets/finalizers",
            "asked for by an admission plugin that real clusters may have",
        ),
        ("patch events.events.k8s.io", "needs the same event twice"),
        ("delete configmaps", "it never deletes"),
        ("update configmaps", "it only applies"),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            cluster.create(wish("one")).await;
            cluster.settle().await;
            // One that the cache does not show yet: it is looked at, and is somebody else's.
            cluster.delay_watch("diligent", "configmaps", seconds(30));
            let mut other = ConfigMap::default();
            other.metadata.name = Some("two-first".to_owned());
            cluster.create(other).await;
            cluster.create(wish("two")).await;
            cluster.settle().await;
            list_in_pages(&cluster, "diligent", &["secrets", "configmaps"]).await;
        })
        .await;
    assert!(shown >= 5, "{shown}");
}

#[windlass_cluster::test]
#[should_panic(expected = "list pods")]
async fn a_right_that_is_not_needed_is_named(cluster: TestCluster) {
    let grants = [Access::of::<Pod>([Verb::List, Verb::Get])];
    let look = |task: windlass::run::TaskContext| async move {
        let pods: Api<Pod> = Api::default_namespaced(task.client);
        pods.get_opt("none")
            .await
            .map(|_| ())
            .map_err(windlass::Error::other)
    };
    cluster
        .start(Operator::new("greedy").task("look", grants, look))
        .await;
    cluster.every_right_is_needed(&[], |_| async {}).await;
}

#[windlass_cluster::test]
async fn rights_that_were_not_used_are_listed(cluster: TestCluster) {
    let operator = diligent();
    cluster.start(diligent()).await;
    let before = cluster.unused_rights(&operator);
    assert!(
        before.contains(&"create configmaps".to_owned()),
        "{before:?}"
    );
    assert!(!before.contains(&"watch secrets".to_owned()), "{before:?}");
    cluster.create(wish("one")).await;
    cluster.settle().await;
    let after = cluster.unused_rights(&operator);
    assert!(
        !after.contains(&"create configmaps".to_owned()),
        "{after:?}"
    );
    assert!(!after.contains(&"patch configmaps".to_owned()), "{after:?}");
    assert!(after.contains(&"delete configmaps".to_owned()), "{after:?}");
}

#[windlass_cluster::test]
async fn all_missing_rights_are_named_in_one_message(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let client = || cluster.client_as("diligent");
    let operator = diligent();
    assert_eq!(
        operator.missing_rights(&client()).await.unwrap(),
        Vec::<String>::new()
    );
    let some = json!([
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "patch"] },
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["list"] },
        { "apiGroups": [""], "resources": ["secrets/finalizers"], "verbs": ["update"] },
        { "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"] },
    ]);
    give(&cluster, some).await;
    assert_eq!(
        operator.missing_rights(&client()).await.unwrap(),
        ["delete configmaps", "watch secrets"]
    );
}

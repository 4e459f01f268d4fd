//! An operator that has nothing to change sends nothing; what it no longer wants it removes once.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use serde_json::{Value, json};
use windlass::{Action, Context, Controller, Declare, Operator, Reconciler, Result, handle::Owned};
use windlass_cluster::{TestCluster, Verb, hours, minutes, seconds};

use crate::stage::{secret, writes};

/// A deployment with everything a server likes to rewrite: quantities, ports by name and number,
/// lists keyed by what is defaulted, zero values, and much that it fills in itself.
fn deployment(secret: &Secret) -> Deployment {
    let name = secret.metadata.name.clone();
    let large = secret.metadata.labels.is_some();
    let mut deployment = json!({
        "metadata": {"name": name, "annotations": {"zero": ""}},
        "spec": {
            "replicas": 0,
            "paused": false,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "hostNetwork": false,
                    "containers": [{
                        "name": "main",
                        "image": "a",
                        "args": ["1000m"],
                        "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 443}],
                        "env": [{"name": "A", "value": "0.5"}, {"name": "B"}],
                        "resources": {
                            "requests": {"cpu": "0.5", "memory": "1024Mi"},
                            "limits": {"cpu": "1000m", "memory": "1.5Gi"},
                        },
                        "livenessProbe": {"httpGet": {"port": "web", "path": "/"}},
                        "readinessProbe": {"tcpSocket": {"port": 80}},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                    }],
                    "volumes": [
                        {"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}},
                        {"name": "all", "projected": {"sources": [
                            {"serviceAccountToken": {"path": "token"}},
                            {"configMap": {"name": "c", "optional": false}},
                        ]}},
                    ],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                },
            },
        },
    });
    if large {
        deployment["spec"]["template"]["spec"]["containers"][0]["workingDir"] = "/".into();
    }
    from(deployment)
}

fn service(secret: &Secret) -> Service {
    let name = secret.metadata.name.clone();
    from(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"app": name},
            "ports": [
                {"name": "web", "port": 80, "targetPort": "web"},
                {"name": "tls", "port": 443, "targetPort": 443},
            ],
        },
    }))
}

fn credentials(secret: &Secret) -> Secret {
    let mut made = Secret::default();
    made.metadata.name = secret
        .metadata
        .name
        .as_ref()
        .map(|name| format!("{name}-made"));
    made.string_data = Some([("user".to_owned(), "admin".to_owned())].into());
    made
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn operator() -> Operator {
    struct Maker {
        deployments: Owned<Deployment>,
        services: Owned<Service>,
        secrets: Owned<Secret>,
    }

    impl Reconciler for Maker {
        type Object = Secret;

        async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
            if secret.metadata.owner_references.is_some() {
                return Ok(Action::done());
            }
            self.deployments.apply(ctx, deployment(secret)).await?;
            self.services.apply(ctx, service(secret)).await?;
            self.secrets.apply(ctx, credentials(secret)).await?;
            Ok(Action::done())
        }
    }

    let declare = |declare: &mut Declare<Secret>| Maker {
        deployments: declare.owns(),
        services: declare.owns(),
        secrets: declare.owns(),
    };
    Operator::new("maker").controller(Controller::of_existing().reconciler(declare))
}

/// The requests that are neither watches nor, one day, lease renewals.
fn active(cluster: &TestCluster, since: usize) -> Vec<String> {
    let requests = cluster.requests_of("maker");
    let later = requests[since..].iter();
    later
        .filter(|one| one.verb != Verb::Watch)
        .map(ToString::to_string)
        .collect()
}

#[windlass_cluster::test]
async fn what_the_server_rewrites_is_written_once_and_not_after_a_restart(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
    assert_eq!(
        writes(&cluster, "maker"),
        [
            "patch deployments.apps one in default",
            "patch services one in default",
            "patch secrets one-made in default",
        ]
    );
    let settled = cluster.requests_of("maker").len();
    // Woken again and again, by itself and by what it owns.
    for number in 0..5 {
        let touch = json!({"metadata": {"annotations": {"touched": number.to_string()}}});
        cluster.patch::<Secret>("one", touch.clone()).await;
        cluster.patch::<Deployment>("one", touch.clone()).await;
        cluster.patch::<Service>("one", touch).await;
        cluster.settle().await;
    }
    cluster.advance(hours(3)).await;
    assert_eq!(active(&cluster, settled), [""; 0]);
    cluster.restart_operators().await;
    cluster.advance(hours(1)).await;
    assert_eq!(
        active(&cluster, settled),
        [""; 0],
        "nor does a new process send anything"
    );
}

#[windlass_cluster::test]
async fn a_field_no_longer_wanted_is_removed_by_one_request(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(secret("one")).await;
    let label = |value: Value| json!({"metadata": {"labels": {"large": value}}});
    cluster.patch::<Secret>("one", label("yes".into())).await;
    cluster.settle().await;
    let directory = || async {
        let spec = cluster.get::<Deployment>("one").await.spec.unwrap();
        spec.template.spec.unwrap().containers[0]
            .working_dir
            .clone()
    };
    assert_eq!(directory().await.as_deref(), Some("/"));
    for restart in [false, true] {
        if restart {
            cluster.patch::<Secret>("one", label("yes".into())).await;
            cluster.settle().await;
            cluster.restart_operators().await;
        }
        let before = cluster.requests_of("maker").len();
        cluster.patch::<Secret>("one", label(Value::Null)).await;
        cluster.advance(minutes(10)).await;
        assert_eq!(directory().await, None);
        assert_eq!(
            active(&cluster, before),
            ["patch deployments.apps one in default"]
        );
    }
}

/// An operator that wants a `ConfigMap` of a name that is somebody's already.
fn greedy() -> Operator {
    struct Greedy(Owned<ConfigMap>);

    impl Reconciler for Greedy {
        type Object = Secret;

        async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
            let map = from(json!({"metadata": {"name": "wanted"}, "data": {"by": "greedy"}}));
            self.0.apply(ctx, map).await?;
            Ok(Action::done())
        }
    }

    let declare = |declare: &mut Declare<Secret>| Greedy(declare.owns());
    Operator::new("greedy").controller(Controller::of_existing().reconciler(declare))
}

#[windlass_cluster::test]
async fn an_object_the_cache_does_not_know_yet_is_not_taken_over(cluster: TestCluster) {
    cluster.start(greedy()).await;
    cluster.delay_watch("greedy", "configmaps", seconds(30));
    // Somebody else's object, which the operator's watch will show in half a minute.
    let theirs = json!({"metadata": {"name": "wanted"}, "data": {"by": "them"}});
    cluster.create::<ConfigMap>(from(theirs)).await;
    cluster.create(secret("one")).await;
    tokio::time::sleep(minutes(2)).await;
    cluster.settle().await;
    let map = cluster.get::<ConfigMap>("wanted").await;
    assert_eq!(map.data.unwrap()["by"], "them");
    assert_eq!(map.metadata.owner_references, None);
    let applied = writes(&cluster, "greedy");
    let applied = applied
        .iter()
        .filter(|one| one.starts_with("patch configmaps"));
    assert_eq!(applied.count(), 1, "refused once, and known from then on");
    // It goes, and the name is free.
    cluster.delete::<ConfigMap>("wanted").await;
    cluster.advance(minutes(2)).await;
    assert_eq!(
        cluster.get::<ConfigMap>("wanted").await.data.unwrap()["by"],
        "greedy"
    );
}

//! One seed, one sequence of requests, whoever sends them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use windlass_cluster::{Request, TestCluster, minutes};

use crate::operators::{diligent, hasty, wish};

/// Two operators, a roll-out, a pod that fails, a crash, a namespace that goes: many at work at once.
async fn requests(seed: u64) -> Vec<Request> {
    let cluster = TestCluster::new(seed).await;
    cluster.start(diligent()).await;
    cluster.start(hasty()).await;
    let web = |name: &str, image: &str| {
        json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": image }] },
                },
            },
        })
    };
    for name in ["one", "two", "three"] {
        cluster.create(wish(name)).await;
        let deployment = serde_json::from_value(web(name, "a")).unwrap();
        cluster.create::<Deployment>(deployment).await;
    }
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let mut doomed = Namespace::default();
    doomed.metadata.name = Some("doomed".to_owned());
    let created = namespaces.create(&PostParams::default(), &doomed).await;
    created.unwrap();
    cluster.settle().await;
    cluster.patch::<Deployment>("one", web("one", "b")).await;
    cluster.delete::<Deployment>("two").await;
    cluster.delete::<Secret>("three").await;
    let deleted = namespaces.delete("doomed", &DeleteParams::default()).await;
    deleted.unwrap();
    cluster.restart_operators().await;
    cluster.advance(minutes(10)).await;
    cluster.requests()
}

#[windlass_cluster::test]
async fn one_seed_gives_one_sequence_of_requests(cluster: TestCluster) {
    drop(cluster);
    let (first, again, other) = (requests(7).await, requests(7).await, requests(8).await);
    let differs = first.iter().zip(&again).position(|(one, two)| one != two);
    assert_eq!(differs.map(|at| (at, &first[at], &again[at])), None);
    assert_eq!(first.len(), again.len());
    assert_ne!(first, other, "names follow from the seed");
}

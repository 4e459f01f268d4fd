//! What the example promises, in a cluster.

use k8s_openapi::api::{core::v1::Namespace, networking::v1::Ingress};
use kube::{Api, api::PostParams};
use reading_webhook_operator::operator;
use windlass::object;
use windlass_cluster::TestCluster;

/// What the API server answers to an Ingress of that host: nothing if it takes it.
async fn refusal(cluster: &TestCluster, namespace: &str, host: &str) -> Option<String> {
    let ingress = object!(Ingress {
        metadata: { name: "web" },
        spec: {
            rules: [{
                host: host,
                http: { paths: [{
                    path_type: "Prefix",
                    path: "/",
                    backend: { service: { name: "web", port: { number: 80 } } },
                }] },
            }],
        },
    });
    let api: Api<Ingress> = Api::namespaced(cluster.client(), namespace);
    let created = api.create(&PostParams::default(), &ingress).await;
    created.err().map(|error| error.to_string())
}

#[windlass_cluster::test]
async fn host_outside_of_the_domain_of_its_namespace_is_refused(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster
        .create(object!(Namespace {
            metadata: { name: "shop", annotations: { "example.com/domain": "shop.example" } },
        }))
        .await;
    let refused = refusal(&cluster, "shop", "www.other.example")
        .await
        .unwrap();
    let expected =
        "spec.rules[0].host: Invalid value: \"www.other.example\": must be a host of shop.example";
    assert!(refused.contains(expected), "{refused}");
    assert_eq!(refusal(&cluster, "shop", "www.shop.example").await, None);
}

#[windlass_cluster::test]
async fn namespace_without_a_domain_has_no_ingresses(cluster: TestCluster) {
    cluster.start(operator()).await;
    let refused = refusal(&cluster, "default", "www.shop.example")
        .await
        .unwrap();
    assert!(
        refused.contains("namespace default has no example.com/domain"),
        "{refused}"
    );
}

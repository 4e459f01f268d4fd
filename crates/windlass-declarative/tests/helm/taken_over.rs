//! A release that Helm made is taken over.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_charts::{Options, render};
use windlass_cluster::TestCluster;
use windlass_declarative::helm::release::{Contents, Release, Status};
use windlass_declarative::helm::stages::objects_of_manifest;

use crate::web::{chart, history, patch, statuses, web, web_operator};

/// Does what `helm install` does: the revision, and the objects with Helm's marks, by its manager.
async fn helm_install(cluster: &TestCluster, values: &Value) {
    let chart = chart();
    let values = values.as_object().unwrap().clone();
    let options = Options {
        name: "shop".to_owned(),
        seed: [7; 32],
        ..Options::default()
    };
    let rendered = render(&chart, &values, &options).unwrap();
    let contents = Contents {
        name: "shop",
        namespace: "default",
        revision: 1,
        chart: &chart,
        config: &values,
        rendered: &rendered,
    };
    let now = "2026-01-01T00:00:00Z";
    let release = Release::new(&contents, Status::Deployed, "Install complete", now, None);
    let secret: Secret = serde_json::from_value(release.secret()).unwrap();
    cluster.create(secret).await;
    for one in objects_of_manifest(release.manifest()).unwrap() {
        let mut object: DynamicObject = serde_json::from_value(one.object).unwrap();
        object
            .labels_mut()
            .insert("app.kubernetes.io/managed-by".into(), "Helm".into());
        let annotations = object.annotations_mut();
        annotations.insert("meta.helm.sh/release-name".into(), "shop".into());
        annotations.insert("meta.helm.sh/release-namespace".into(), "default".into());
        let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
        let params = PatchParams::apply("helm");
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }
}

#[windlass_cluster::test]
async fn release_of_helm_is_taken_over_without_touching_a_pod(cluster: TestCluster) {
    let values = json!({"image": {"name": "nginx:2"}, "replicas": 2});
    helm_install(&cluster, &values).await;
    cluster.settle().await;
    let pods = |pods: Vec<Pod>| -> Vec<_> { pods.iter().map(kube::ResourceExt::uid).collect() };
    let before = pods(cluster.list::<Pod>().await);
    assert_eq!(before.len(), 2);
    let generation = cluster.get::<Deployment>("shop").await.metadata.generation;

    cluster.start(web_operator()).await;
    cluster.create(web(values)).await;
    cluster.settle().await;
    assert_eq!(pods(cluster.list::<Pod>().await), before);
    let deployment = cluster.get::<Deployment>("shop").await;
    assert_eq!(deployment.metadata.generation, generation);
    assert_eq!(deployment.owner_references()[0].kind, "Web");
    let statuses_now = statuses(&cluster).await;
    // The password of the chart is another one: that alone is an upgrade.
    assert_eq!(statuses_now, ["1 superseded", "2 deployed"]);
    assert_eq!(
        history(&cluster).await[1].first_deployed(),
        Some("2026-01-01T00:00:00Z")
    );

    patch(&cluster, json!({"page": "New"})).await;
    cluster.settle().await;
    assert_eq!(statuses(&cluster).await.last().unwrap(), "3 deployed");
}

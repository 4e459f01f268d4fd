//! Dependents as plain YAML.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Controller, Observed, Operator, controller::Template};
use windlass_cluster::TestCluster;

use crate::stage::writes;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
struct SiteSpec {
    text: String,
    replicas: i32,
    #[serde(default)]
    hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    motto: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    #[serde(default)]
    objects: Vec<String>,
}

const SERVER: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ metadata.name }}-content"
data:
  index.html: "<p>{{ spec.text }}</p>"
---
# An empty document is none.
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: "{{ metadata.name }}"
spec:
  replicas: "{{ spec.replicas }}"
  selector: { matchLabels: { site: "{{ metadata.name }}" } }
  template:
    metadata: { labels: { site: "{{ metadata.name }}" } }
    spec: { containers: [{ name: web, image: nginx }] }
"#;

const MOTTO: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: { name: "{{ metadata.name }}-motto" }
data: { motto: "{{ spec.motto }}" }
"#;

fn operator() -> Operator {
    let server = Template::yaml(SERVER)
        .when(|site: &Site| !site.spec.hidden)
        .with(|site, document| document["metadata"]["labels"] = json!({"text": site.spec.text}));
    let motto = Template::yaml(MOTTO).when(|site: &Site| site.spec.text == "say-it");
    let status = |_: &Site, observed: &Observed| SiteStatus {
        objects: observed
            .of_templates()
            .filter_map(|one| one["metadata"]["name"].as_str().map(ToOwned::to_owned))
            .collect(),
    };
    Operator::new("sites").controller(
        Controller::of::<Site>()
            .template(server)
            .template(motto)
            .status(status),
    )
}

fn site(text: &str) -> Site {
    let spec = SiteSpec {
        text: text.to_owned(),
        replicas: 2,
        hidden: false,
        motto: None,
    };
    Site::new("home", spec)
}

#[windlass_cluster::test]
async fn documents_are_applied_repaired_and_pruned(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(site("hello")).await;
    cluster.settle().await;
    let content = cluster.get::<ConfigMap>("home-content").await;
    assert_eq!(content.data.unwrap()["index.html"], "<p>hello</p>");
    assert_eq!(content.metadata.labels.unwrap()["text"], "hello");
    let server = cluster.get::<Deployment>("home").await;
    assert_eq!(server.spec.unwrap().replicas, Some(2));
    let status = cluster.get::<Site>("home").await.status.unwrap();
    assert_eq!(status.objects, ["home-content", "home"]);

    cluster.delete::<ConfigMap>("home-content").await;
    let patch = json!({"spec": {"replicas": 5}});
    cluster.patch::<Deployment>("home", patch).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("home-content").await.is_some());
    let server = cluster.get::<Deployment>("home").await;
    assert_eq!(server.spec.unwrap().replicas, Some(2));

    // Settled, it sends nothing, after a restart too.
    let sent = writes(&cluster, "sites").len();
    cluster.restart_operators().await;
    assert_eq!(writes(&cluster, "sites").len(), sent);

    let patch = json!({"spec": {"hidden": true}});
    cluster.patch::<Site>("home", patch).await;
    cluster.settle().await;
    assert!(
        cluster
            .list::<ConfigMap>()
            .await
            .iter()
            .all(|one| { one.metadata.name.as_deref() != Some("home-content") })
    );
    assert!(cluster.find::<Deployment>("home").await.is_none());
}

#[windlass_cluster::test]
async fn a_field_that_is_not_there_is_named(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(site("say-it")).await;
    cluster.settle().await;
    let errors = |kind: &str| {
        let name = format!("controller_runtime_{kind}_errors_total");
        cluster.metric("sites", &name, "controller=\"site\"")
    };
    // It waits for a change instead of trying again.
    assert!(errors("terminal_reconcile") > 0.5);
    assert!((errors("reconcile") - errors("terminal_reconcile")).abs() < 0.5);
    // What the other template says is there all the same.
    assert!(cluster.find::<Deployment>("home").await.is_some());
    let patch = json!({"spec": {"motto": "now"}});
    cluster.patch::<Site>("home", patch).await;
    cluster.settle().await;
    let motto = cluster.get::<ConfigMap>("home-motto").await;
    assert_eq!(motto.data.unwrap()["motto"], "now");
}

#[test]
fn what_is_no_template_is_told_before_it_runs() {
    for (text, wanted) in [
        ("a: [", "a template is not YAML"),
        ("kind: ConfigMap", "has no apiVersion and kind"),
        (
            "{apiVersion: v1, kind: ConfigMap}",
            "a ConfigMap of a template has no name",
        ),
    ] {
        let controller = Controller::of::<Site>().template(Template::yaml(text));
        let flaw = Operator::new("sites").controller(controller).check();
        let flaw = flaw.unwrap_err().to_string();
        assert!(flaw.contains(wanted), "{flaw}");
    }
}

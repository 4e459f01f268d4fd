//! The operator of the chart that the tests use, and what they look at.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass::Operator;
use windlass_charts::Chart;
use windlass_cluster::TestCluster;
use windlass_declarative::helm::definition::{Names, definition};
use windlass_declarative::helm::operator::{Kind, Settings, operator};
use windlass_declarative::helm::release::{Release, SECRET_TYPE};
use windlass_declarative::helm::watches::Watch;

/// A release of the chart.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Web",
    namespaced,
    status = "WebStatus"
)]
pub(crate) struct WebSpec {
    #[serde(flatten)]
    pub(crate) values: Map<String, Value>,
}

/// What the operator says of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WebStatus {
    pub(crate) conditions: Vec<Value>,
    pub(crate) deployed_release: Option<Value>,
}

/// Where the chart is, which the tests of the whole use too.
pub(crate) fn chart_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/web-chart")
}

pub(crate) fn chart() -> Chart {
    Chart::load(&chart_folder()).unwrap()
}

pub(crate) fn web_operator() -> Operator {
    operator_of(chart())
}

pub(crate) fn operator_of(chart: Chart) -> Operator {
    let names = Names {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Web".to_owned(),
        plural: "webs".to_owned(),
    };
    let crd = definition(&names, &chart);
    let watch = Watch {
        group: names.group,
        version: names.version,
        kind: names.kind,
        chart_path: "web".into(),
        chart,
        watch_dependent_resources: true,
        override_values: [("image.name".to_owned(), "nginx:2".to_owned())].into(),
        selector: LabelSelector::default(),
        reconcile_period: None,
        dry_run_option: String::new(),
    };
    let kind = Kind {
        definition: Some(serde_json::from_value(crd).unwrap()),
        ..Kind::of(watch)
    };
    operator("webs", &[kind], &Settings::default())
        .unwrap()
        .field_manager("helm")
}

pub(crate) fn web(values: Value) -> Web {
    let Value::Object(values) = values else {
        panic!("{values} is no map");
    };
    Web::new("shop", WebSpec { values })
}

pub(crate) async fn patch(cluster: &TestCluster, values: Value) {
    cluster
        .patch::<Web>("shop", json!({ "spec": values }))
        .await;
}

/// The conditions of the contract, as `Type=Status Reason`: the framework adds its own.
pub(crate) async fn conditions(cluster: &TestCluster) -> Vec<String> {
    let status = cluster.get::<Web>("shop").await.status.unwrap_or_default();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let show = |one: &Value| {
        format!(
            "{}={} {}",
            text(one, "type"),
            text(one, "status"),
            text(one, "reason")
        )
    };
    let known = ["Initialized", "Deployed", "ReleaseFailed", "Irreconcilable"];
    let mut shown: Vec<String> = status.conditions.iter().map(show).collect();
    shown.retain(|one| known.iter().any(|known| one.starts_with(known)));
    shown
}

/// The revisions of the release, in order.
pub(crate) async fn history(cluster: &TestCluster) -> Vec<Release> {
    let secrets = cluster.list::<Secret>().await.into_iter();
    let releases = secrets.filter(|secret| secret.type_.as_deref() == Some(SECRET_TYPE));
    let mut found: Vec<Release> = releases
        .map(|secret| Release::from_secret(&serde_json::to_value(secret).unwrap()).unwrap())
        .collect();
    found.sort_by_key(Release::revision);
    found
}

pub(crate) async fn statuses(cluster: &TestCluster) -> Vec<String> {
    let history = history(cluster).await;
    let show = |one: &Release| format!("{} {}", one.revision(), one.status().name());
    history.iter().map(show).collect()
}

//! The Rust twin of `types.go`, and an operator that uses all there is: dependents, references,
//! a status with conditions, a task with raw access.

#![allow(
    missing_docs,
    reason = "a fixture; the Go twin says what the fields are"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::{
    Controller, Observed, Operator, Watched,
    handle::{Access, Verb},
};

/// What a user asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "fleet.example.com",
    version = "v1",
    kind = "Ship",
    namespaced,
    status = "ShipStatus",
    shortname = "sh",
    shortname = "shp",
    category = "all",
    category = "fleet",
    selectable = ".spec.flag",
    scale(
        spec_replicas_path = ".spec.crew",
        status_replicas_path = ".status.aboard",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Crew",
        type_ = "integer",
        json_path = ".spec.crew",
        description = "How many sail it.",
        format = "int32"
    ),
    printcolumn(
        name = "Flag",
        type_ = "string",
        json_path = ".spec.flag",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[x_kube(validation = Rule::new("self.crew >= self.officers").message("officers are crew"))]
pub(crate) struct ShipSpec {
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 5000))]
    pub(crate) crew: i32,
    #[serde(default = "one")]
    pub(crate) officers: i32,
    #[schemars(length(min = 1, max = 20), regex(pattern = "^[a-z]+$"))]
    pub(crate) flag: String,
    #[serde(default)]
    pub(crate) propulsion: Propulsion,
    pub(crate) tonnage: Option<i64>,
    pub(crate) draught: Option<f64>,
    #[serde(default)]
    pub(crate) armed: bool,
    #[serde(default)]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub(crate) ports: Vec<String>,
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub(crate) holds: Vec<Hold>,
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub(crate) log: Option<Vec<String>>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) berth: Option<IntOrString>,
    pub(crate) launched: Option<Time>,
    pub(crate) extras: Option<BTreeMap<String, Value>>,
    pub(crate) extra: Option<Value>,
    #[x_kube(validation = Rule::new("self == oldSelf").message("a ship is built once"))]
    pub(crate) yard: Option<String>,
}

fn three() -> i32 {
    3
}

fn one() -> i32 {
    1
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Propulsion {
    #[default]
    Sail,
    Steam,
    Diesel,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Hold {
    pub(crate) name: String,
    pub(crate) volume: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ShipStatus {
    pub(crate) aboard: Option<i32>,
    pub(crate) selector: Option<String>,
    pub(crate) conditions: Option<Vec<Condition>>,
}

fn log_of(ship: &Ship) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(format!("{}-log", ship.name_any()));
    map.data = Some([("flag".to_owned(), ship.spec.flag.clone())].into());
    map
}

fn status_of(_: &Ship, observed: &Observed) -> ShipStatus {
    ShipStatus {
        aboard: i32::try_from(observed.read::<Pod>().count()).ok(),
        ..ShipStatus::default()
    }
}

/// The operator.
pub(crate) fn operator() -> Operator {
    let papers = |ship: &Ship| ship.spec.yard.clone();
    let crew = |ship: &Ship| BTreeMap::from([("ship".to_owned(), ship.name_any())]);
    let grants = [Access::of::<Secret>([Verb::Get])];
    Operator::new("fleet-operator")
        .version("1.0.0")
        .controller(
            Controller::of::<Ship>()
                .dependent(log_of)
                .reads(Pod::selected_by(crew))
                .reads(Secret::referenced_by(papers))
                .status(status_of),
        )
        .task("harbour", grants, |_| async { Ok(()) })
}

//! ships.fleet.example.com: types made from its definition.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What is wanted.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "fleet.example.com",
    version = "v1",
    kind = "Ship",
    plural = "ships",
    namespaced,
    status = "ShipStatus",
    schema = "disabled"
)]
pub struct ShipSpec {
    /// `armed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed: Option<bool>,
    /// `berth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub berth: Option<k8s_openapi::apimachinery::pkg::util::intstr::IntOrString>,
    /// `crew`.
    pub crew: i32,
    /// `draught`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draught: Option<f64>,
    /// `extra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<serde_json::Value>,
    /// `extras`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extras: Option<std::collections::BTreeMap<String, serde_json::Value>>,
    /// `flag`.
    pub flag: String,
    /// `holds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Vec<ShipSpecHold>>,
    /// `labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<std::collections::BTreeMap<String, String>>,
    /// `launched`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<String>,
    /// `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<String>>,
    /// `officers`.
    pub officers: i32,
    /// `ports`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<String>>,
    /// `propulsion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propulsion: Option<ShipSpecPropulsion>,
    /// `tonnage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tonnage: Option<i64>,
    /// `yard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yard: Option<String>,
}

/// A part of the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShipSpecHold {
    /// `name`.
    pub name: String,
    /// `volume`.
    pub volume: i64,
}

/// One of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum ShipSpecPropulsion {
    /// `Sail`.
    #[default]
    Sail,
    /// `Steam`.
    Steam,
    /// `Diesel`.
    Diesel,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShipStatus {
    /// `aboard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aboard: Option<i32>,
    /// `conditions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>>,
    /// `selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

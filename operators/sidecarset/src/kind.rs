//! The kind, in the shape of that of `OpenKruise`: what its documentation shows applies as it is.
//!
//! Fields that `OpenKruise` has and this operator does not are refused by the API server's own check
//! of unknown fields; those of a container are kept, and named by the validation where they would
//! change what happens.

use k8s_openapi::{
    api::core::v1::{Container, LocalObjectReference, Volume},
    apimachinery::pkg::{
        apis::meta::v1::{Condition, LabelSelector},
        util::intstr::IntOrString,
    },
};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

/// The update strategy that leaves pods alone.
pub(crate) const NOT_UPDATE: &str = "NotUpdate";
/// The update strategy that gives pods new images.
pub(crate) const ROLLING_UPDATE: &str = "RollingUpdate";
/// Before the pod's own containers.
pub(crate) const BEFORE: &str = "BeforeAppContainer";
/// After the pod's own containers.
pub(crate) const AFTER: &str = "AfterAppContainer";
/// The sidecar mounts what the pod's own containers mount.
pub(crate) const ENABLED: &str = "enabled";
/// It does not.
pub(crate) const DISABLED: &str = "disabled";

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "SidecarSet",
    status = "SidecarSetStatus",
    printcolumn = r#"{"name":"MATCHED","type":"integer","jsonPath":".status.matchedPods"}"#,
    printcolumn = r#"{"name":"UPDATED","type":"integer","jsonPath":".status.updatedPods"}"#,
    printcolumn = r#"{"name":"READY","type":"integer","jsonPath":".status.readyPods"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct SidecarSetSpec {
    /// Which pods get the containers. Required, and not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Only pods of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only pods of namespaces with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Init containers, put after the pod's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "containers_schema")]
    pub init_containers: Vec<SidecarContainer>,
    /// The sidecar containers, in the order in which they are put into a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "containers_schema")]
    pub containers: Vec<SidecarContainer>,
    /// Volumes they mount, added to the pod's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "volumes_schema")]
    pub volumes: Vec<Volume>,
    /// How pods that have the containers get new images of them.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// Whether new pods get the containers.
    #[serde(default)]
    pub injection_strategy: InjectionStrategy,
    /// Secrets to pull the images with, added to the pod's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// A container, and how it is put into a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SidecarContainer {
    /// The container.
    #[serde(flatten, deserialize_with = "lenient")]
    pub container: Container,
    /// Before or after the pod's own containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_inject_policy: Option<String>,
    /// Whether it mounts what the pod's own containers mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_volume_policy: Option<SharePolicy>,
    /// Variables it gets from the pod's own containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfer_env: Vec<TransferEnv>,
}

/// Whether something is shared: `enabled` or `disabled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharePolicy {
    /// `enabled` or `disabled`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// A variable of one of the pod's own containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferEnv {
    /// The container that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_container_name: Option<String>,
    /// The variable's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_name: Option<String>,
    /// More of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
}

/// How pods get new images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// `RollingUpdate`, or `NotUpdate`: pods keep what they were made with.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["NotUpdate", "RollingUpdate"]))]
    pub of: Option<String>,
    /// Whether it stands still.
    #[serde(default)]
    pub paused: bool,
    /// Only pods with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many pods keep what they have, as a number or a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<IntOrString>,
    /// How many pods may be unready because of it, as a number or a share; 1 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
}

/// Whether new pods get the containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionStrategy {
    /// New pods are left alone while this is true.
    #[serde(default)]
    pub paused: bool,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetStatus {
    /// The generation this tells of, kept by the framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods that match and have not ended.
    pub matched_pods: i32,
    /// Those of them that have the containers as they are asked for now.
    pub updated_pods: i32,
    /// Those that are ready.
    pub ready_pods: i32,
    /// Those that are both.
    pub updated_ready_pods: i32,
    /// Upgradable, and what the framework keeps: Available, Progressing and Degraded.
    pub conditions: Vec<Condition>,
}

impl SidecarSetSpec {
    /// Whether pods that have the containers get new images.
    pub(crate) fn rolls(&self) -> bool {
        self.update_strategy.of.as_deref() != Some(NOT_UPDATE)
    }
}

/// A quantity may be written as a number; Kubernetes takes it for the same text.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Container, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    for what in ["limits", "requests"] {
        let amounts = value.pointer_mut(&format!("/resources/{what}"));
        let amounts = amounts.and_then(Value::as_object_mut);
        for amount in amounts.into_iter().flat_map(|amounts| amounts.values_mut()) {
            if amount.is_number() {
                *amount = Value::String(amount.to_string());
            }
        }
    }
    serde_json::from_value(value).map_err(D::Error::custom)
}

/// A container's fields are Kubernetes' own, of whatever version: they are kept, and judged by the
/// webhook and by the API server when they are put into a pod.
fn containers_schema(_: &mut SchemaGenerator) -> Schema {
    let share = json_schema!({
        "type": "object",
        "properties": { "type": { "type": "string", "enum": [ENABLED, DISABLED] } },
    });
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "name": { "type": "string" },
                "podInjectPolicy": { "type": "string", "enum": [BEFORE, AFTER] },
                "shareVolumePolicy": share,
                "transferEnv": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "sourceContainerName": { "type": "string" },
                            "envName": { "type": "string" },
                            "envNames": { "type": "array", "items": { "type": "string" } },
                        },
                    },
                },
            },
        },
    })
}

fn volumes_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": { "name": { "type": "string" } },
        },
    })
}

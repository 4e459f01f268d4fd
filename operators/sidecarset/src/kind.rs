//! The kind, in the shape of that of `OpenKruise`: what its documentation shows applies as it is.
//!
//! Fields that `OpenKruise` has and this operator does not are refused by the API server's own check
//! of unknown fields. Whatever can be said of one set alone is a rule or a default of the schema.

use k8s_openapi::api::core::v1::{Container, LocalObjectReference, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::schema;

/// The update strategy that leaves pods alone.
pub(crate) const NOT_UPDATE: &str = "NotUpdate";
/// The update strategy that gives pods new images.
pub(crate) const ROLLING_UPDATE: &str = "RollingUpdate";
/// Before the pod's own containers.
pub(crate) const BEFORE: &str = "BeforeAppContainer";
/// After the pod's own containers.
pub(crate) const AFTER: &str = "AfterAppContainer";
/// From 0% to 100%.
const PERCENTAGE: &str = "^(100|[1-9]?[0-9])%$";

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "SidecarSet",
    derive = "Default",
    status = "SidecarSetStatus",
    printcolumn = r#"{"name":"MATCHED","type":"integer","jsonPath":".status.matchedPods"}"#,
    printcolumn = r#"{"name":"UPDATED","type":"integer","jsonPath":".status.updatedPods"}"#,
    printcolumn = r#"{"name":"READY","type":"integer","jsonPath":".status.readyPods"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.containers) && size(self.containers) > 0) || (has(self.initContainers) && size(self.initContainers) > 0)",
    "message": "at least one container or init container",
    "fieldPath": ".containers",
    "reason": "FieldValueRequired",
}]))]
pub struct SidecarSetSpec {
    /// Which pods get the containers. Required, and not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, schema_with = "schema::selector")]
    pub selector: Option<LabelSelector>,
    /// Only pods of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only pods of namespaces with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// Init containers, put after the pod's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<SidecarContainer>,
    /// The sidecar containers, in the order in which they are put into a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<SidecarContainer>,
    /// Volumes they mount, added to the pod's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::volumes")]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarContainer {
    /// The container.
    #[serde(flatten, deserialize_with = "lenient")]
    #[schemars(schema_with = "schema::container")]
    pub container: Container,
    /// Before or after the pod's own containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [BEFORE, AFTER]))]
    pub pod_inject_policy: Option<String>,
    /// Whether it mounts what the pod's own containers mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub share_volume_policy: Option<SharePolicy>,
    /// Variables it gets from the pod's own containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfer_env: Vec<TransferEnv>,
}

/// Whether something is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharePolicy {
    /// `enabled` or `disabled`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"], "default" = "disabled"))]
    pub of: Option<String>,
}

/// Variables of one of the pod's own containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("anyOf" = [{ "required": ["envName"] }, { "required": ["envNames"] }]))]
pub struct TransferEnv {
    /// The container that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, length(min = 1))]
    pub source_container_name: Option<String>,
    /// A variable's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_name: Option<String>,
    /// More of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub env_names: Vec<String>,
}

/// How pods get new images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.selector) || !has(self.partition) || self.partition == 0",
    "message": "cannot be used together with a selector",
    "fieldPath": ".partition",
    "reason": "FieldValueForbidden",
}]))]
pub struct UpdateStrategy {
    /// `RollingUpdate`, or `NotUpdate`: pods keep what they were created with.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [NOT_UPDATE, ROLLING_UPDATE], "default" = ROLLING_UPDATE))]
    pub of: Option<String>,
    /// No pod gets new images while this is true.
    #[serde(default)]
    pub paused: bool,
    /// Only pods with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector")]
    pub selector: Option<LabelSelector>,
    /// How many pods keep what they have, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0, "pattern" = PERCENTAGE, "default" = 0))]
    pub partition: Option<IntOrString>,
    /// How many pods may be unready because of it, as a number or a percentage; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0, "pattern" = PERCENTAGE, "default" = 1))]
    pub max_unavailable: Option<IntOrString>,
}

/// Whether new pods get the containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InjectionStrategy {
    /// New pods are left alone while this is true.
    #[serde(default)]
    pub paused: bool,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SidecarSetStatus {
    /// The generation that this status is about, kept by the framework.
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
    /// All containers, each with the path of its field.
    pub(crate) fn all_containers(&self) -> impl Iterator<Item = (String, &Container)> {
        let sidecars = self.containers.iter().enumerate();
        let sidecars = sidecars.map(|(at, one)| (format!("spec.containers[{at}]"), &one.container));
        let init = self.init_containers.iter().enumerate();
        let init = init.map(|(at, one)| (format!("spec.initContainers[{at}]"), &one.container));
        sidecars.chain(init)
    }
}

impl TransferEnv {
    /// Whether this is one of the variables.
    pub(crate) fn has(&self, variable: &String) -> bool {
        self.env_name.as_ref() == Some(variable) || self.env_names.contains(variable)
    }
}

/// A quantity may be written as a number; Kubernetes takes it for the same text.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Container, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    for path in ["/resources/limits", "/resources/requests"] {
        let amounts = value.pointer_mut(path).and_then(Value::as_object_mut);
        for amount in amounts.into_iter().flat_map(|amounts| amounts.values_mut()) {
            if amount.is_number() {
                *amount = amount.to_string().into();
            }
        }
    }
    serde_json::from_value(value).map_err(D::Error::custom)
}

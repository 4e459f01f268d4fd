//! The kinds that configure Metacontroller, with the fields of the original.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, LabelSelectorRequirement,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Objects of one kind with the objects that belong to them, as a hook says.
#[derive(kube::CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "metacontroller.k8s.io",
    version = "v1alpha1",
    kind = "CompositeController",
    plural = "compositecontrollers",
    shortname = "cc",
    shortname = "cctl",
    status = "ControllerStatus",
    annotation("api-approved.kubernetes.io", "unapproved, request not yet submitted")
)]
#[serde(rename_all = "camelCase")]
pub struct CompositeControllerSpec {
    /// The kind of the parents.
    pub parent_resource: ParentResource,
    /// The kinds of the children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_resources: Vec<ChildResource>,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// How webhooks of a host are connected to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_configs: Vec<EndpointConfig>,
    /// How often every parent is synced although nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_period_seconds: Option<i32>,
    /// Selects children by a label with the parent's uid rather than by its `spec.selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_selector: Option<bool>,
}

/// Objects of existing kinds with what a hook adds to them.
#[derive(kube::CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "metacontroller.k8s.io",
    version = "v1alpha1",
    kind = "DecoratorController",
    plural = "decoratorcontrollers",
    shortname = "dec",
    shortname = "decorators",
    status = "ControllerStatus",
    annotation("api-approved.kubernetes.io", "unapproved, request not yet submitted")
)]
#[serde(rename_all = "camelCase")]
pub struct DecoratorControllerSpec {
    /// The kinds that are decorated.
    pub resources: Vec<DecoratedResource>,
    /// The kinds of the attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<ChildResource>,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// How webhooks of a host are connected to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_configs: Vec<EndpointConfig>,
    /// How often every object is synced although nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_period_seconds: Option<i32>,
}

/// How a controller is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ControllerStatus {
    /// Whether it runs, and why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A resource, by its plural name.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRule {
    /// `v1` or `group/version`.
    pub api_version: String,
    /// The plural name, in lower case.
    pub resource: String,
}

/// The kind of the parents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentResource {
    /// Which resource.
    #[serde(flatten)]
    pub rule: ResourceRule,
    /// Which fields make a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history: Option<RevisionHistory>,
    /// Only parents with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Whether changes of the status alone cause no sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_status_changes: Option<bool>,
}

/// Which fields make a revision of a parent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionHistory {
    /// Paths with dots; `spec` if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_paths: Vec<String>,
}

/// A kind of children or attachments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildResource {
    /// Which resource.
    #[serde(flatten)]
    pub rule: ResourceRule,
    /// How one that is there is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
}

/// How a child that is there is changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// The method; `OnDelete` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<UpdateMethod>,
    /// When a child that was changed lets the next one be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_checks: Option<StatusChecks>,
}

/// How a child that is there is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateMethod {
    /// Not at all, until somebody deletes it.
    #[default]
    OnDelete,
    /// Deleted and created.
    Recreate,
    /// In place.
    InPlace,
    /// Deleted and created, one child after the other.
    RollingRecreate,
    /// In place, one child after the other.
    RollingInPlace,
}

impl UpdateMethod {
    /// Whether children are changed one after the other.
    pub fn is_rolling(self) -> bool {
        matches!(self, Self::RollingRecreate | Self::RollingInPlace)
    }
}

/// When a child is well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChecks {
    /// Conditions that all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionCheck>,
}

/// A condition that must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionCheck {
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is decorated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecoratedResource {
    /// Which resource.
    #[serde(flatten)]
    pub rule: ResourceRule,
    /// Only objects with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Only objects with these annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_selector: Option<AnnotationSelector>,
    /// Whether changes of the status alone cause no sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_status_changes: Option<bool>,
}

/// Selects objects by annotation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationSelector {
    /// These values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_annotations: BTreeMap<String, String>,
    /// And these requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hooks {
    /// Which related objects it wants to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customize: Option<Hook>,
    /// What should be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<Hook>,
    /// What should be there while the parent is being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalize: Option<Hook>,
    /// Accepted, and never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_update_child: Option<Hook>,
    /// Accepted, and never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_update_child: Option<Hook>,
}

/// A hook: a webhook, or a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// How requests and answers look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<HookVersion>,
    /// A webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// A program with its arguments: it reads the request from its standard input and writes the
    /// answer to its standard output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exec: Vec<String>,
}

/// How requests and answers look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookVersion {
    /// Names are relative to the parent.
    #[default]
    V1,
    /// Names have their namespace, and unknown fields of an answer are refused.
    V2,
}

/// How a webhook's answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnmarshallMode {
    /// Unknown fields are left out.
    Loose,
    /// Unknown fields are an error.
    Strict,
}

/// A webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The whole address; or `service` and `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How long it may take; `10s` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Whether answers are kept by their `ETag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<Etag>,
    /// The path at the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceReference>,
    /// How the answer is read; loose for v1, strict for v2.
    #[serde(
        default,
        rename = "responseUnMarshallMode",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_unmarshall_mode: Option<UnmarshallMode>,
    /// How it is connected to.
    #[serde(flatten)]
    pub connection: Connection,
}

/// How an endpoint is connected to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Whose certificates are trusted; those of the system if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<CaBundle>,
    /// The certificate that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_tls: Option<ClientTls>,
    /// The `Authorization` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
    /// User name and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
}

/// How webhooks of a host are connected to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointConfig {
    /// The host, perhaps with a port.
    pub host: String,
    /// How it is connected to.
    #[serde(flatten)]
    pub connection: Connection,
}

/// Whether answers are kept by their `ETag`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Etag {
    /// Whether they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// For how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_timeout_seconds: Option<i32>,
    /// How often old ones are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_cleanup_seconds: Option<i32>,
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceReference {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its port; 80 if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// `http` or `https`; `http` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// Whose certificates are trusted. One of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaBundle {
    /// Certificates as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<String>,
    /// A key of a Secret, `ca.crt` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeyReference>,
    /// A key of a `ConfigMap`, `ca.crt` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<KeyReference>,
}

/// A key of a Secret or `ConfigMap`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyReference {
    /// The object's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The certificate that is shown to a webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientTls {
    /// The Secret that holds it.
    pub secret_ref: KeyReference,
    /// The key of the certificate; `tls.crt` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_key: Option<String>,
    /// The key of the private key; `tls.key` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key_key: Option<String>,
}

/// The `Authorization` header.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// Its scheme; `Bearer` if it does not say.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The Secret that holds the credential.
    pub secret_ref: KeyReference,
}

/// User name and password.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuth {
    /// The Secret that holds both.
    pub secret_ref: KeyReference,
    /// The key of the user name; `username` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_key: Option<String>,
    /// The key of the password; `password` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_key: Option<String>,
}

/// What a customize hook wants to see.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelatedRule {
    /// Which resource.
    #[serde(flatten)]
    pub rule: ResourceRule,
    /// Only objects with these labels.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
    /// Only in namespaces with these labels.
    #[serde(default)]
    pub namespace_selector: Option<LabelSelector>,
    /// Only in this namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Only objects of these names.
    #[serde(default)]
    pub names: Vec<String>,
}

/// What a parent was before, and which children are still as it wants them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The parent's fields.
    #[serde(default)]
    pub parent_patch: Map<String, Value>,
    /// The children, by kind.
    #[serde(default)]
    pub children: Vec<RevisionChildren>,
}

/// Children of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionChildren {
    /// The group.
    pub api_group: String,
    /// The kind.
    pub kind: String,
    /// The names.
    pub names: Vec<String>,
}

//! What to watch and where to send it: the content of `.kubewatch.yaml`, which is also the spec of a
//! [`Watch`].
//!
//! The names are those that kubewatch reads and writes; the short names of its command line are read
//! as well. What kubewatch does not have comes last, and changes nothing by default.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to watch and where to send it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[kube(
    group = "kubewatch.example.com",
    version = "v1alpha1",
    kind = "Watch",
    derive = "Default",
    derive = "PartialEq",
    status = "WatchStatus",
    printcolumn = r#"{"name":"Handlers","type":"string","jsonPath":".status.handlers[*].name"}"#,
    printcolumn = r#"{"name":"Failing","type":"string","jsonPath":".status.handlers[?(@.failing)].name"}"#,
    printcolumn = r#"{"name":"Dropped","type":"integer","jsonPath":".status.dropped"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct WatchSpec {
    /// Where to send messages; each that is configured gets all of them.
    pub handler: Handlers,
    /// Which of the built-in kinds to watch.
    pub resource: Resources,
    /// Which other kinds to watch.
    pub customresources: Vec<CustomKind>,
    /// The one namespace to watch; all of them if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// More namespaces to watch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Only these reasons: Created, Updated, Deleted; for events also their own, such as Pulled. All
    /// if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reason: Vec<String>,
    /// Only objects with these labels, before or after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_schema")]
    pub selector: Option<LabelSelector>,
    /// Only changes for which this CEL expression is true. It sees object, oldObject, kind,
    /// namespace, name and reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter: String,
    /// As the variable `ADVANCED_FILTERS`: of pods, jobs and events only what is worth a message.
    #[serde(skip_serializing_if = "is_false")]
    pub advancedfilters: bool,
    /// Collects messages when there are many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// How long a message is tried, and how many wait.
    pub delivery: Delivery,
    /// A Secret with what is missing here, by the names of kubewatch's environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretReference>,
}

/// What was observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchStatus {
    /// The generation that this status is about, kept by the framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The handlers.
    pub handlers: Vec<HandlerStatus>,
    /// Kinds that cannot be watched, and why.
    pub unwatched: Vec<String>,
    /// How many messages were given up.
    pub dropped: u64,
    /// Available, Progressing and Degraded, kept by the framework.
    pub conditions: Vec<Condition>,
}

/// What became of a handler's messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HandlerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Why its last message could not be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
}

/// Where to send messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Handlers {
    /// Slack, by its API.
    #[serde(skip_serializing_if = "is_default")]
    pub slack: Slack,
    /// Slack, by an incoming webhook.
    #[serde(skip_serializing_if = "is_default")]
    pub slackwebhook: SlackWebhook,
    /// `HipChat`.
    #[serde(skip_serializing_if = "is_default")]
    pub hipchat: Hipchat,
    /// Mattermost.
    #[serde(skip_serializing_if = "is_default")]
    pub mattermost: Mattermost,
    /// Flock.
    #[serde(skip_serializing_if = "is_default")]
    pub flock: Url,
    /// Any HTTP server.
    #[serde(skip_serializing_if = "is_default")]
    pub webhook: Webhook,
    /// A receiver of `CloudEvents`.
    #[serde(skip_serializing_if = "is_default")]
    pub cloudevent: Url,
    /// Microsoft Teams.
    #[serde(skip_serializing_if = "is_default")]
    pub msteams: WebhookUrl,
    /// Mail.
    #[serde(skip_serializing_if = "is_default")]
    pub smtp: Smtp,
    /// Lark.
    #[serde(skip_serializing_if = "is_default")]
    pub lark: WebhookUrl,
}

/// Slack, by its API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Slack {
    /// The token of the API.
    pub token: String,
    /// The channel.
    pub channel: String,
    /// The title of messages; kubewatch by default.
    pub title: String,
}

/// Slack, by an incoming webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SlackWebhook {
    /// The channel, if not that of the webhook.
    pub channel: String,
    /// Who sends.
    pub username: String,
    /// The icon of who sends, such as `:ghost:`.
    pub emoji: String,
    /// The webhook.
    pub slackwebhookurl: String,
}

/// `HipChat`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hipchat {
    /// The token of the API.
    pub token: String,
    /// The room.
    pub room: String,
    /// The API, if not that of the public service.
    pub url: String,
}

/// Mattermost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mattermost {
    /// The channel.
    #[serde(alias = "room")]
    pub channel: String,
    /// The incoming webhook.
    pub url: String,
    /// Who sends.
    pub username: String,
}

/// A URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Url {
    /// The URL.
    pub url: String,
}

/// A webhook of a chat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookUrl {
    /// The URL.
    pub webhookurl: String,
}

/// Any HTTP server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Webhook {
    /// The URL.
    pub url: String,
    /// A file with the certificates of authorities to trust, instead of the system's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cert: String,
    /// Trusts any certificate.
    #[serde(skip_serializing_if = "is_false")]
    pub tlsskip: bool,
}

/// Mail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Smtp {
    /// Addresses to send to, separated by commas.
    pub to: String,
    /// The address to send from.
    pub from: String,
    /// The server, as host:port; with port 465 it speaks TLS from the start.
    pub smarthost: String,
    /// The subject; Kubewatch notification by default.
    pub subject: String,
    /// More headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Who sends.
    #[serde(skip_serializing_if = "is_default")]
    pub auth: SmtpAuth,
    /// Sends nothing without STARTTLS.
    #[serde(rename = "requireTLS")]
    pub require_tls: bool,
    /// The name this client greets with; localhost by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hello: String,
}

/// Who sends mail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SmtpAuth {
    /// The user.
    pub username: String,
    /// The password, for PLAIN and LOGIN.
    pub password: String,
    /// The identity, for PLAIN.
    pub identity: String,
    /// The secret, for CRAM-MD5.
    pub secret: String,
}

/// Which of the built-in kinds to watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, missing_docs)]
pub struct Resources {
    #[serde(skip_serializing_if = "is_false")]
    pub deployment: bool,
    #[serde(alias = "rc", skip_serializing_if = "is_false")]
    pub replicationcontroller: bool,
    #[serde(alias = "rs", skip_serializing_if = "is_false")]
    pub replicaset: bool,
    #[serde(alias = "ds", skip_serializing_if = "is_false")]
    pub daemonset: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub statefulset: bool,
    #[serde(alias = "svc", skip_serializing_if = "is_false")]
    pub services: bool,
    #[serde(alias = "po", skip_serializing_if = "is_false")]
    pub pod: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub job: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub node: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub clusterrole: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub clusterrolebinding: bool,
    #[serde(alias = "sa", skip_serializing_if = "is_false")]
    pub serviceaccount: bool,
    #[serde(alias = "pv", skip_serializing_if = "is_false")]
    pub persistentvolume: bool,
    #[serde(alias = "ns", skip_serializing_if = "is_false")]
    pub namespace: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub secret: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub configmap: bool,
    #[serde(alias = "ing", skip_serializing_if = "is_false")]
    pub ingress: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub hpa: bool,
    /// Events of `events.k8s.io`.
    #[serde(skip_serializing_if = "is_false")]
    pub event: bool,
    /// Events of the core group.
    #[serde(skip_serializing_if = "is_false")]
    pub coreevent: bool,
}

/// A kind that is not built in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "CustomResource")]
pub struct CustomKind {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
}

/// Collects messages when there are many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Group {
    /// So many messages are sent one by one in each interval; the rest becomes one at its end.
    pub limit: u32,
    /// The interval in seconds.
    #[schemars(range(min = 1))]
    pub seconds: u64,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            limit: 10,
            seconds: 60,
        }
    }
}

/// How long a message is tried, and how many wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Delivery {
    /// A message that could not be sent for so many seconds is given up.
    pub seconds: u64,
    /// So many messages wait for one handler; for one more the oldest is given up.
    #[schemars(range(min = 1))]
    pub queue: u32,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            seconds: 24 * 60 * 60,
            queue: 1000,
        }
    }
}

/// A Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[allow(clippy::trivially_copy_pass_by_ref)] // what serde passes
fn is_false(value: &bool) -> bool {
    !*value
}

fn selector_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

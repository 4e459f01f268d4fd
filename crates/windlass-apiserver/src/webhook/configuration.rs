//! Webhook configurations as they are stored, read into what is needed to call them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::transport::WebhookTarget;
use crate::object::meta;
use crate::selector::Selector;
use crate::store::{Store, TableName};

const GROUP: &str = "admissionregistration.k8s.io";
pub(super) const MUTATING: &str = "mutatingwebhookconfigurations";
pub(super) const VALIDATING: &str = "validatingwebhookconfigurations";

/// How long a webhook may take unless it says otherwise.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;
/// The port of a Service unless another is named.
const HTTPS: u16 = 443;

/// Where a webhook is, and who vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientConfig {
    pub(crate) target: WebhookTarget,
    /// PEM; empty for what the system trusts.
    pub(crate) ca_bundle: Vec<u8>,
}

impl ClientConfig {
    /// Reads a `clientConfig`; `None` when it names neither a URL nor a Service.
    pub(crate) fn read(config: &Value) -> Option<Self> {
        let ca_bundle = config["caBundle"]
            .as_str()
            .and_then(|text| STANDARD.decode(text).ok())
            .filter(|pem| !pem.trim_ascii().is_empty())
            .unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let target = match (config["url"].as_str(), &config["service"]) {
            (Some(url), _) => WebhookTarget::Url(url.to_owned()),
            (None, service) if service.is_object() => WebhookTarget::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: service["port"]
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(HTTPS),
                path: text(&service["path"]),
            },
            _ => return None,
        };
        Some(Self { target, ca_bundle })
    }
}

/// What a rule asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) scope: String,
}

/// One webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// What tells it from every other.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
    pub(super) namespace_selector: Selector,
    pub(super) object_selector: Selector,
    /// Whether other versions of the resource are meant too.
    pub(super) equivalent: bool,
    /// Name and CEL expression.
    pub(super) conditions: Vec<(String, String)>,
    pub(super) timeout: Duration,
    pub(super) ignore_failure: bool,
    pub(super) side_effects: String,
    /// Whether it wants to see what later webhooks changed.
    pub(super) reinvoke: bool,
    pub(super) client: Option<ClientConfig>,
    pub(super) review_versions: Vec<String>,
}

/// The webhooks of a kind of configuration, in the order they are called.
pub(super) fn hooks(store: &Store, plural: &str) -> Vec<Hook> {
    let Ok(listing) = store.list(&TableName::new(GROUP, plural), None, None, None) else {
        return Vec::new();
    };
    let mut hooks = Vec::new();
    for configuration in listing.objects {
        let configuration = configuration.value();
        let name = meta(&configuration, "name");
        let webhooks = configuration["webhooks"].as_array();
        for (index, webhook) in webhooks.into_iter().flatten().enumerate() {
            hooks.push(read(webhook, format!("{name}/{index}")));
        }
    }
    hooks
}

fn read(webhook: &Value, id: String) -> Hook {
    let text = |field: &str| webhook[field].as_str().unwrap_or_default().to_owned();
    let rules = webhook["rules"].as_array().into_iter().flatten();
    let conditions = webhook["matchConditions"].as_array().into_iter().flatten();
    Hook {
        id,
        name: text("name"),
        rules: rules.map(read_rule).collect(),
        namespace_selector: Selector::from_object(&webhook["namespaceSelector"]),
        object_selector: Selector::from_object(&webhook["objectSelector"]),
        equivalent: webhook["matchPolicy"] != "Exact",
        conditions: conditions
            .map(|condition| {
                let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
                (text("name"), text("expression"))
            })
            .collect(),
        timeout: Duration::from_secs(
            webhook["timeoutSeconds"]
                .as_u64()
                .unwrap_or(DEFAULT_TIMEOUT_SECONDS),
        ),
        ignore_failure: webhook["failurePolicy"] == "Ignore",
        side_effects: text("sideEffects"),
        reinvoke: webhook["reinvocationPolicy"] == "IfNeeded",
        client: ClientConfig::read(&webhook["clientConfig"]),
        review_versions: texts(&webhook["admissionReviewVersions"]),
    }
}

fn read_rule(rule: &Value) -> Rule {
    Rule {
        operations: texts(&rule["operations"]),
        groups: texts(&rule["apiGroups"]),
        versions: texts(&rule["apiVersions"]),
        resources: texts(&rule["resources"]),
        scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

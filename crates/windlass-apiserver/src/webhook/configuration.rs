//! Webhook configurations as they are stored, read into what is needed to call them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::conditions::Conditions;
use super::matching::{Criteria, texts};
use super::transport::WebhookTarget;
use crate::object::meta;
use crate::registry::derived::Derived;
use crate::store::{Store, TableName};

const GROUP: &str = "admissionregistration.k8s.io";
static MUTATING: LazyLock<TableName> =
    LazyLock::new(|| TableName::new(GROUP, "mutatingwebhookconfigurations"));
static VALIDATING: LazyLock<TableName> =
    LazyLock::new(|| TableName::new(GROUP, "validatingwebhookconfigurations"));

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

/// One webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// What tells it from every other.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) criteria: Criteria,
    pub(super) conditions: Conditions,
    pub(super) timeout: Duration,
    pub(super) ignore_failure: bool,
    pub(super) side_effects: String,
    /// Whether it wants to see what later webhooks changed.
    pub(super) reinvoke: bool,
    pub(super) client: Option<ClientConfig>,
    pub(super) review_versions: Vec<String>,
}

/// The webhooks of all configurations, read and compiled once.
#[derive(Default)]
pub(crate) struct Hooks {
    mutating: Derived<Vec<Arc<Hook>>>,
    validating: Derived<Vec<Arc<Hook>>>,
}

impl Hooks {
    /// Those that may change objects, in the order they are called.
    pub(super) fn mutating(&self, store: &Store) -> Vec<Arc<Hook>> {
        all(&self.mutating, store, &MUTATING)
    }

    /// Those that may only say no, in the order they are heard.
    pub(super) fn validating(&self, store: &Store) -> Vec<Arc<Hook>> {
        all(&self.validating, store, &VALIDATING)
    }
}

fn all(of: &Derived<Vec<Arc<Hook>>>, store: &Store, table: &TableName) -> Vec<Arc<Hook>> {
    let configurations = of.all(store, table, |configuration| {
        let name = meta(configuration, "name");
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        let hooks = webhooks
            .enumerate()
            .map(|(index, webhook)| Arc::new(read(webhook, format!("{name}/{index}"))));
        hooks.collect()
    });
    configurations
        .iter()
        .flat_map(|hooks| hooks.iter().cloned())
        .collect()
}

fn read(webhook: &Value, id: String) -> Hook {
    let text = |field: &str| webhook[field].as_str().unwrap_or_default().to_owned();
    Hook {
        id,
        name: text("name"),
        criteria: Criteria::of_webhook(webhook),
        conditions: Conditions::of_webhook(webhook),
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

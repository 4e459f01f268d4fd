//! Webhooks: the configurations that tell the API server of them, and what it reaches them by.
//!
//! Everything is named after the operator: one configuration of each kind `<name>`, a Service
//! `<name>-webhook`, a Secret `<name>-webhook-certificate` for the certificate that the operator
//! issues itself. The Secret comes empty and the configurations without a `caBundle`: the running
//! operator fills both in, and needs no right to create anything for that.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{
            MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
            ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
        },
        core::v1::{Secret, Service, ServicePort, ServiceSpec},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceConversion, ServiceReference as ConversionService,
        WebhookClientConfig as ConversionClientConfig, WebhookConversion,
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use crate::{
    Description,
    role::{labels, named},
};

/// Where conversions are asked for.
pub const CONVERSION_PATH: &str = "/convert";
/// The port of the Service.
pub const SERVICE_PORT: i32 = 443;
/// The port the operator's program serves webhooks on.
pub const SERVING_PORT: u16 = 9443;

/// One admission webhook of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// A domain name, such as `mutate.memcacheds.cache.example.com`.
    pub name: String,
    /// Whether it may change objects, or only judge them.
    pub mutating: bool,
    /// Where on the server it is.
    pub path: String,
    /// API group of what it is about; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name, with a subresource after a slash.
    pub resource: String,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
    /// Only objects with these labels.
    pub objects: Option<LabelSelector>,
    /// Only objects in namespaces with these labels.
    pub namespaces: Option<LabelSelector>,
    /// Whether a request goes on when the webhook cannot be asked.
    pub ignore_failures: bool,
    /// How long the API server waits for it.
    pub timeout_seconds: i32,
}

/// How the API server reaches the operator's webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Through the Service, in this namespace.
    Service(String),
    /// By a base URL, without a path, and with who vouches for its certificate (PEM).
    Url(String, String),
}

/// The Service in front of the operator.
pub fn service_name(operator: &str) -> String {
    format!("{operator}-webhook")
}

/// The Secret with the operator's own certificate.
pub fn secret_name(operator: &str) -> String {
    format!("{operator}-webhook-certificate")
}

impl Description {
    /// Whether anybody calls the operator.
    pub fn has_webhooks(&self) -> bool {
        !self.webhooks.is_empty() || !self.conversions.is_empty()
    }
}

/// The configuration of the mutating webhooks, if there are any.
pub fn mutating(description: &Description, reach: &Reach) -> Option<MutatingWebhookConfiguration> {
    let webhooks = description.webhooks.iter().filter(|hook| hook.mutating);
    let webhooks: Vec<MutatingWebhook> = webhooks
        .map(|hook| MutatingWebhook {
            name: hook.name.clone(),
            admission_review_versions: vec!["v1".to_owned()],
            client_config: client_config(description, reach, &hook.path),
            failure_policy: Some(failure_policy(hook)),
            match_policy: Some("Equivalent".to_owned()),
            namespace_selector: hook.namespaces.clone(),
            object_selector: hook.objects.clone(),
            rules: Some(vec![rule(hook)]),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(hook.timeout_seconds),
            ..MutatingWebhook::default()
        })
        .collect();
    (!webhooks.is_empty()).then(|| MutatingWebhookConfiguration {
        metadata: named(description),
        webhooks: Some(webhooks),
    })
}

/// The configuration of the validating webhooks, if there are any.
pub fn validating(
    description: &Description,
    reach: &Reach,
) -> Option<ValidatingWebhookConfiguration> {
    let webhooks = description.webhooks.iter().filter(|hook| !hook.mutating);
    let webhooks: Vec<ValidatingWebhook> = webhooks
        .map(|hook| ValidatingWebhook {
            name: hook.name.clone(),
            admission_review_versions: vec!["v1".to_owned()],
            client_config: client_config(description, reach, &hook.path),
            failure_policy: Some(failure_policy(hook)),
            match_policy: Some("Equivalent".to_owned()),
            namespace_selector: hook.namespaces.clone(),
            object_selector: hook.objects.clone(),
            rules: Some(vec![rule(hook)]),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(hook.timeout_seconds),
            ..ValidatingWebhook::default()
        })
        .collect();
    (!webhooks.is_empty()).then(|| ValidatingWebhookConfiguration {
        metadata: named(description),
        webhooks: Some(webhooks),
    })
}

/// How a definition with several versions says who converts between them.
pub fn conversion(operator: &str, reach: &Reach) -> CustomResourceConversion {
    let client_config = match reach {
        Reach::Service(namespace) => ConversionClientConfig {
            service: Some(ConversionService {
                name: service_name(operator),
                namespace: namespace.clone(),
                path: Some(CONVERSION_PATH.to_owned()),
                port: Some(SERVICE_PORT),
            }),
            ..ConversionClientConfig::default()
        },
        Reach::Url(url, ca) => ConversionClientConfig {
            url: Some(format!("{url}{CONVERSION_PATH}")),
            ca_bundle: Some(ByteString(ca.clone().into_bytes())),
            ..ConversionClientConfig::default()
        },
    };
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(client_config),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

/// The Service in front of the operator's webhooks.
pub fn service(description: &Description, namespace: &str) -> Service {
    let selector: BTreeMap<String, String> = labels(description)
        .into_iter()
        .filter(|(key, _)| key.ends_with("/name"))
        .collect();
    Service {
        metadata: ObjectMeta {
            name: Some(service_name(&description.name)),
            namespace: Some(namespace.to_owned()),
            ..named(description)
        },
        spec: Some(ServiceSpec {
            selector: Some(selector),
            ports: Some(vec![ServicePort {
                name: Some("webhook".to_owned()),
                port: SERVICE_PORT,
                target_port: Some(IntOrString::Int(i32::from(SERVING_PORT))),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The Secret for the certificate, still empty.
pub fn secret(description: &Description, namespace: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(&description.name)),
            namespace: Some(namespace.to_owned()),
            ..named(description)
        },
        ..Secret::default()
    }
}

fn client_config(description: &Description, reach: &Reach, path: &str) -> WebhookClientConfig {
    match reach {
        Reach::Service(namespace) => WebhookClientConfig {
            service: Some(ServiceReference {
                name: service_name(&description.name),
                namespace: namespace.clone(),
                path: Some(path.to_owned()),
                port: Some(SERVICE_PORT),
            }),
            ..WebhookClientConfig::default()
        },
        Reach::Url(url, ca) => WebhookClientConfig {
            url: Some(format!("{url}{path}")),
            ca_bundle: Some(ByteString(ca.clone().into_bytes())),
            ..WebhookClientConfig::default()
        },
    }
}

fn failure_policy(hook: &Webhook) -> String {
    let policy = if hook.ignore_failures {
        "Ignore"
    } else {
        "Fail"
    };
    policy.to_owned()
}

fn rule(hook: &Webhook) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![hook.group.clone()]),
        api_versions: Some(vec![hook.version.clone()]),
        operations: Some(hook.operations.clone()),
        resources: Some(vec![hook.resource.clone()]),
        ..RuleWithOperations::default()
    }
}

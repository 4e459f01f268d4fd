//! Which webhooks a request concerns, and as which version of its resource each wants to see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::attributes::{Attributes, Operation};
use super::conditions;
use super::configuration::{Hook, Rule};
use super::conversion;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, TableName};

/// Kinds that pass no webhook: those that say which webhooks there are.
const EXEMPT: &[&str] = &[
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

pub(super) fn is_exempt(resource: &Resource) -> bool {
    resource.group == "admissionregistration.k8s.io" && EXEMPT.contains(&resource.plural.as_str())
}

/// The resource, at the version the webhook asks for, when the request concerns it.
pub(super) async fn matched(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<Option<Arc<Resource>>> {
    // Whatever is wrong with the namespace matters only to a webhook whose rules match.
    let in_namespace = namespace_matches(hook, attributes, object);
    if matches!(in_namespace, Ok(false)) || !object_matches(hook, attributes, object) {
        return Ok(None);
    }
    let Some(resource) = by_rules(hook, attributes) else {
        return Ok(None);
    };
    in_namespace?;
    if hook.conditions.is_empty() {
        return Ok(Some(resource));
    }
    let versioned = conversion::both(attributes, &resource, object).await?;
    let (object, old) = (versioned.object, versioned.old);
    let holds = conditions::hold(
        hook,
        attributes,
        &resource,
        object.as_deref(),
        old.as_deref(),
    );
    let holds = holds
        .map_err(|why| ApiError::forbidden(attributes.resource.subject(), attributes.name, &why))?;
    Ok(holds.then_some(resource))
}

fn by_rules(hook: &Hook, attributes: &Attributes<'_>) -> Option<Arc<Resource>> {
    let own = attributes.resource;
    if hook.rules.iter().any(|rule| matches(rule, attributes, own)) {
        return Some(Arc::clone(own));
    }
    if !hook.equivalent {
        return None;
    }
    let known = attributes.server.registry().known();
    let others: Vec<_> = known
        .all()
        .filter(|other| is_equivalent(own, other))
        .collect();
    hook.rules.iter().find_map(|rule| {
        let other = others
            .iter()
            .find(|other| matches(rule, attributes, other))?;
        Some(Arc::clone(other))
    })
}

/// Other names of the same objects: versions of one CRD, and the two forms of events and of
/// autoscalers.
fn is_equivalent(own: &Resource, other: &Resource) -> bool {
    own.table == other.table
        && own.plural == other.plural
        && (own.group.as_str(), own.version.as_str())
            != (other.group.as_str(), other.version.as_str())
        && (own.is_custom() == other.is_custom())
        && (own.is_custom() || matches!(own.plural.as_str(), "events" | "horizontalpodautoscalers"))
}

fn matches(rule: &Rule, attributes: &Attributes<'_>, resource: &Resource) -> bool {
    let any = |wanted: &[String], found: &str| {
        wanted.iter().any(|wanted| wanted == "*" || wanted == found)
    };
    let cluster = attributes.namespace.is_empty() || resource.is("", "namespaces");
    let in_scope = match rule.scope.as_str() {
        "Namespaced" => !cluster,
        "Cluster" => cluster,
        _ => true,
    };
    in_scope
        && any(&rule.operations, attributes.operation.as_str())
        && any(&rule.groups, &resource.group)
        && any(&rule.versions, &resource.version)
        && rule.resources.iter().any(|wanted| {
            let (plural, sub) = wanted.split_once('/').unwrap_or((wanted, ""));
            (plural == "*" || plural == resource.plural)
                && (sub == "*" || sub == attributes.subresource)
        })
}

/// What is in no namespace is always meant.
fn namespace_matches(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool> {
    let is_namespace = attributes.resource.is("", "namespaces");
    if (attributes.namespace.is_empty() && !is_namespace) || hook.namespace_selector.is_everything()
    {
        return Ok(true);
    }
    if is_namespace
        && attributes.subresource.is_empty()
        && attributes.operation != Operation::Delete
        && let Some(object) = object
    {
        return Ok(hook.namespace_selector.matches_labels(&labels(object)));
    }
    let found = attributes.server.store().get(
        &TableName::new("", "namespaces"),
        &Key::new("", attributes.namespace),
    );
    let Some(namespace) = found else {
        let subject = Subject {
            group: "",
            kind: "namespaces",
        };
        return Err(ApiError::not_found(subject, attributes.namespace));
    };
    Ok(hook.namespace_selector.matches_labels(&namespace.labels))
}

/// The old object and the new: one that matches is enough.
fn object_matches(hook: &Hook, attributes: &Attributes<'_>, object: Option<&Value>) -> bool {
    let selector: &Selector = &hook.object_selector;
    selector.is_everything()
        || [object, attributes.old]
            .into_iter()
            .flatten()
            .any(|object| selector.matches_labels(&labels(object)))
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

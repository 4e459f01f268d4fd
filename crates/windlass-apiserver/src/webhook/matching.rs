//! Which requests a webhook or a policy is about, and as which version of their resource it wants
//! to see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::attributes::{Attributes, Operation};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, TableName};
use crate::verbs::selector::Selector;

/// Whether no policy is asked about it.
pub(crate) fn is_policy(resource: &Resource) -> bool {
    resource.strategy.passes_no_policies()
}

/// Whether no webhook is asked about it.
pub(super) fn is_exempt(resource: &Resource) -> bool {
    resource.strategy.passes_no_webhooks()
}

/// What a rule asks for.
#[derive(Clone, Debug, Default)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// Names of objects; none is all.
    names: Vec<String>,
    scope: String,
}

/// What a request must be like.
#[derive(Clone, Debug)]
pub(crate) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether every request is meant when there are no rules.
    open: bool,
    namespace_selector: Selector,
    object_selector: Selector,
    /// Whether other versions of the resource are meant too.
    equivalent: bool,
}

impl Criteria {
    /// Those of a webhook, which is about nothing without a rule.
    pub(super) fn of_webhook(webhook: &Value) -> Self {
        Self::read(webhook, "rules", false)
    }

    /// The `matchConstraints` of a policy, or the `matchResources` of a binding.
    pub(crate) fn of_policy(resources: &Value) -> Self {
        Self::read(resources, "resourceRules", true)
    }

    fn read(from: &Value, rules: &str, open: bool) -> Self {
        let list = |field: &str| {
            let rules = from[field].as_array().into_iter().flatten();
            rules.map(read_rule).collect()
        };
        Self {
            rules: list(rules),
            excluded: list("excludeResourceRules"),
            open,
            namespace_selector: Selector::from_object(&from["namespaceSelector"]),
            object_selector: Selector::from_object(&from["objectSelector"]),
            equivalent: from["matchPolicy"] != "Exact",
        }
    }

    /// The resource, at the version that is asked for, when the request is meant.
    pub(crate) fn matched(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Arc<Resource>>> {
        // Whatever is wrong with the namespace matters only to one whose rules match.
        let in_namespace = self.namespace_matches(attributes, object);
        if matches!(in_namespace, Ok(false)) || !self.object_matches(attributes, object) {
            return Ok(None);
        }
        if self.by_rules(&self.excluded, attributes).is_some() {
            return Ok(None);
        }
        let found = if self.rules.is_empty() && self.open {
            Some(Arc::clone(attributes.resource))
        } else {
            self.by_rules(&self.rules, attributes)
        };
        if found.is_some() {
            in_namespace?;
        }
        Ok(found)
    }

    fn by_rules(&self, rules: &[Rule], attributes: &Attributes<'_>) -> Option<Arc<Resource>> {
        let own = attributes.resource;
        if rules.iter().any(|rule| matches(rule, attributes, own)) {
            return Some(Arc::clone(own));
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let known = attributes.server.registry().known();
        let others: Vec<_> = known
            .all()
            .filter(|other| is_equivalent(own, other))
            .collect();
        rules.iter().find_map(|rule| {
            let other = others
                .iter()
                .find(|other| matches(rule, attributes, other))?;
            Some(Arc::clone(other))
        })
    }

    /// What is in no namespace is always meant.
    fn namespace_matches(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool> {
        let selector = &self.namespace_selector;
        let is_namespace = attributes.resource.strategy.is_namespace();
        if (attributes.namespace.is_empty() && !is_namespace) || selector.is_everything() {
            return Ok(true);
        }
        if is_namespace
            && attributes.subresource.is_empty()
            && attributes.operation != Operation::Delete
            && let Some(object) = object
        {
            return Ok(selector.matches_labels(&labels(object)));
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
        Ok(selector.matches_labels(&namespace.labels))
    }

    /// The old object and the new: one that matches is enough.
    fn object_matches(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> bool {
        let selector = &self.object_selector;
        selector.is_everything()
            || [object, attributes.old]
                .into_iter()
                .flatten()
                .any(|object| selector.matches_labels(&labels(object)))
    }
}

/// Other names of the same objects: versions of one CRD, and the two forms of events and of
/// autoscalers.
fn is_equivalent(own: &Resource, other: &Resource) -> bool {
    own.table == other.table
        && own.plural == other.plural
        && (own.group.as_str(), own.version.as_str())
            != (other.group.as_str(), other.version.as_str())
        && (own.is_custom() == other.is_custom())
        && (own.is_custom() || own.strategy.other_form().is_some())
}

fn matches(rule: &Rule, attributes: &Attributes<'_>, resource: &Resource) -> bool {
    let any = |wanted: &[String], found: &str| {
        wanted.iter().any(|wanted| wanted == "*" || wanted == found)
    };
    let cluster = attributes.namespace.is_empty() || resource.strategy.is_namespace();
    let in_scope = match rule.scope.as_str() {
        "Namespaced" => !cluster,
        "Cluster" => cluster,
        _ => true,
    };
    in_scope
        && any(&rule.operations, attributes.operation.as_str())
        && any(&rule.groups, &resource.group)
        && any(&rule.versions, &resource.version)
        && (rule.names.is_empty() || rule.names.iter().any(|name| name == attributes.name))
        && rule.resources.iter().any(|wanted| {
            let (plural, sub) = wanted.split_once('/').unwrap_or((wanted, ""));
            (plural == "*" || plural == resource.plural)
                && (sub == "*" || sub == attributes.subresource)
        })
}

fn read_rule(rule: &Value) -> Rule {
    Rule {
        operations: texts(&rule["operations"]),
        groups: texts(&rule["apiGroups"]),
        versions: texts(&rule["apiVersions"]),
        resources: texts(&rule["resources"]),
        names: texts(&rule["resourceNames"]),
        scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
    }
}

pub(super) fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

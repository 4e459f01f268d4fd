//! Pod security: what pods of a namespace may be like, by the labels of the namespace.
//!
//! A namespace names a level (`privileged`, `baseline`, `restricted`) and a version of it for each
//! of three modes: what is enforced refuses a pod, what is warned of tells the client, what is
//! audited goes to an audit log, which this server does not have.
//!
//! Rules:
//! - Pods are refused; objects that make pods are only warned about.
//! - Who enforces a level and says nothing of warnings is warned of that level, too: so who makes
//!   a Deployment hears why its pods will be refused.
//! - A change of a pod counts when an image changes or a container comes.
//! - The labels of a namespace must be right when they are set. A stricter level is held against
//!   the pods that are there: their violations are told, and nothing happens to them.

mod checks;
mod level;
mod profile;
mod sentence;

use std::collections::BTreeMap;

use serde_json::Value;

use checks::Violation;
use level::{Level, Policy};

use crate::object::meta;
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};
use crate::store::{Key, TableName};
use crate::webhook::{Attributes, Operation};

/// Subresources of pods that change nothing about what the pod may do.
const HARMLESS: &[&str] = &[
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];
/// How many pods of a namespace are looked at when its level changes.
const MOST_PODS: usize = 3000;

/// Judges a pod, what makes pods, or the labels of a namespace.
pub(crate) fn validate(attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
    let Some(object) = object.filter(|_| !attributes.resource.is_custom()) else {
        return Ok(());
    };
    let resource = attributes.resource;
    if resource.strategy.is_namespace() {
        return validate_namespace(attributes, object);
    }
    let is_pod = resource.strategy.is_pod();
    if (is_pod && HARMLESS.contains(&attributes.subresource))
        || (!is_pod && !attributes.subresource.is_empty())
    {
        return Ok(());
    }
    let Some(pod) = pod_of(resource, object) else {
        return Ok(());
    };
    let Some(policy) = policy_of(attributes) else {
        return Ok(());
    };
    let silent = policy.warn.level == Level::Privileged;
    if silent && (!is_pod || policy.enforce.level == Level::Privileged) {
        return Ok(());
    }
    if is_pod
        && attributes.operation == Operation::Update
        && attributes.old.is_some_and(|old| !is_significant(pod, old))
    {
        return Ok(());
    }
    if is_pod {
        let violations = checks::run(policy.enforce, pod);
        if !violations.is_empty() {
            let why = format!(
                "violates PodSecurity \"{}\": {}",
                policy.enforce,
                details(&violations)
            );
            let subject = resource.subject();
            return Err(ApiError::forbidden(subject, attributes.name, &why));
        }
    }
    let violations = checks::run(policy.warn, pod);
    if !violations.is_empty() {
        attributes.warnings.add([format!(
            "would violate PodSecurity \"{}\": {}",
            policy.warn,
            details(&violations)
        )]);
    }
    Ok(())
}

/// The pod that an object is, or is a template of: with `metadata` and `spec`.
fn pod_of<'a>(resource: &Resource, object: &'a Value) -> Option<&'a Value> {
    let way = resource.strategy.pod_template()?;
    let pod = way.iter().fold(object, |value, step| &value[*step]);
    pod.is_object().then_some(pod)
}

fn policy_of(attributes: &Attributes<'_>) -> Option<Policy> {
    let key = Key::new("", attributes.namespace);
    let store = attributes.server.store();
    let namespace = store.get(&TableName::new("", "namespaces"), &key)?;
    if namespace.labels.is_empty() {
        return None;
    }
    Some(Policy::of(&namespace.labels).0)
}

/// Whether a change is one that could break a rule.
fn is_significant(new: &Value, old: &Value) -> bool {
    let list = |pod: &'_ Value, name: &str| -> Vec<Value> {
        let list = pod["spec"][name].as_array();
        list.map_or_else(Vec::new, Clone::clone)
    };
    let changed = ["containers", "initContainers"].iter().any(|name| {
        let (new, old) = (list(new, name), list(old, name));
        let differs = |(new, old): (&Value, &Value)| new["image"] != old["image"];
        new.len() != old.len() || new.iter().zip(&old).any(differs)
    });
    changed || {
        let before = list(old, "ephemeralContainers");
        list(new, "ephemeralContainers").iter().any(|container| {
            let same = before.iter().find(|old| old["name"] == container["name"]);
            same.is_none_or(|old| old["image"] != container["image"])
        })
    }
}

fn details(violations: &[Violation]) -> String {
    let shown = violations.iter().map(|violation| {
        let (reason, detail) = (&violation.reason, &violation.detail);
        format!("{reason} ({detail})")
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn labels(namespace: &Value) -> BTreeMap<String, String> {
    let labels = namespace["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    labels
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn validate_namespace(attributes: &Attributes<'_>, namespace: &Value) -> Result<()> {
    if !attributes.subresource.is_empty() {
        return Ok(());
    }
    let (policy, causes) = Policy::of(&labels(namespace));
    let invalid = || {
        let subject = attributes.resource.kind_subject();
        Err(ApiError::invalid(subject, attributes.name, &causes))
    };
    match (attributes.operation, attributes.old) {
        (Operation::Create, _) if !causes.is_empty() => invalid(),
        (Operation::Update, Some(old)) => {
            let (before, known) = Policy::of(&labels(old));
            if !causes.is_empty() && causes != known {
                return invalid();
            }
            let (new, old) = (policy.enforce, before.enforce);
            let relaxed = new.version == old.version && new.level <= old.level;
            if new != old && new.level != Level::Privileged && !relaxed {
                let told = violating_pods(attributes, meta(namespace, "name"), new);
                attributes.warnings.add(told);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What is to be said of the pods that are there, when a level comes to be enforced.
fn violating_pods(
    attributes: &Attributes<'_>,
    namespace: &str,
    enforced: level::LevelVersion,
) -> Vec<String> {
    let store = attributes.server.store();
    let listing = store.list(&TableName::new("", "pods"), Some(namespace), None, None);
    let pods = listing.map(|listing| listing.objects).unwrap_or_default();
    let mut told = Vec::new();
    if pods.len() > MOST_PODS {
        told.push(format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
            pods.len()
        ));
    }
    // By what is wrong: the first pod by name, and how many others.
    let mut wrong: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in pods.iter().take(MOST_PODS) {
        let violations = checks::run(enforced, &pod.value());
        if violations.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = violations.iter().map(|one| one.reason.as_str()).collect();
        let entry = wrong.entry(reasons.join(", "));
        let name = || (pod.key.name().to_owned(), 0);
        entry
            .and_modify(|(_, others)| *others += 1)
            .or_insert_with(name);
    }
    if !wrong.is_empty() {
        told.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{enforced}\""
        ));
    }
    let mut lines: Vec<String> = wrong
        .into_iter()
        .map(|(why, (name, others))| match others {
            0 => format!("{name}: {why}"),
            1 => format!("{name} (and 1 other pod): {why}"),
            _ => format!("{name} (and {others} other pods): {why}"),
        })
        .collect();
    lines.sort();
    told.extend(lines);
    told
}

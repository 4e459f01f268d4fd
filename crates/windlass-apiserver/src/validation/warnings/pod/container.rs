//! Warnings about single containers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::quantity::Quantity;
use crate::validation::at::At;

const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn check(
    container: &At<'_, '_>,
    pod: &At<'_, '_>,
    is_template: bool,
    warnings: &mut Vec<String>,
) {
    let metadata = pod.child("metadata");
    let name = container.text("name");
    seccomp(&metadata, container, &format!("{SECCOMP}{name}"), warnings);
    // What a pod itself says of AppArmor is taken over into the field, with a warning of its own.
    if is_template {
        app_armor(&metadata, container, &pod.value["spec"], warnings);
    }
    let resources = container.child("resources");
    for amount in ["memory", "ephemeral-storage"] {
        for part in ["limits", "requests"] {
            fractional(&resources, part, amount, warnings);
        }
    }
    variables(container, warnings);
}

/// An annotation that has no effect where the field is not set.
pub(super) fn seccomp(
    metadata: &At<'_, '_>,
    part: &At<'_, '_>,
    key: &str,
    warnings: &mut Vec<String>,
) {
    let has_field = part.child("securityContext").has("seccompProfile");
    if !has_field && metadata.child("annotations").has(key) {
        warnings.push(format!(
            "{metadata}.annotations[{key}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
        ));
    }
}

fn app_armor(
    metadata: &At<'_, '_>,
    container: &At<'_, '_>,
    spec: &Value,
    warnings: &mut Vec<String>,
) {
    if container.child("securityContext").has("appArmorProfile") {
        return;
    }
    let key = format!("{APP_ARMOR}{}", container.text("name"));
    let annotations = metadata.child("annotations");
    let Some(annotation) = annotations.get(&key) else {
        return;
    };
    let of_pod = spec["securityContext"].get("appArmorProfile");
    let said = match annotation.value.as_str().unwrap_or_default() {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => other
            .strip_prefix("localhost/")
            .filter(|profile| !profile.is_empty())
            .map(|profile| json!({"type": "Localhost", "localhostProfile": profile})),
    };
    if of_pod.is_none() || of_pod != said.as_ref() {
        warnings.push(format!(
            "{metadata}.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
        ));
    }
}

/// Parts of a byte.
pub(super) fn fractional(at: &At<'_, '_>, part: &str, amount: &str, warnings: &mut Vec<String>) {
    let entry = at.entries(part).find(|(name, _)| *name == amount);
    let Some((_, entry)) = entry else {
        return;
    };
    let found = entry.value.as_str().and_then(Quantity::parse);
    if let Some(found) = found.filter(|found| !found.is_whole()) {
        warnings.push(format!(
            "{entry}: fractional byte value \"{found}\" is invalid, must be an integer"
        ));
    }
}

/// A variable said twice is meant only when the second refers to the first.
fn variables(container: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for variable in container.items("env") {
        let name = variable.text("name");
        if seen.insert(name) {
            continue;
        }
        let (value, reference) = (variable.text("value"), format!("$({name})"));
        if variable.has("valueFrom") || value == reference || !value.contains(&reference) {
            warnings.push(format!(
                "{variable}: hides previous definition of \"{name}\", which may be dropped when using apply"
            ));
        }
    }
}

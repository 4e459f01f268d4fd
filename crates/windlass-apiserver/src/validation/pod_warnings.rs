//! What whoever writes a pod, or a template of one, is told although it is good.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::At;
use crate::names;
use crate::object::meta;
use crate::quantity::Quantity;
use crate::resource::Resource;

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// The warnings about an object that was just written.
pub(in crate::validation) fn of(resource: &Resource, object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let at = At::root(object, "");
    match resource.plural.as_str() {
        "serviceaccounts" => {
            if object["metadata"]["annotations"].get(MOUNTABLE).is_some() {
                warnings.push(format!(
                    "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
                ));
            }
        }
        "pods" if object["metadata"]["generation"] == 1 => {
            name_of(object, "the Pod's hostname", &mut warnings);
            seccomp(object, &mut warnings);
            pod(&at.child("spec"), &mut warnings);
        }
        "pods" | "controllerrevisions" => {}
        "podtemplates" => pod(&at.child("template").child("spec"), &mut warnings),
        "cronjobs" => {
            let (spec, job) = (at.child("spec"), "jobTemplate");
            pod(
                &spec
                    .child(job)
                    .child("spec")
                    .child("template")
                    .child("spec"),
                &mut warnings,
            );
        }
        plural => {
            if matches!(plural, "jobs") && object["metadata"]["generation"] == 1 {
                name_of(object, "Pod names and hostnames", &mut warnings);
            }
            pod(
                &at.child("spec").child("template").child("spec"),
                &mut warnings,
            );
        }
    }
    warnings
}

fn name_of(object: &Value, used: &str, warnings: &mut Vec<String>) {
    let wrong = names::label_errors(meta(object, "name"));
    if !wrong.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// Annotations of a pod that nobody looks at any more.
fn seccomp(pod: &Value, warnings: &mut Vec<String>) {
    let annotations = &pod["metadata"]["annotations"];
    let mut told = |part: &Value, key: &str| {
        let has_field = part["securityContext"].get("seccompProfile").is_some();
        if !has_field && annotations.get(key).is_some() {
            warnings.push(format!(
                "metadata.annotations[{key}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
            ));
        }
    };
    let spec = &pod["spec"];
    told(spec, "seccomp.security.alpha.kubernetes.io/pod");
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
            told(container, &key);
        }
    }
}

fn pod(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for constraint in spec.items("topologySpreadConstraints") {
        if !constraint.has("labelSelector") {
            let told = constraint.child("labelSelector");
            warnings.push(format!(
                "{told}: a null labelSelector results in matching no pod"
            ));
        }
    }
    for list in ["initContainers", "containers"] {
        for container in spec.items(list) {
            let mut seen = BTreeSet::new();
            for variable in container.items("env") {
                let name = variable.text("name");
                if !seen.insert(name) {
                    warnings.push(format!(
                        "{variable}: hides previous definition of \"{name}\", which may be dropped when using apply"
                    ));
                }
            }
            let resources = container.child("resources");
            for part in ["requests", "limits"] {
                for (name, amount) in resources.entries(part) {
                    let amount_of = amount.value.as_str().and_then(Quantity::parse);
                    let bytes = matches!(name, "memory" | "ephemeral-storage");
                    if let Some(found) = amount_of.filter(|found| bytes && !found.is_whole()) {
                        warnings.push(format!(
                            "{amount}: fractional byte value \"{found}\" is invalid, must be an integer"
                        ));
                    }
                }
            }
        }
    }
}

//! What whoever writes a pod, or a template of one, is told although it is good: the pod as a whole
//! here, its parts in `container`, `port` and `volume`. The order is Kubernetes'.

mod container;
mod port;
mod volume;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::Way;
use crate::names;
use crate::object::meta;
use crate::validation::at::At;

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Labels of nodes that are called otherwise by now.
const OLD_NODE_LABELS: &[(&str, &str)] = &[
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// Annotations that nobody looks at any more.
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The lists of containers, in the order in which they are looked at.
const CONTAINERS: &[&str] = &["initContainers", "containers", "ephemeralContainers"];

/// The warnings about a pod that was just written.
pub(crate) fn of_pod(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_first(object) {
        name_of(object, "the Pod's hostname", &mut warnings);
        pod(&At::root(object, ""), false, &mut warnings);
    }
    warnings
}

/// Those about a Job.
pub(crate) fn of_job(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_first(object) {
        name_of(object, "Pod names and hostnames", &mut warnings);
    }
    warnings.extend(of_template(object, &["spec", "template"]));
    warnings
}

/// Those about what makes pods from the template at `way`.
pub(crate) fn of_template(object: &Value, way: Way) -> Vec<String> {
    let mut warnings = Vec::new();
    let root = At::root(object, "");
    let template = way.iter().fold(root, |at, step| at.then(step));
    pod(&template, true, &mut warnings);
    warnings
}

/// Those about a `ServiceAccount`.
pub(crate) fn of_account(account: &Value) -> Vec<String> {
    if account["metadata"]["annotations"].get(MOUNTABLE).is_none() {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    )]
}

/// Whether nothing of it was changed yet.
fn is_first(object: &Value) -> bool {
    object["metadata"]["generation"] == 1
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

fn pod(pod: &At<'_, '_>, is_template: bool, warnings: &mut Vec<String>) {
    let (spec, metadata) = (pod.child("spec"), pod.child("metadata"));
    node_labels(&spec, warnings);
    for (key, told) in OLD_ANNOTATIONS {
        if metadata.child("annotations").has(key) {
            warnings.push(format!("{metadata}.annotations[{key}]: {told}"));
        }
    }
    volume::sources(&spec, warnings);
    volume::overlaps(&spec, warnings);
    repeated(&spec, "hostAliases", "ip", warnings);
    repeated(&spec, "imagePullSecrets", "name", warnings);
    for secret in spec.items("imagePullSecrets") {
        if secret.text("name").is_empty() {
            warnings.push(format!("{secret}.name: invalid empty name \"\""));
        }
    }
    for name in ["memory", "ephemeral-storage"] {
        container::fractional(&spec, "overhead", name, warnings);
    }
    container::seccomp(
        &metadata,
        &spec,
        "seccomp.security.alpha.kubernetes.io/pod",
        warnings,
    );
    for list in CONTAINERS {
        for container in spec.items(list) {
            container::check(&container, pod, is_template, warnings);
        }
    }
    port::check(&spec, warnings);
    if spec
        .int("terminationGracePeriodSeconds")
        .is_some_and(|grace| grace < 0)
    {
        warnings.push(format!(
            "{spec}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    selects_nobody(&spec, warnings);
}

fn old_label(key: &str) -> Option<&'static str> {
    let known = OLD_NODE_LABELS.iter().find(|(label, _)| *label == key);
    known.map(|(_, told)| *told)
}

/// Labels of nodes by which a pod is placed.
fn node_labels(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for (key, entry) in spec.entries("nodeSelector") {
        if let Some(told) = old_label(key) {
            warnings.push(format!("{entry}: {told}"));
        }
    }
    let affinity = spec.child("affinity");
    let node = affinity.child("nodeAffinity");
    let required = node.child("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.items("nodeSelectorTerms") {
        node_term(&term, false, warnings);
    }
    for preferred in node.items("preferredDuringSchedulingIgnoredDuringExecution") {
        node_term(&preferred.child("preference"), true, warnings);
    }
    for constraint in spec.items("topologySpreadConstraints") {
        let key = constraint.text("topologyKey");
        if let Some(told) = old_label(key) {
            warnings.push(format!("{constraint}.topologyKey: {key} is {told}"));
        }
        if !constraint.has("labelSelector") {
            warnings.push(format!(
                "{constraint}.labelSelector: a null labelSelector results in matching no pod"
            ));
        }
    }
}

fn node_term(term: &At<'_, '_>, looks_at_values: bool, warnings: &mut Vec<String>) {
    for expression in term.items("matchExpressions") {
        let key = expression.text("key");
        if let Some(told) = old_label(key) {
            warnings.push(format!("{expression}.key: {key} is {told}"));
        }
        if !looks_at_values {
            continue;
        }
        for value in expression.items("values") {
            let text = value.value.as_str().unwrap_or_default();
            for wrong in names::label_value_errors(text) {
                warnings.push(format!("{value}: {text} is invalid, {wrong}"));
            }
        }
    }
}

/// Items of a list that say the same twice.
fn repeated(spec: &At<'_, '_>, list: &str, field: &str, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for item in spec.items(list) {
        let text = item.text(field);
        if !seen.insert(text) {
            warnings.push(format!("{item}.{field}: duplicate {field} \"{text}\""));
        }
    }
}

/// Terms without a selector, which mean no pod.
fn selects_nobody(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let affinity = spec.child("affinity");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let of_kind = affinity.child(kind);
        let mut told = |term: &At<'_, '_>| {
            if !term.has("labelSelector") {
                warnings.push(format!(
                    "{term}.labelSelector: a null labelSelector results in matching no pod"
                ));
            }
        };
        for term in of_kind.items("requiredDuringSchedulingIgnoredDuringExecution") {
            told(&term);
        }
        for weighted in of_kind.items("preferredDuringSchedulingIgnoredDuringExecution") {
            told(&weighted.child("podAffinityTerm"));
        }
    }
}

//! What templates made: objects and hooks in the order of installation.

use std::cmp::Ordering;

use crate::Error;
use crate::chart::Chart;
use crate::yaml::{self, Yaml};

/// One object as text.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The template that made it.
    pub source: String,
    /// Its text.
    pub text: String,
    /// Its kind; empty if it has none.
    pub kind: String,
    /// Its API version; empty if it has none.
    pub api_version: String,
}

impl Manifest {
    /// The object; null if there is none in it.
    pub fn object(&self) -> Result<serde_json::Value, Error> {
        yaml::read(self.text.as_bytes())
            .and_then(yaml::to_json)
            .map_err(|why| Error::Manifest(format!("YAML parse error on {}: {why}", self.source)))
    }
}

/// An object that is made at a certain time only.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The object.
    pub manifest: Manifest,
    /// The name of the object.
    pub name: String,
    /// When it is made: `pre-install`, `post-upgrade` and so on.
    pub events: Vec<String>,
    /// Lighter ones come first.
    pub weight: i64,
    /// When it is deleted: `hook-succeeded`, `before-hook-creation` and so on.
    pub delete_policies: Vec<String>,
    /// When its log is shown.
    pub log_policies: Vec<String>,
}

/// The kinds in the order in which they are installed.
const INSTALL_ORDER: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];

fn compare_kinds(a: &str, b: &str) -> Ordering {
    let rank = |kind: &str| INSTALL_ORDER.iter().position(|known| *known == kind);
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// The documents of a text of many manifests.
#[must_use]
pub fn documents(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let mut found = Vec::new();
    let mut from = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("---") {
            found.push(&text[from..at]);
            // What follows on the line belongs to the next document.
            from = at + line.len() - rest.trim_start_matches([' ', '\t']).len();
        }
        at += line.len();
    }
    found.push(&text[from..]);
    found
        .into_iter()
        .filter(|document| !document.trim().is_empty())
        .map(str::trim_start)
        .collect()
}

/// What is read of each object.
struct Head {
    api_version: String,
    kind: String,
    name: String,
    annotations: Vec<(String, String)>,
}

fn head(text: &str) -> Result<Head, String> {
    let wrong = |found: &Yaml, field: &str, wanted: &str| {
        let json = yaml::to_json(found.clone()).unwrap_or_default();
        format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go {field} of type {wanted}",
            crate::json::kind(&json)
        )
    };
    let map = match yaml::read(text.as_bytes())? {
        Yaml::Map(map) => map,
        Yaml::Null => std::collections::BTreeMap::new(),
        other => return Err(wrong(&other, "value", "util.SimpleHead")),
    };
    let field = |name: &str| match map.get(name) {
        None => Ok(String::new()),
        Some(value) => crate::chart::scalar_text(value)
            .ok_or_else(|| wrong(value, &format!("struct field .{name}"), "string")),
    };
    let mut annotations = Vec::new();
    let mut name = String::new();
    match map.get("metadata") {
        None | Some(Yaml::Null) => {}
        Some(Yaml::Map(metadata)) => {
            if let Some(found) = metadata.get("name") {
                name = crate::chart::scalar_text(found)
                    .ok_or_else(|| wrong(found, "struct field .metadata.name", "string"))?;
            }
            match metadata.get("annotations") {
                None | Some(Yaml::Null) => {}
                Some(Yaml::Map(found)) => {
                    for (key, value) in found {
                        let Some(text) = crate::chart::scalar_text(value) else {
                            let field = "struct field .metadata.annotations";
                            return Err(wrong(value, field, "string"));
                        };
                        annotations.push((key.clone(), text));
                    }
                }
                Some(other) => {
                    let field = "struct field .metadata.annotations";
                    return Err(wrong(other, field, "map[string]string"));
                }
            }
        }
        Some(other) => {
            return Err(wrong(
                other,
                "struct field .metadata",
                "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }",
            ));
        }
    }
    Ok(Head {
        api_version: field("apiVersion")?,
        kind: field("kind")?,
        name,
        annotations,
    })
}

/// Sorts what templates made, by the names of the templates, into objects and hooks.
pub(crate) fn sort(files: &[(String, String)]) -> Result<(Vec<Manifest>, Vec<Hook>), Error> {
    let mut manifests = Vec::new();
    let mut hooks = Vec::new();
    for (source, content) in files {
        let base = source.rsplit('/').next().unwrap_or_default();
        if base.starts_with('_') || content.trim().is_empty() {
            continue;
        }
        for text in documents(content) {
            let head = head(text)
                .map_err(|why| Error::Manifest(format!("YAML parse error on {source}: {why}")))?;
            let manifest = Manifest {
                source: source.clone(),
                text: text.to_owned(),
                kind: head.kind.clone(),
                api_version: head.api_version.clone(),
            };
            let annotation = |name: &str| {
                (head.annotations.iter())
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value.as_str())
            };
            match annotation("helm.sh/hook") {
                None => manifests.push(manifest),
                Some(events) => hooks.extend(hook(manifest, &head.name, events, annotation)),
            }
        }
    }
    manifests.sort_by(|a, b| compare_kinds(&a.kind, &b.kind));
    hooks.sort_by(|a, b| compare_kinds(&a.manifest.kind, &b.manifest.kind));
    Ok((manifests, hooks))
}

/// A hook, unless it is for an event that there is not.
fn hook<'a>(
    manifest: Manifest,
    name: &str,
    events: &str,
    annotation: impl Fn(&str) -> Option<&'a str>,
) -> Option<Hook> {
    let list = |text: &str| -> Vec<String> {
        text.split(',')
            .map(|one| one.trim().to_lowercase())
            .collect()
    };
    let mut events = list(events);
    if !events.iter().all(|event| EVENTS.contains(&event.as_str())) {
        return None;
    }
    for event in &mut events {
        if event == "test-success" {
            "test".clone_into(event);
        }
    }
    let policies = |name: &str| annotation(name).map(list).unwrap_or_default();
    Some(Hook {
        manifest,
        name: name.to_owned(),
        events,
        weight: annotation("helm.sh/hook-weight")
            .and_then(|text| crate::number::parse_int(text, 10))
            .unwrap_or(0),
        delete_policies: policies("helm.sh/hook-delete-policy"),
        log_policies: policies("helm.sh/hook-output-log-policy"),
    })
}

/// Whether the chart's own conditions for being rendered hold.
pub(crate) fn check(chart: &Chart, kube_version: &str, shown_version: &str) -> Result<(), Error> {
    let wanted = &chart.metadata.kube_version;
    if !wanted.is_empty() && !crate::semver::is_compatible(wanted, kube_version) {
        return Err(Error::Chart(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {shown_version}"
        )));
    }
    Ok(())
}

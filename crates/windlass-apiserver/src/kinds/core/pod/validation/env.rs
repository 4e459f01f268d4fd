//! The environment of a container.

use std::collections::BTreeMap;

use super::volume::backsteps;
use crate::names;
use crate::validation::at::{At, Causes};

const OF_ENV: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What a file may hold of its pod.
pub(super) const OF_FILES: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// What can be named at all.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

pub(super) fn check(container: &At<'_, '_>, causes: &mut Causes) {
    for variable in container.items("env") {
        match variable.text("name") {
            "" => causes.push(variable.child("name").required("")),
            name => variable
                .child("name")
                .complain(names::env_errors(name), causes),
        }
        if let Some(from) = variable.get("valueFrom") {
            value_from(&from, !variable.text("value").is_empty(), causes);
        }
    }
    for source in container.items("envFrom") {
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            source
                .child("prefix")
                .complain(names::env_errors(prefix), causes);
        }
        let mut given = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(reference) = source.get(field) else {
                continue;
            };
            given += 1;
            match reference.text("name") {
                "" => causes.push(reference.child("name").required("")),
                name => reference
                    .child("name")
                    .complain(names::subdomain_errors(name), causes),
            }
        }
        let list = container.child("envFrom");
        match given {
            0 => causes
                .push(list.invalid_value("", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => causes.push(
                list.invalid_value("", "may not have more than one field specified at a time"),
            ),
        }
    }
}

fn value_from(at: &At<'_, '_>, has_value: bool, causes: &mut Causes) {
    let mut given = 0;
    if let Some(reference) = at.get("fieldRef") {
        given += 1;
        field(&reference, OF_ENV, causes);
    }
    if let Some(reference) = at.get("resourceFieldRef") {
        given += 1;
        resource(&reference, false, causes);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = at.get(key) {
            given += 1;
            key_of(&reference, causes);
        }
    }
    if let Some(reference) = at.get("fileKeyRef") {
        given += 1;
        file_key(&reference, causes);
    }
    let why = match given {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.push(at.invalid_value("", why));
}

/// A field of the pod, one of `allowed` or a single label or annotation.
pub(super) fn field(at: &At<'_, '_>, allowed: &[&str], causes: &mut Causes) {
    let (version, path) = (at.text("apiVersion"), at.text("fieldPath"));
    if version.is_empty() {
        causes.push(at.child("apiVersion").required(""));
        return;
    }
    if path.is_empty() {
        causes.push(at.child("fieldPath").required(""));
        return;
    }
    let (name, subscript) = subscripted(path);
    let unknown = if version != "v1" {
        Some(format!("unsupported pod version: {version}"))
    } else if subscript.is_some() && !matches!(name, "metadata.annotations" | "metadata.labels") {
        Some(format!("field label does not support subscript: {path}"))
    } else if subscript.is_none() && !FIELDS.contains(&path) {
        Some(format!("field label not supported: {path}"))
    } else {
        None
    };
    if let Some(why) = unknown {
        let why = format!("error converting fieldPath: {why}");
        causes.push(at.child("fieldPath").invalid(&why));
        return;
    }
    match subscript {
        Some(key) => {
            let key = if name == "metadata.annotations" {
                key.to_lowercase()
            } else {
                key.to_owned()
            };
            for why in names::qualified_errors(&key) {
                causes.push(at.invalid_value(key.as_str(), &why));
            }
        }
        None if !allowed.contains(&path) => {
            causes.push(at.child("fieldPath").not_supported(allowed));
        }
        None => {}
    }
}

/// `metadata.labels['x']` as its two parts.
fn subscripted(path: &str) -> (&str, Option<&str>) {
    path.strip_suffix("']")
        .and_then(|rest| rest.split_once("['"))
        .map_or((path, None), |(name, key)| (name, Some(key)))
}

/// A resource of a container, which a file must name.
pub(super) fn resource(at: &At<'_, '_>, of_file: bool, causes: &mut Causes) {
    let resource = at.text("resource");
    let huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    if of_file && at.text("containerName").is_empty() {
        causes.push(at.child("containerName").required(""));
    } else if resource.is_empty() {
        causes.push(at.child("resource").required(""));
    } else if !RESOURCES.contains(&resource) && !huge {
        causes.push(at.child("resource").not_supported(RESOURCES));
    }
    let divisor = at.text("divisor");
    if divisor.is_empty() || divisor == "0" {
        return;
    }
    let sizes = SIZES.join(", ");
    let why = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") if !matches!(divisor, "1m" | "1") => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        Some(name) if name != "cpu" && !SIZES.contains(&divisor) => {
            let name = match name {
                "memory" => "memory",
                "ephemeral-storage" => "local ephemeral storage",
                _ if huge => "hugepages",
                _ => return,
            };
            format!("only divisor's values {sizes} are supported with the {name} resource")
        }
        _ => return,
    };
    causes.push(at.child("divisor").invalid_value(resource, &why));
}

fn key_of(at: &At<'_, '_>, causes: &mut Causes) {
    at.child("name")
        .complain(names::subdomain_errors(at.text("name")), causes);
    match at.text("key") {
        "" => causes.push(at.child("key").required("")),
        key => at
            .child("key")
            .complain(names::data_key_errors(key), causes),
    }
}

fn file_key(at: &At<'_, '_>, causes: &mut Causes) {
    match at.text("key") {
        "" => causes.push(at.child("key").required("")),
        key => at.child("key").complain(names::env_errors(key), causes),
    }
    match at.text("volumeName") {
        "" => causes.push(at.child("volumeName").required("")),
        name => at
            .child("volumeName")
            .complain(names::label_errors(name), causes),
    }
    if at.text("path").is_empty() {
        causes.push(at.child("path").required(""));
    } else {
        backsteps(&at.child("path"), at.text("path"), causes);
    }
}

/// A variable read from a file needs a volume that can hold it.
pub(super) fn check_file_volumes(spec: &At<'_, '_>, causes: &mut Causes) {
    let volumes: BTreeMap<&str, bool> = spec
        .items("volumes")
        .map(|volume| (volume.text("name"), volume.has("emptyDir")))
        .collect();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            for variable in container.items("env") {
                let from = variable.child("valueFrom");
                let Some(file) = from.get("fileKeyRef") else {
                    continue;
                };
                let name = file.child("volumeName");
                match volumes.get(file.text("volumeName")) {
                    None => causes.push(name.not_found()),
                    Some(false) => {
                        causes.push(name.invalid("referenced volume must be of type emptyDir"));
                    }
                    Some(true) => {}
                }
            }
        }
    }
}

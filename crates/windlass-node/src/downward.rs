//! The downward API: what a pod can be told about itself, as a variable or in a file.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};

use crate::quantity;

/// What a pod knows about itself once it is on a node.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The pod as the API server has it.
    pub pod: &'a Pod,
    /// Its address, which its status may not show yet.
    pub pod_ip: &'a str,
    /// The address of the node.
    pub host_ip: &'a str,
    /// What the node has to give: the limits of a container that has none.
    pub node: Capacity,
}

/// What a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Processors.
    pub cpus: usize,
    /// Memory, in KiB.
    pub memory_kib: u64,
}

/// Why a pod cannot be told something about itself.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DownwardError {
    /// A field that cannot be referred to.
    #[error("unsupported fieldPath: {0}")]
    Field(String),
    /// A resource that cannot be referred to.
    #[error("unsupported container resource : {0}")]
    Resource(String),
    /// A container that the pod does not have.
    #[error("container {0} not found")]
    Container(String),
}

/// The value of a `fieldRef`.
pub(crate) fn field(path: &str, facts: &Facts<'_>) -> Result<String, DownwardError> {
    let metadata = &facts.pod.metadata;
    let spec = facts.pod.spec.as_ref();
    let value = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "metadata.labels" => metadata.labels.as_ref().map(lines),
        "metadata.annotations" => metadata.annotations.as_ref().map(lines),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.podIP" | "status.podIPs" => Some(facts.pod_ip.to_owned()),
        "status.hostIP" | "status.hostIPs" => Some(facts.host_ip.to_owned()),
        other => {
            let labels = subscript(other, "metadata.labels").map(|key| (&metadata.labels, key));
            let annotations =
                subscript(other, "metadata.annotations").map(|key| (&metadata.annotations, key));
            let Some((map, key)) = labels.or(annotations) else {
                return Err(DownwardError::Field(path.to_owned()));
            };
            map.as_ref().and_then(|map| map.get(key)).cloned()
        }
    };
    Ok(value.unwrap_or_default())
}

/// The value of a `resourceFieldRef`; the container it names, or the one that asks.
pub(crate) fn resource(
    selector: &ResourceFieldSelector,
    asking: Option<&Container>,
    facts: &Facts<'_>,
) -> Result<String, DownwardError> {
    let container = match selector.container_name.as_deref().filter(|n| !n.is_empty()) {
        Some(name) => find(facts.pod, name),
        None => asking,
    };
    let named = || selector.container_name.clone().unwrap_or_default();
    let container = container.ok_or_else(|| DownwardError::Container(named()))?;
    let unknown = || DownwardError::Resource(selector.resource.clone());
    let (list, name) = selector.resource.split_once('.').ok_or_else(unknown)?;
    let resources = container.resources.as_ref();
    let given = |list: &str| {
        let map = match list {
            "limits" => resources.and_then(|resources| resources.limits.as_ref()),
            _ => resources.and_then(|resources| resources.requests.as_ref()),
        };
        map.and_then(|map| map.get(name))
    };
    if !matches!(list, "limits" | "requests") {
        return Err(unknown());
    }
    // What has no limit is limited by the node; what requests nothing requests nothing.
    let value = given(list).map(|quantity| quantity.0.clone());
    let value = value.unwrap_or_else(|| match (list, name) {
        ("limits", "cpu") => facts.node.cpus.to_string(),
        ("limits", "memory") => format!("{}Ki", facts.node.memory_kib),
        _ => "0".to_owned(),
    });
    let divisor = selector.divisor.as_ref().map_or("1", |divisor| &divisor.0);
    let read = match name {
        "cpu" => quantity::millis,
        "memory" | "ephemeral-storage" => quantity::units,
        name if name.starts_with("hugepages-") => quantity::units,
        _ => return Err(unknown()),
    };
    let divisor = read(divisor).filter(|divisor| *divisor > 0);
    let divisor = divisor.or_else(|| read("1")).unwrap_or(1);
    let value = read(&value).ok_or_else(unknown)?;
    Ok(quantity::ceil(value, divisor).to_string())
}

fn find<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    all.find(|container| container.name == name)
}

/// Labels and annotations in a file: `key="value"`, one a line.
fn lines(map: &std::collections::BTreeMap<String, String>) -> String {
    let lines: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", quoted(value)))
        .collect();
    lines.join("\n")
}

/// A text as Go quotes it.
fn quoted(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\x0b' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The key of `field['key']`.
fn subscript<'a>(path: &'a str, field: &str) -> Option<&'a str> {
    path.strip_prefix(field)?
        .strip_prefix("['")?
        .strip_suffix("']")
}

#[cfg(test)]
mod tests;

//! What the columns of nodes show.

use serde_json::Value;

use crate::table::text::{or, text};

pub(super) fn cell(node: &Value, column: &str) -> Option<Value> {
    let info = &node["status"]["nodeInfo"];
    let unknown = |value: &Value| or(text(value), "<unknown>").into();
    let address = |kind: &str| -> Value {
        let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
        let mut found = addresses.into_iter().filter(|one| one["type"] == kind);
        let found = found.next().map(|one| text(&one["address"]));
        or(found.unwrap_or_default(), "<none>").into()
    };
    Some(match column {
        "Status" => node_status(node).into(),
        "Roles" => roles(node).into(),
        "Version" => text(&info["kubeletVersion"]).into(),
        "Internal-IP" => address("InternalIP"),
        "External-IP" => address("ExternalIP"),
        "OS-Image" => unknown(&info["osImage"]),
        "Kernel-Version" => unknown(&info["kernelVersion"]),
        "Container-Runtime" => unknown(&info["containerRuntimeVersion"]),
        _ => return None,
    })
}

fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let ready = conditions.into_iter().find(|one| one["type"] == "Ready");
    let mut shown = match ready {
        None => "Unknown",
        Some(one) if one["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        shown.push_str(",SchedulingDisabled");
    }
    shown
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let mut roles: Vec<String> = labels
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) if !role.is_empty() => Some(role.to_owned()),
                _ if key == "kubernetes.io/role" => {
                    Some(text(value)).filter(|role| !role.is_empty())
                }
                _ => None,
            },
        )
        .collect();
    roles.sort();
    roles.dedup();
    or(roles.join(","), "<none>")
}

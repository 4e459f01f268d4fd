//! The Table form: rows and columns for people.
//!
//! Columns come from the facts (or the CRD); how a cell is filled is told here, by column name,
//! for the kinds people look at most. A column nobody told how to fill shows what kubectl shows
//! for nothing: `<none>`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::meta;
use crate::resource::Resource;

/// How a Table is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) whole_objects: bool,
    pub(crate) no_objects: bool,
    pub(crate) now: Timestamp,
}

/// The Table of some objects of one resource.
pub(crate) fn of(
    resource: &Resource,
    objects: &[Value],
    metadata: &Value,
    options: Options,
) -> Value {
    let columns: Vec<Value> = resource
        .columns
        .iter()
        .map(|column| {
            json!({"name": column.name, "type": column.ty, "format": column.format, "description": "", "priority": column.priority})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = match &resource.custom {
                Some(custom) => std::iter::once(object["metadata"]["name"].clone())
                    .chain(custom.cells.iter().zip(resource.columns.iter().skip(1)).map(|(path, column)| {
                        custom_cell(path.find(object), &column.ty, options.now)
                    }))
                    .collect(),
                None => resource.columns.iter().map(|column| cell(resource, object, &column.name, options.now)).collect(),
            };
            let mut row = json!({"cells": cells, "object": null});
            if options.whole_objects {
                row["object"] = object.clone();
            } else if !options.no_objects {
                row["object"] =
                    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
            }
            row
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": rows})
}

fn custom_cell(value: Option<&Value>, ty: &str, now: Timestamp) -> Value {
    match (value, ty) {
        (Some(Value::Null), "string") => "<no value>".into(),
        (Some(Value::String(text)), "date") if text.parse::<Timestamp>().is_err() => {
            "<invalid>".into()
        }
        (Some(Value::String(text)), "date") => age(text, now).into(),
        (Some(Value::Number(number)), "integer") if number.is_f64() => {
            #[allow(clippy::cast_possible_truncation, reason = "as Go does it")]
            let whole = number.as_f64().unwrap_or_default() as i64;
            whole.into()
        }
        (Some(value @ Value::Number(_)), "integer" | "number")
        | (Some(value @ Value::Bool(_)), "boolean") => value.clone(),
        (Some(Value::String(text)), "string") => text.as_str().into(),
        (Some(other), "string") => other.to_string().into(),
        // A cell of another type than its column is empty.
        _ => Value::Null,
    }
}

fn cell(resource: &Resource, object: &Value, column: &str, now: Timestamp) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let or_none = |value: String| {
        if value.is_empty() {
            "<none>".to_owned()
        } else {
            value
        }
    };
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let (spec, status) = (&object["spec"], &object["status"]);
    let kind = resource.plural.as_str();
    match (kind, column) {
        (_, "Name") => meta(object, "name").into(),
        (_, "Age") => age(meta(object, "creationTimestamp"), now).into(),
        (_, "Created At") => meta(object, "creationTimestamp").into(),
        ("pods", "Ready") => {
            let containers = spec["containers"].as_array().map_or(0, Vec::len);
            let ready = status["containerStatuses"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|c| c["ready"] == true)
                .count();
            format!("{ready}/{containers}").into()
        }
        ("pods", "Status") => pod_status(object).into(),
        ("pods", "Restarts") => {
            let restarts = status["containerStatuses"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|c| number(&c["restartCount"]))
                .sum::<i64>();
            restarts.to_string().into()
        }
        ("pods", "IP") => or_none(text(&status["podIP"])).into(),
        ("pods", "Node") => or_none(text(&spec["nodeName"])).into(),
        ("deployments" | "statefulsets", "Ready") => format!(
            "{}/{}",
            number(&status["readyReplicas"]),
            number(&spec["replicas"])
        )
        .into(),
        ("deployments", "Up-to-date") => number(&status["updatedReplicas"]).into(),
        ("deployments", "Available") => number(&status["availableReplicas"]).into(),
        ("replicasets", "Desired") => number(&spec["replicas"]).into(),
        ("replicasets", "Current") => number(&status["replicas"]).into(),
        ("replicasets", "Ready") => number(&status["readyReplicas"]).into(),
        (_, "Containers") => containers(object, "name").into(),
        (_, "Images") => containers(object, "image").into(),
        ("services", "Type") => text(&spec["type"]).into(),
        ("services", "Cluster-IP") => or_none(text(&spec["clusterIP"])).into(),
        ("services", "Port(s)") => or_none(ports(spec)).into(),
        ("services", "Selector") => or_none(labels(&spec["selector"])).into(),
        (_, "Selector") => or_none(labels(&spec["selector"]["matchLabels"])).into(),
        ("configmaps" | "secrets", "Data") => {
            let count = |part: &str| object[part].as_object().map_or(0, serde_json::Map::len);
            (count("data") + count("binaryData")).into()
        }
        ("events" | "secrets", "Type") => text(&object["type"]).into(),
        ("namespaces", "Status") => text(&status["phase"]).into(),
        ("nodes", "Status") => node_status(object).into(),
        ("nodes", "Version") => text(&status["nodeInfo"]["kubeletVersion"]).into(),
        ("nodes", "Internal-IP") => {
            let addresses = status["addresses"].as_array().into_iter().flatten();
            or_none(
                addresses
                    .filter(|a| a["type"] == "InternalIP")
                    .map(|a| text(&a["address"]))
                    .next()
                    .unwrap_or_default(),
            )
            .into()
        }
        ("events", "Last Seen") => {
            let at = ["lastTimestamp", "deprecatedLastTimestamp", "eventTime"]
                .map(|field| text(&object[field]));
            at.iter()
                .find(|at| !at.is_empty())
                .map_or_else(|| "<unknown>".to_owned(), |at| age(at, now))
                .into()
        }
        ("events", "Reason") => text(&object["reason"]).into(),
        ("events", "Object") => {
            let about = if object["involvedObject"].is_object() {
                &object["involvedObject"]
            } else {
                &object["regarding"]
            };
            format!(
                "{}/{}",
                text(&about["kind"]).to_lowercase(),
                text(&about["name"])
            )
            .into()
        }
        ("events", "Message") => {
            let message = text(&object["message"]);
            if message.is_empty() {
                text(&object["note"])
            } else {
                message
            }
            .into()
        }
        ("leases", "Holder") => or_none(text(&spec["holderIdentity"])).into(),
        _ => "<none>".into(),
    }
}

fn pod_status(pod: &Value) -> String {
    let status = &pod["status"];
    if pod["metadata"]["deletionTimestamp"].is_string() {
        return "Terminating".to_owned();
    }
    let mut shown = status["reason"]
        .as_str()
        .or(status["phase"].as_str())
        .unwrap_or("Unknown")
        .to_owned();
    for container in status["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
        .rev()
    {
        if let Some(reason) = container["state"]["waiting"]["reason"]
            .as_str()
            .filter(|reason| !reason.is_empty())
        {
            reason.clone_into(&mut shown);
        } else if let Some(ended) = container["state"]["terminated"].as_object() {
            let reason = ended
                .get("reason")
                .and_then(Value::as_str)
                .unwrap_or_default();
            shown = match (reason, ended.get("signal").and_then(Value::as_i64)) {
                ("", Some(signal)) if signal != 0 => format!("Signal:{signal}"),
                ("", _) => format!(
                    "ExitCode:{}",
                    ended
                        .get("exitCode")
                        .and_then(Value::as_i64)
                        .unwrap_or_default()
                ),
                (reason, _) => reason.to_owned(),
            };
        }
    }
    shown
}

fn node_status(node: &Value) -> String {
    let ready = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let mut shown = if ready { "Ready" } else { "NotReady" }.to_owned();
    if node["spec"]["unschedulable"] == true {
        shown.push_str(",SchedulingDisabled");
    }
    shown
}

fn containers(object: &Value, part: &str) -> String {
    let containers = object["spec"]["template"]["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten();
    containers
        .filter_map(|container| container[part].as_str())
        .collect::<Vec<_>>()
        .join(",")
}

fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(",")
}

fn ports(spec: &Value) -> String {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64() {
                Some(node_port) => format!("{}:{node_port}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// How long ago, as kubectl says it: `5s`, `3m20s`, `2h`, `4d`.
fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    let seconds = now.as_second() - since.as_second();
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 == 0 => format!("{}m", seconds / 60),
        120..600 => format!("{}m{}s", seconds / 60, seconds % 60),
        600..10_800 => format!("{}m", seconds / 60),
        10_800..28_800 if seconds / 60 % 60 == 0 => format!("{}h", seconds / 3600),
        10_800..28_800 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        28_800..172_800 => format!("{}h", seconds / 3600),
        172_800..691_200 if seconds / 3600 % 24 == 0 => format!("{}d", seconds / 86_400),
        172_800..691_200 => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
        691_200..63_072_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let now: Timestamp = "2030-01-10T00:00:00Z".parse().unwrap();
        for (since, shown) in [
            ("2030-01-09T23:59:55Z", "5s"),
            ("2030-01-09T23:56:40Z", "3m20s"),
            ("2030-01-09T23:30:00Z", "30m"),
            ("2030-01-09T20:00:00Z", "4h"),
            ("2030-01-07T00:00:00Z", "3d"),
            ("2029-12-01T00:00:00Z", "40d"),
            ("nonsense", "<unknown>"),
        ] {
            assert_eq!(age(since, now), shown, "{since}");
        }
    }
}

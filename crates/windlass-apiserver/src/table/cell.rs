//! What a cell shows: of the columns that all built-in kinds have, and what columns of several kinds
//! have in common.

use jiff::Timestamp;
use serde_json::Value;

use super::age;
use super::text::{or, text};
use crate::object::{is_terminating, meta};

/// A column that every kind may have.
pub(super) fn of_any_kind(object: &Value, column: &str, now: Timestamp) -> Value {
    match column {
        "Name" => meta(object, "name").into(),
        "Age" => age(meta(object, "creationTimestamp"), now).into(),
        "Created At" => meta(object, "creationTimestamp").into(),
        _ => "<none>".into(),
    }
}

pub(crate) fn number(value: &Value) -> Value {
    value.as_i64().unwrap_or_default().into()
}

pub(crate) fn truth(value: &Value) -> Value {
    value.as_bool().unwrap_or_default().into()
}

pub(crate) fn count(list: &Value) -> Value {
    list.as_array().map_or(0, Vec::len).into()
}

pub(crate) fn none(value: &Value) -> Value {
    or(text(value), "<none>").into()
}

pub(crate) fn unset(value: &Value) -> Value {
    or(text(value), "<unset>").into()
}

pub(crate) fn phase(object: &Value) -> Value {
    if is_terminating(object) {
        "Terminating".into()
    } else {
        text(&object["status"]["phase"]).into()
    }
}

pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == kind && one["status"] == "True")
}

/// How many replicas are ready, of how many.
pub(crate) fn ready_of(object: &Value) -> Value {
    let (ready, wanted) = (
        &object["status"]["readyReplicas"],
        &object["spec"]["replicas"],
    );
    format!("{}/{}", number(ready), number(wanted)).into()
}

/// The names or the images of the containers of a template.
pub(crate) fn containers(template: &Value, column: &str) -> Value {
    let part = if column == "Images" { "image" } else { "name" };
    let containers = items(&template["spec"], "containers").iter();
    let shown: Vec<&str> = containers
        .filter_map(|container| container[part].as_str())
        .collect();
    shown.join(",").into()
}

/// How many entries of data there are.
pub(crate) fn entries(object: &Value) -> Value {
    let size = |part: &str| object[part].as_object().map_or(0, serde_json::Map::len);
    (size("data") + size("binaryData")).into()
}

/// The class of a volume or a claim, which an old annotation may name.
pub(crate) fn storage_class(object: &Value) -> Value {
    let annotation = "volume.beta.kubernetes.io/storage-class";
    let old = text(&object["metadata"]["annotations"][annotation]);
    or(old, &text(&object["spec"]["storageClassName"])).into()
}

/// The items of a list.
pub(crate) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// What a load balancer gave.
pub(crate) fn balancer(status: &Value) -> Vec<String> {
    let points = items(&status["loadBalancer"], "ingress").iter();
    points
        .map(|point| or(text(&point["ip"]), &text(&point["hostname"])))
        .filter(|address| !address.is_empty())
        .collect()
}

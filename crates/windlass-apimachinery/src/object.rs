//! Small, often needed looks into an object.

use serde_json::{Map, Value};

/// A text field of `metadata`, empty when absent.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// `metadata`, made if it is not there.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

/// Sets or, when `None`, removes a field of `metadata`.
pub fn set_meta(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = meta_mut(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// The finalizers of an object.
pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Whether an object is being deleted.
pub fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// A dotted path (`.spec.replicas`).
pub fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.')
        .split('.')
        .try_fold(object, |value, part| value.get(part))
}

/// Sets a dotted path, making the maps on the way.
pub fn set_at(object: &mut Value, path: &str, new: Value) {
    let mut value = object;
    for part in path.trim_start_matches('.').split('.') {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        value = &mut value[part];
    }
    *value = new;
}

//! How Go writes values, where Kubernetes shows them in its messages.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::steps::step;

/// `fmt.Sprintf("%+v", value)` of a decoded JSON value.
pub fn plus_v(value: &Value) -> String {
    let mut out = String::new();
    write_plus_v(value, &mut out);
    out
}

fn write_plus_v(value: &Value, out: &mut String) {
    step();
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { " " });
                write_plus_v(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (index, (key, value)) in map.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { " " });
                out.push_str(key);
                out.push(':');
                write_plus_v(value, out);
            }
            out.push(']');
        }
        Value::Number(number) if number.is_f64() => {
            out.push_str(&float(number.as_f64().unwrap_or_default()));
        }
        other => out.push_str(&other.to_string()),
    }
}

/// What `%#v` prints of a decoded value.
pub fn sharp_v(value: &Value) -> String {
    let mut out = String::new();
    write_sharp_v(value, &mut out);
    out
}

fn write_sharp_v(value: &Value, out: &mut String) {
    step();
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_sharp_v(item, out);
            }
            out.push('}');
        }
        Value::Object(map) => {
            out.push_str("map[string]interface {}{");
            for (index, (key, value)) in map.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                let _ = write!(out, "{key:?}:");
                write_sharp_v(value, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// `fmt.Sprint(number)` of a float64.
pub fn float(number: f64) -> String {
    if number != 0.0 && !(1e-5..1e21).contains(&number.abs()) {
        let text = format!("{number:e}");
        // Go gives an exponent its sign and two digits.
        if let Some((digits, exponent)) = text.split_once('e') {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            return format!("{digits}e{sign}{exponent:0>2}");
        }
    }
    number.to_string()
}

/// What Go calls the JSON that it could not put somewhere.
pub fn json_kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// What `reflect` calls the type of a decoded JSON value.
pub fn reflected(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The order in which Go writes the fields of `metadata`.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const MANAGED_FIELDS: &[&str] = &[
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];
const OWNER_REFERENCE: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
];

/// An object as JSON, with its metadata in Go's order.
pub fn object_json(object: &Value) -> String {
    let Some(map) = object.as_object() else {
        return object.to_string();
    };
    let members: Vec<String> = map
        .iter()
        .map(|(key, value)| match (key.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                format!("\"metadata\":{}", metadata_json(metadata))
            }
            _ => format!("{}:{value}", Value::from(key.as_str())),
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// A reference to an owner, in Go's order.
pub fn owner_json(owner: &Value) -> String {
    match owner {
        Value::Object(map) => ordered(map, OWNER_REFERENCE, |_, value| value.to_string()),
        other => other.to_string(),
    }
}

/// References to owners, in Go's order.
pub fn owners_json(owners: &[Value]) -> String {
    list_json(owners, OWNER_REFERENCE)
}

/// `metadata` as JSON, in Go's order.
pub fn metadata_json(metadata: &Map<String, Value>) -> String {
    ordered(metadata, METADATA, |key, value| match (key, value) {
        ("managedFields", Value::Array(entries)) => list_json(entries, MANAGED_FIELDS),
        ("ownerReferences", Value::Array(owners)) => list_json(owners, OWNER_REFERENCE),
        _ => value.to_string(),
    })
}

fn list_json(items: &[Value], order: &[&str]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| match item {
            Value::Object(map) => ordered(map, order, |_, value| value.to_string()),
            other => other.to_string(),
        })
        .collect();
    format!("[{}]", items.join(","))
}

/// A map with the fields of `order` first, in that order.
fn ordered(
    map: &Map<String, Value>,
    order: &[&str],
    show: impl Fn(&str, &Value) -> String,
) -> String {
    let known = order.iter().filter_map(|key| map.get_key_value(*key));
    let others = map.iter().filter(|(key, _)| !order.contains(&key.as_str()));
    let members: Vec<String> = known
        .chain(others)
        .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), show(key, value)))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_read_as_go_prints_them() {
        assert_eq!(
            plus_v(&json!({"b": {"x": 1}, "a": ["y", null, true]})),
            "map[a:[y <nil> true] b:map[x:1]]"
        );
        assert_eq!(
            object_json(&json!({"kind": "K", "metadata": {"labels": {}, "name": "n", "uid": "u"}})),
            r#"{"kind":"K","metadata":{"name":"n","uid":"u","labels":{}}}"#
        );
        assert_eq!(
            owners_json(&[json!({"controller": true, "kind": "K"})]),
            r#"[{"kind":"K","controller":true}]"#
        );
    }
}

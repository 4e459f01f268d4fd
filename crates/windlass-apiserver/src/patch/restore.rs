//! Whether a merged object can be read back into its type.
//!
//! A strategic merge never sees JSON text: Kubernetes restores the object from the merged tree, and
//! complains about a wrong shape in words of its own.

use serde_json::Value;

use crate::registry::types::{Scalar, Type};
use crate::steps::step;

/// Why `value` is not of type `ty`, if it is not.
pub(crate) fn unrestorable(value: &Value, ty: &Type) -> Option<String> {
    step();
    match (ty.resolve(), value) {
        (_, Value::Null) | (Type::Any | Type::Named(_), _) => None,
        (Type::Struct { fields, .. }, Value::Object(map)) => map
            .iter()
            .filter_map(|(name, value)| Some((value, &fields.get(name)?.ty)))
            .find_map(|(value, ty)| unrestorable(value, ty)),
        (Type::Map { value: ty, .. }, Value::Object(map)) => {
            map.values().find_map(|value| unrestorable(value, ty))
        }
        (Type::List { item, .. }, Value::Array(items)) => {
            items.iter().find_map(|value| unrestorable(value, item))
        }
        (Type::Struct { .. }, other) => {
            Some(format!("cannot restore struct from: {}", kind(other)))
        }
        (Type::Map { .. }, other) => Some(format!("cannot restore map from {}", kind(other))),
        (Type::List { .. }, other) => Some(format!("cannot restore slice from {}", kind(other))),
        (Type::Scalar(scalar), value) => {
            let wanted = match scalar {
                Scalar::String if !value.is_string() => "string",
                Scalar::Int32 if !value.is_number() => "int32",
                Scalar::Integer if !value.is_number() => "int64",
                Scalar::Number if !value.is_number() => "float64",
                Scalar::Boolean if !value.is_boolean() => "bool",
                // The others read themselves, from JSON.
                _ => return None,
            };
            Some(match value {
                // Go converts numbers to text, which is not meant here.
                Value::Number(number) if wanted == "string" => {
                    let from = if number.is_f64() { "float64" } else { "int64" };
                    match from {
                        "int64" => "cannot convert int64 to string".to_owned(),
                        _ => "unrecognized type: string".to_owned(),
                    }
                }
                _ => format!("unrecognized type: {wanted}"),
            })
        }
    }
}

/// What Go's reflection calls the sort of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

//! Values of objects as values of CEL, by what is declared of them.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use serde_json::Value;

use super::cost::Declared;
use super::types::Type;
use windlass_apimachinery::cel_names::escape;

/// A value of JSON. What is not declared is not known to expressions, but for what is anything.
pub fn of_json(value: &Value, declared: Option<&Declared>) -> CelValue {
    let ty = declared.map_or(&Type::Dyn, |declared| &declared.ty);
    match (value, ty) {
        (Value::Null, _) => CelValue::Null,
        (Value::Bool(value), _) => CelValue::Bool(*value),
        (Value::Number(number), Type::Double) => {
            CelValue::Float(number.as_f64().unwrap_or_default())
        }
        (Value::Number(number), _) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => CelValue::Int(whole),
            (None, Some(whole)) => CelValue::UInt(whole),
            (None, None) => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        (Value::String(text), Type::Timestamp) => timestamp(text).unwrap_or_else(|| string(text)),
        (Value::String(text), Type::Duration) => duration(text).unwrap_or_else(|| string(text)),
        (Value::String(text), Type::Bytes) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_or_else(|_| string(text), |bytes| CelValue::Bytes(Arc::new(bytes))),
        (Value::String(text), _) => string(text),
        (Value::Array(items), _) => {
            let item = declared.and_then(|declared| declared.item.as_deref());
            let items = items.iter().map(|value| of_json(value, item));
            CelValue::List(Arc::new(items.collect()))
        }
        (Value::Object(map), Type::Object(object)) => {
            entries(map.iter().filter_map(|(name, value)| {
                let name = escape(name)?;
                let declared = object.fields.get(&name)?;
                Some((name, of_json(value, Some(declared))))
            }))
        }
        (Value::Object(map), _) => {
            let item = declared.and_then(|declared| declared.item.as_deref());
            let of = |(name, value): (&String, &Value)| (name.clone(), of_json(value, item));
            entries(map.iter().map(of))
        }
    }
}

/// An optional value.
pub fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(match value {
        Some(value) => OptionalValue::of(value),
        None => OptionalValue::none(),
    }))
}

fn entries(entries: impl Iterator<Item = (String, CelValue)>) -> CelValue {
    let map: HashMap<Key, CelValue> = entries
        .map(|(name, value)| (Key::String(Arc::new(name)), value))
        .collect();
    CelValue::Map(Map { map: Arc::new(map) })
}

fn string(text: &str) -> CelValue {
    CelValue::String(Arc::new(text.to_owned()))
}

/// A duration as Go writes it.
pub(super) fn duration(text: &str) -> Option<CelValue> {
    super::interpreter::call("duration", None, vec![string(text)]).ok()
}

/// A time, or a date that stands for its first moment.
pub(super) fn timestamp(text: &str) -> Option<CelValue> {
    let whole = if text.len() == 10 {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    super::interpreter::call("timestamp", None, vec![string(&whole)]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_kubernetes_escapes_them() {
        for (name, escaped) in [
            ("a", Some("a")),
            ("in", Some("__in__")),
            ("a-b", Some("a__dash__b")),
            ("a__b", Some("a__underscores__b")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("1a", None),
            ("a b", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}

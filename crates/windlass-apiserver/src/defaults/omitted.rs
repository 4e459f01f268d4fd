//! Zero values that nobody can tell from absent ones.
//!
//! A Go struct does not keep apart a text that was not sent from an empty one, unless the field is
//! a pointer; and where it has `omitempty`, neither is on the wire. `facts/omitted.json` names
//! those fields. They are dropped before defaults are filled in: an empty text gets the default
//! too.

use std::collections::HashMap;

use serde_json::Value;

use crate::registry::types::{Scalar, Type};
use crate::steps::step;

/// Those fields, by the names of types.
pub(crate) fn table() -> HashMap<String, Vec<String>> {
    serde_json::from_str(include_str!("../../facts/omitted.json"))
        .expect("facts/omitted.json is generated and checked in: it parses")
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(truth) => !truth,
        _ => false,
    }
}

/// Drops what `value`, an object of type `ty`, would lose on its way through Go.
pub(crate) fn drop_zeros(value: &mut Value, ty: &Type) {
    step();
    if ty.is_unknown() {
        return;
    }
    match value {
        Value::Object(map) => {
            if let Some(known) = ty.definition() {
                for field in &known.omitted {
                    if map.get(field).is_some_and(is_zero) {
                        map.remove(field);
                    }
                }
            }
            for (key, value) in map.iter_mut() {
                drop_zeros(value, ty.member(key));
            }
            if let Type::Map { value: ty, .. } = ty.resolve() {
                null_texts(map.values_mut(), ty);
            }
        }
        Value::Array(items) => {
            for item in items {
                drop_zeros(item, ty.item());
            }
        }
        _ => {}
    }
}

/// A null in a map of texts is an empty text.
fn null_texts<'a>(values: impl Iterator<Item = &'a mut Value>, ty: &Type) {
    if matches!(ty.resolve(), Type::Scalar(Scalar::String)) {
        for value in values.filter(|value| value.is_null()) {
            *value = "".into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn zeros_behind_pointers_stay() {
        let mut service = json!({"spec": {
            "type": "", "clusterIP": "", "loadBalancerClass": "", "ports": [{"port": 0, "nodePort": 0}],
        }});
        drop_zeros(
            &mut service,
            &Type::Named("io.k8s.api.core.v1.Service".into()),
        );
        assert_eq!(
            service,
            json!({"spec": {"loadBalancerClass": "", "ports": [{"port": 0}]}})
        );
    }

    #[test]
    fn every_type_and_field_of_the_table_exists() {
        for (name, fields) in table() {
            let ty = Type::Named(name.as_str().into());
            if let Type::Struct { .. } = ty.resolve() {
                for field in fields {
                    assert!(ty.field(&field).is_some(), "{name} has no field {field}");
                }
            }
        }
    }
}

//! Checks a custom object against its schema, with the sentences and causes of kube-apiserver.

use serde_json::Value;

use super::ScalePaths;
use super::schema::{AdditionalProperties, Schema};
use crate::go;
use crate::object::at;
use crate::status::{Cause, field};

/// Every way in which `value` is not what `schema` asks for.
pub(crate) fn check(value: &Value, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema.nullable {
        return;
    }
    if !type_fits(value, schema) {
        let found = type_name(value);
        let wanted = if schema.int_or_string {
            "integer,string"
        } else {
            &schema.ty
        };
        causes.push(field::type_invalid(
            shown(path),
            &format!("\"{found}\""),
            &format!(
                "{} in body must be of type {wanted}: \"{found}\"",
                body_path(path)
            ),
        ));
        return;
    }
    if !schema.allowed.is_empty() && !schema.allowed.contains(value) {
        let allowed: Vec<String> = schema.allowed.iter().map(ToString::to_string).collect();
        causes.push(field::not_supported(shown(path), value, &allowed));
    }
    let wrong = |causes: &mut Vec<Cause>, detail: String| {
        causes.push(field::invalid(
            shown(path),
            value,
            &format!("{} in body {detail}", body_path(path)),
        ));
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(minimum) = schema.minimum {
                if schema.exclusive_minimum && number <= minimum {
                    wrong(causes, format!("should be greater than {minimum}"));
                } else if number < minimum {
                    wrong(
                        causes,
                        format!("should be greater than or equal to {minimum}"),
                    );
                }
            }
            if let Some(maximum) = schema.maximum {
                if schema.exclusive_maximum && number >= maximum {
                    wrong(causes, format!("should be less than {maximum}"));
                } else if number > maximum {
                    wrong(causes, format!("should be less than or equal to {maximum}"));
                }
            }
            if let Some(divisor) = schema.multiple_of
                && divisor != 0.0
                && (number / divisor).fract() != 0.0
            {
                wrong(causes, format!("should be a multiple of {divisor}"));
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            // Of a text only the first thing that is wrong is told.
            if let Some(max) = schema.max_length.filter(|max| length > *max) {
                causes.push(field::too_long(shown(path), max));
            } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
                wrong(causes, format!("should be at least {min} chars long"));
            } else if let Some(pattern) = &schema.pattern
                && !schema.pattern_fits(text)
            {
                wrong(causes, format!("should match '{pattern}'"));
            }
        }
        Value::Array(items) => {
            if let Some(min) = schema.min_items.filter(|min| (items.len() as u64) < *min) {
                wrong(causes, format!("should have at least {min} items"));
            }
            if let Some(max) = schema.max_items.filter(|max| items.len() as u64 > *max) {
                causes.push(field::too_many(shown(path), items.len(), max));
            }
            check_unique(items, schema, path, causes);
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, schema, &format!("{path}[{index}]"), causes);
                }
            }
        }
        Value::Object(map) => {
            if let Some(min) = schema
                .min_properties
                .filter(|min| (map.len() as u64) < *min)
            {
                wrong(causes, format!("should have at least {min} properties"));
            }
            if let Some(max) = schema.max_properties.filter(|max| map.len() as u64 > *max) {
                causes.push(field::too_many(shown(path), map.len(), max));
            }
            for name in schema
                .required
                .iter()
                .filter(|name| !map.contains_key(*name))
            {
                causes.push(field::required(join(path, name), ""));
            }
            let values = match &schema.additional_properties {
                Some(AdditionalProperties::Of(values)) => Some(values.as_ref()),
                _ => None,
            };
            for (name, value) in map {
                if let Some(schema) = schema.properties.get(name).or(values) {
                    check(value, schema, &join(path, name), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    check_combinations(value, schema, path, causes);
}

/// The numbers that the scale subresource shows must be numbers, and none of them negative.
pub(super) fn check_scale(object: &Value, paths: &ScalePaths, causes: &mut Vec<Cause>) {
    for path in [&paths.spec_replicas, &paths.status_replicas] {
        let Some(found) = at(object, path) else {
            continue;
        };
        match found.as_i64() {
            Some(number) if number < 0 => {
                let why = "should be a non-negative integer";
                causes.push(field::invalid(path.as_str(), found, why));
            }
            Some(_) => {}
            None => {
                let why = format!(
                    "{path} accessor error: {} is of the type {}, expected int64",
                    go::plus_v(found),
                    go_type(found)
                );
                causes.push(field::invalid(path.as_str(), &0.into(), &why));
            }
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn check_combinations(value: &Value, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let fits = |schema: &Schema| {
        let mut causes = Vec::new();
        check(value, schema, path, &mut causes);
        causes.is_empty()
    };
    let mut wrong = |detail: &str| {
        causes.push(field::invalid(
            shown(path),
            &Value::from(""),
            &format!("\"{}\" {detail}", body_path(path)),
        ));
    };
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(fits) {
        wrong("must validate at least one schema (anyOf)");
    }
    if !schema.one_of.is_empty() && schema.one_of.iter().filter(|schema| fits(schema)).count() != 1
    {
        wrong("must validate one and only one schema (oneOf)");
    }
    if schema.not.as_ref().is_some_and(|schema| fits(schema)) {
        wrong("must not validate the schema (not)");
    }
    for schema in &schema.all_of {
        check(value, schema, path, causes);
    }
}

/// Sets and keyed lists hold each item once.
fn check_unique(items: &[Value], schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let identity = |item: &Value| match schema.list_type.as_deref() {
        Some("set") => Some(item.clone()),
        Some("map") => Some(
            schema
                .list_map_keys
                .iter()
                .map(|key| item[key].clone())
                .collect(),
        ),
        _ if schema.unique_items => Some(item.clone()),
        _ => None,
    };
    let mut seen = std::collections::BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(known) = identity(item) else { return };
        if !seen.insert(known.to_string()) {
            let shown = match schema.list_type.as_deref() {
                Some("map") => schema
                    .list_map_keys
                    .iter()
                    .map(|key| (key.clone(), item[key].clone()))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
                _ => item.clone(),
            };
            causes.push(field::duplicate(format!("{path}[{index}]"), &shown));
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// The root has no path of its own; Kubernetes calls it `<nil>` in causes.
fn shown(path: &str) -> String {
    if path.is_empty() {
        "<nil>".to_owned()
    } else {
        path.to_owned()
    }
}

fn body_path(path: &str) -> &str {
    path
}

fn type_fits(value: &Value, schema: &Schema) -> bool {
    if schema.int_or_string {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match schema.ty.as_str() {
        "string" => value.is_string(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(schema: &Value, value: &Value) -> Vec<String> {
        let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
        let mut causes = Vec::new();
        check(value, &schema, "", &mut causes);
        causes
            .into_iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }

    #[test]
    fn each_failure_names_its_field() {
        let schema = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 0},
            "mode": {"type": "string", "enum": ["a", "b"]},
        }});
        assert_eq!(messages(&schema, &json!({})), ["size: Required value"]);
        assert_eq!(
            messages(&schema, &json!({"size": -1, "mode": "c"})),
            [
                "mode: Unsupported value: \"c\": supported values: \"a\", \"b\"",
                "size: Invalid value: -1: size in body should be greater than or equal to 0",
            ]
        );
        assert_eq!(
            messages(&schema, &json!({"size": "x"})),
            ["size: Invalid value: \"string\": size in body must be of type integer: \"string\""]
        );
    }
}

//! What the scale subresource shows of an object.

use serde_json::Value;

use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::go;
use windlass_apimachinery::object::at;

/// The dotted paths of the scale subresource.
#[derive(Clone, Debug)]
pub struct ScalePaths {
    /// Where the wanted number is.
    pub spec_replicas: String,
    /// Where the present number is.
    pub status_replicas: String,
    /// Where the selector is, as text.
    pub label_selector: Option<String>,
}

/// The numbers that the scale subresource shows must be numbers, and none of them negative; its
/// selector must be text.
pub(super) fn check(object: &Value, paths: &ScalePaths, with_spec: bool, causes: &mut Vec<Cause>) {
    let mut wrong = |path: &str, value: Value, why: &str| {
        causes.push(field::invalid(path, &value, why));
    };
    let accessor = |path: &str, found: &Value, wanted: &str| {
        format!(
            "{path} accessor error: {} is of the type {}, expected {wanted}",
            go::plus_v(found),
            go_type(found)
        )
    };
    let spec = with_spec.then_some(&paths.spec_replicas);
    for path in spec.into_iter().chain([&paths.status_replicas]) {
        let Some(found) = at(object, path) else {
            continue;
        };
        match found.as_i64() {
            Some(number) if number < 0 => {
                wrong(path, number.into(), "should be a non-negative integer");
            }
            Some(number) if number > i64::from(i32::MAX) => {
                let why = format!("should be less than or equal to {}", i32::MAX);
                wrong(path, number.into(), &why);
            }
            Some(_) => {}
            None => wrong(path, 0.into(), &accessor(path, found, "int64")),
        }
    }
    if let Some(path) = &paths.label_selector
        && let Some(found) = at(object, path)
        && !found.is_string()
    {
        wrong(path, "".into(), &accessor(path, found, "string"));
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

//! Schemas of CRDs in the older form, which knows less: what it cannot say is left out, so that
//! clients let it through.

use serde_json::{Map, Value};

/// Turns a schema into its older form.
pub(super) fn to_v2(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    // Of these the older form has none, or clients stumble over it.
    for key in [
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "default",
        "example",
        "externalDocs",
    ] {
        map.remove(key);
    }
    let nullable = map.remove("nullable") == Some(Value::Bool(true));
    let preserves = map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if nullable {
        map.remove("type");
    }
    if nullable || preserves {
        map.remove("items");
        map.remove("properties");
    }
    let is = |map: &Map<String, Value>, ty: &str| map.get("type").is_some_and(|found| found == ty);
    if is(map, "array") && !map.contains_key("items") {
        map.remove("type");
    }
    if preserves && is(map, "object") {
        map.remove("type");
    }
    forget_required(map);
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            to_v2(inner);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(to_v2);
    }
}

/// What may be null is not required, as the older form has it.
fn forget_required(map: &mut Map<String, Value>) {
    let nullable = |schema: &Value| schema["nullable"] == Value::Bool(true);
    if map.get("additionalProperties").is_some_and(nullable) {
        map.remove("required");
        return;
    }
    let Some(Value::Object(properties)) = map.get("properties") else {
        return;
    };
    let names: Vec<String> = properties
        .iter()
        .filter(|(_, schema)| nullable(schema))
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(Value::Array(required)) = map.get_mut("required") {
        required.retain(|name| !names.iter().any(|found| name == found.as_str()));
        if required.is_empty() {
            map.remove("required");
        }
    }
}

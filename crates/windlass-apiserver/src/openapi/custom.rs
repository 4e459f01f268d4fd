//! Schemas of CRDs in the older form, which knows less: what it cannot say is left out, so that
//! clients let it through.

use serde_json::{Map, Value, json};

/// Says what extensions mean: of a number or a text that it is either, and of an object inside of
/// another what it has.
pub(super) fn unfold(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        say_either(map);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            unfold(inner);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(unfold);
    }
    if map.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        embed(map);
    }
}

/// An object inside of another has what every object has.
fn embed(map: &mut Map<String, Value>) {
    let metadata = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    properties["metadata"] = json!({"allOf": [{"$ref": metadata}]});
    let required = map.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|found| found == name) {
                required.push(name.into());
            }
        }
    }
}

fn say_either(map: &mut Map<String, Value>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let says = |any: Option<&Value>| any.is_some_and(|any| *any == either);
    let first = map.get("allOf").and_then(|all| all.get(0));
    if says(map.get("anyOf")) || says(first.and_then(|first| first.get("anyOf"))) {
        return;
    }
    if !map.contains_key("anyOf") {
        map.insert("anyOf".into(), either);
        return;
    }
    let all = map.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.insert(0, json!({"anyOf": either}));
    }
}

/// Names the fields that selectors may name, if there are any.
pub(super) fn say_selectable(schema: &mut Value, selectable: &[String]) {
    if !selectable.is_empty() {
        let fields = selectable.iter().map(|field| json!({"fieldPath": field}));
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
}

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

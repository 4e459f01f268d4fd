//! Definitions of kinds, finished: what `kube`'s derive makes of a type becomes what controller-gen
//! writes for the same type.
//!
//! - The schema names `apiVersion`, `kind` and `metadata`, and the definition its list kind.
//! - Formats are those `OpenAPI` knows: Rust's other integers become `int32` or `int64` with bounds,
//!   so that the API server refuses what the operator could not decode.
//! - Values of any type are `x-kubernetes-preserve-unknown-fields`, instead of a schema that says
//!   nothing and is not structural.
//! - Conditions have the bounds every Kubernetes client expects of them, and are merged by type.
//!
//! An optional field stays `nullable`: Rust writes `null` for a `None` unless told otherwise, and
//! the API server must take it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
};
use serde_json::{Map, Value, json};

/// How the derive describes the whole object: not worth showing to anybody.
const DERIVED: &str = "Auto-generated derived type";
/// Values of any type.
const ANY: &str = "x-kubernetes-preserve-unknown-fields";

/// The definition as it shall be installed.
#[must_use]
pub fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let names = &mut crd.spec.names;
    let list_kind = format!("{}List", names.kind);
    names.list_kind.get_or_insert(list_kind);
    let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_some_and(Vec::is_empty);
    if is_empty(&names.categories) {
        names.categories = None;
    }
    if is_empty(&names.short_names) {
        names.short_names = None;
    }
    for version in &mut crd.spec.versions {
        finish_version(version);
    }
    crd
}

fn finish_version(version: &mut CustomResourceDefinitionVersion) {
    let columns = &mut version.additional_printer_columns;
    if columns.as_ref().is_some_and(Vec::is_empty) {
        *columns = None;
    }
    let fields = &mut version.selectable_fields;
    if fields.as_ref().is_some_and(Vec::is_empty) {
        *fields = None;
    }
    let schema = version.schema.as_mut();
    let Some(schema) = schema.and_then(|validation| validation.open_api_v3_schema.as_mut()) else {
        return;
    };
    let Ok(Value::Object(mut root)) = serde_json::to_value(&*schema) else {
        return;
    };
    finish_root(&mut root);
    each_schema(&mut root, &mut |schema| {
        finish_number(schema);
        finish_any(schema);
        finish_conditions(schema);
    });
    if let Ok(finished) = serde_json::from_value::<JSONSchemaProps>(Value::Object(root)) {
        *schema = finished;
    }
}

fn finish_root(root: &mut Map<String, Value>) {
    root.remove("title");
    let is_derived = |text: &Value| text.as_str().is_some_and(|text| text.starts_with(DERIVED));
    if root.get("description").is_some_and(is_derived) {
        let of_spec = root["properties"]["spec"].get("description").cloned();
        match of_spec {
            Some(text) => root.insert("description".to_owned(), text),
            None => root.remove("description"),
        };
    }
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    for (name, kind) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        if let Some(properties) = properties.as_object_mut() {
            properties
                .entry(name)
                .or_insert_with(|| json!({ "type": kind }));
        }
    }
}

/// Calls `visit` for every schema, the inner ones first.
fn each_schema(schema: &mut Map<String, Value>, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    for key in ["properties", "patternProperties", "definitions"] {
        let inner = schema.get_mut(key).and_then(Value::as_object_mut);
        for inner in inner.into_iter().flat_map(Map::values_mut) {
            if let Some(inner) = inner.as_object_mut() {
                each_schema(inner, visit);
            }
        }
    }
    for key in ["items", "additionalProperties", "not"] {
        if let Some(inner) = schema.get_mut(key).and_then(Value::as_object_mut) {
            each_schema(inner, visit);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let inner = schema.get_mut(key).and_then(Value::as_array_mut);
        for inner in inner.into_iter().flatten() {
            if let Some(inner) = inner.as_object_mut() {
                each_schema(inner, visit);
            }
        }
    }
    visit(schema);
}

/// Formats of Rust's integers that `OpenAPI` does not know, with what it has instead, and their bounds.
const INTEGERS: [(&str, &str, Option<i64>, Option<i64>); 8] = [
    ("int8", "int32", Some(i8::MIN as i64), Some(i8::MAX as i64)),
    (
        "int16",
        "int32",
        Some(i16::MIN as i64),
        Some(i16::MAX as i64),
    ),
    ("uint8", "int32", Some(0), Some(u8::MAX as i64)),
    ("uint16", "int32", Some(0), Some(u16::MAX as i64)),
    ("uint32", "int64", Some(0), Some(u32::MAX as i64)),
    ("uint64", "int64", Some(0), None),
    ("uint", "int64", Some(0), None),
    ("int", "int64", None, None),
];

fn finish_number(schema: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str);
    // `double` says nothing: every number is one.
    if format == Some("double") && schema.get("type") == Some(&json!("number")) {
        schema.remove("format");
        return;
    }
    let Some(&(_, format, least, most)) = INTEGERS.iter().find(|known| Some(known.0) == format)
    else {
        return;
    };
    schema.insert("format".to_owned(), format.into());
    for (key, bound) in [("minimum", least), ("maximum", most)] {
        if let Some(bound) = bound {
            schema.entry(key).or_insert_with(|| bound.into());
        }
    }
}

/// Whether a schema says nothing about the type of its values.
fn says_nothing(schema: &Map<String, Value>) -> bool {
    const SAYS: [&str; 10] = [
        "type",
        "$ref",
        "properties",
        "additionalProperties",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "enum",
        "x-kubernetes-int-or-string",
    ];
    !SAYS.iter().any(|key| schema.contains_key(*key))
}

fn finish_any(schema: &mut Map<String, Value>) {
    let any = || json!({ ANY: true });
    let finish = |inner: &mut Value| match inner {
        Value::Bool(true) => *inner = any(),
        Value::Object(schema) if says_nothing(schema) => {
            schema.insert(ANY.to_owned(), true.into());
        }
        _ => {}
    };
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .for_each(finish);
    for key in ["additionalProperties", "items"] {
        if let Some(inner) = schema.get_mut(key) {
            finish(inner);
        }
    }
    // Without it the API server drops what a map of a flattened field holds.
    if schema.contains_key(ANY) && schema.get("properties").is_some() {
        schema.remove("additionalProperties");
    }
}

/// The fields of a condition.
const CONDITION: [&str; 6] = [
    "lastTransitionTime",
    "message",
    "observedGeneration",
    "reason",
    "status",
    "type",
];

fn finish_conditions(schema: &mut Map<String, Value>) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let Some(conditions) = properties.and_then(|properties| properties.get_mut("conditions"))
    else {
        return;
    };
    let fields = conditions.pointer_mut("/items/properties");
    let Some(fields) = fields.and_then(Value::as_object_mut) else {
        return;
    };
    if fields.len() != CONDITION.len() || !CONDITION.iter().all(|name| fields.contains_key(*name)) {
        return;
    }
    let bounds = json!({
        "message": { "maxLength": 32768 },
        "observedGeneration": { "minimum": 0 },
        "reason": {
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": { "enum": ["True", "False", "Unknown"] },
        "type": {
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    });
    for (name, bounds) in bounds.as_object().into_iter().flatten() {
        let field = fields.get_mut(name).and_then(Value::as_object_mut);
        let bounds = bounds.as_object().into_iter().flatten();
        if let Some(field) = field {
            for (key, bound) in bounds {
                field.entry(key).or_insert_with(|| bound.clone());
            }
        }
    }
    if let Some(list) = conditions.as_object_mut()
        && !list.contains_key("x-kubernetes-list-type")
    {
        list.insert("x-kubernetes-list-type".to_owned(), "map".into());
        list.insert("x-kubernetes-list-map-keys".to_owned(), json!(["type"]));
    }
}

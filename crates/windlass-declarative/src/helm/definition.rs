//! The CRD of a chart: a schema made from its values.
//!
//! `values.schema.json` says what values may be; without it `values.yaml` shows their shape. Values
//! that are in neither are kept, a null is allowed everywhere because it takes a value away, and
//! nothing has a default: defaults are the chart's, and change with it.

use serde_json::{Map, Value, json};
use windlass_charts::Chart;

use super::comments;

/// How deeply references of a schema are followed.
const MAX_DEPTH: usize = 40;
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The kind that a chart gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub kind: String,
    /// Its resource.
    pub plural: String,
}

/// The CRD of a chart.
pub fn definition(names: &Names, chart: &Chart) -> Value {
    let Names {
        group,
        version,
        kind,
        plural,
    } = names;
    let mut spec = spec(chart);
    spec["description"] = json!(format!("Values of the chart {}.", chart.name()));
    let description = match chart.metadata.description.as_str() {
        "" => format!("A release of the chart {}.", chart.name()),
        description => description.to_owned(),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": "Namespaced",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {
                        "name": "Deployed",
                        "type": "string",
                        "jsonPath": ".status.conditions[?(@.type==\"Deployed\")].status",
                    },
                    {
                        "name": "Reason",
                        "type": "string",
                        "jsonPath": ".status.conditions[?(@.type==\"Deployed\")].reason",
                    },
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": description,
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec,
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn status() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "description": "What was observed of the release.",
        PRESERVE: true,
        "properties": {
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    PRESERVE: true,
                    "properties": {
                        "type": text(),
                        "status": text(),
                        "reason": text(),
                        "message": text(),
                        "lastTransitionTime": {"type": "string", "format": "date-time"},
                    },
                },
            },
            "deployedRelease": {
                "type": "object",
                PRESERVE: true,
                "properties": {"name": text(), "manifest": text()},
            },
        },
    })
}

/// The schema of the values of a chart.
pub fn spec(chart: &Chart) -> Value {
    let schema = chart
        .schema
        .as_ref()
        .and_then(|schema| serde_json::from_slice::<Value>(schema).ok());
    let mut spec = match &schema {
        Some(schema) => convert(schema, schema, 0),
        None => json!({"type": "object", "nullable": true, PRESERVE: true}),
    };
    if spec["type"] != "object" {
        spec = json!({"type": "object", PRESERVE: true});
    }
    shape(&mut spec, &Value::Object(chart.values.clone()));
    for (path, text) in comments::comments(&chart.values_text) {
        describe(&mut spec, &path, &text);
    }
    if let Some(spec) = spec.as_object_mut() {
        // A release without values has no spec, and not a null.
        spec.remove("nullable");
    }
    spec
}

/// What may be anything.
fn anything() -> Value {
    json!({PRESERVE: true})
}

/// A JSON schema as far as a CRD may say it.
fn convert(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return anything();
    };
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let target = reference
            .strip_prefix('#')
            .and_then(|path| root.pointer(path));
        return target.map_or_else(anything, |target| convert(target, root, depth + 1));
    }
    let mut types: Vec<&str> = match fields.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ if fields.contains_key("properties") => vec!["object"],
        _ => Vec::new(),
    };
    types.retain(|one| *one != "null");
    types.sort_unstable();
    let mut out = Map::new();
    match types.as_slice() {
        ["object"] => {
            out.insert("type".to_owned(), json!("object"));
            let properties = fields.get("properties").and_then(Value::as_object);
            if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
                let converted: Map<String, Value> = properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), convert(schema, root, depth + 1)))
                    .collect();
                out.insert("properties".to_owned(), Value::Object(converted));
            }
            out.insert(PRESERVE.to_owned(), json!(true));
        }
        ["array"] => {
            out.insert("type".to_owned(), json!("array"));
            let items = match fields.get("items") {
                Some(items @ Value::Object(_)) => convert(items, root, depth + 1),
                _ => anything(),
            };
            out.insert("items".to_owned(), items);
            copy(fields, &mut out, &["minItems", "maxItems"]);
        }
        ["integer", "string"] => {
            out.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
        }
        [one @ ("string" | "integer" | "number" | "boolean")] => {
            out.insert("type".to_owned(), json!(one));
            copy(
                fields,
                &mut out,
                &["minLength", "maxLength", "minimum", "maximum", "multipleOf"],
            );
            // What looks ahead or back is not known to API servers.
            if let Some(Value::String(pattern)) = fields.get("pattern")
                && !["(?=", "(?!", "(?<"]
                    .iter()
                    .any(|unknown| pattern.contains(unknown))
            {
                out.insert("pattern".to_owned(), json!(pattern));
            }
            if let Some(Value::Array(choices)) = fields.get("enum") {
                let mut choices = choices.clone();
                if !choices.contains(&Value::Null) {
                    choices.push(Value::Null);
                }
                out.insert("enum".to_owned(), Value::Array(choices));
            }
        }
        _ => {
            out.insert(PRESERVE.to_owned(), json!(true));
        }
    }
    out.insert("nullable".to_owned(), json!(true));
    for name in ["description", "title"] {
        if let Some(Value::String(text)) = fields.get(name) {
            out.insert(name.to_owned(), json!(text));
        }
    }
    Value::Object(out)
}

fn copy(from: &Map<String, Value>, into: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if let Some(number @ Value::Number(_)) = from.get(*name) {
            into.insert((*name).to_owned(), number.clone());
        }
    }
}

/// Adds the values that a chart has and its schema does not name.
fn shape(schema: &mut Value, values: &Value) {
    let Value::Object(values) = values else {
        return;
    };
    if values.is_empty() || schema["type"] != "object" {
        return;
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    for (name, value) in values {
        let property = &mut schema["properties"][name];
        if property.is_null() {
            *property = like(value);
        }
        shape(property, value);
    }
}

/// The schema of what looks like a value. Texts and numbers may be either, as templates take both.
fn like(value: &Value) -> Value {
    match value {
        Value::Object(_) => json!({"type": "object", "nullable": true, PRESERVE: true}),
        Value::Array(_) => json!({"type": "array", "nullable": true, "items": anything()}),
        Value::Bool(_) => json!({"type": "boolean", "nullable": true}),
        Value::Null | Value::Number(_) | Value::String(_) => anything(),
    }
}

/// Describes the value at a path, unless its schema does.
fn describe(schema: &mut Value, path: &[String], text: &str) {
    let mut schema = schema;
    for name in path {
        match schema
            .get_mut("properties")
            .and_then(|all| all.get_mut(name))
        {
            Some(inner) => schema = inner,
            None => return,
        }
    }
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("description").or_insert_with(|| json!(text));
    }
}

#[cfg(test)]
mod tests {
    use windlass_charts::File;

    use super::*;

    fn chart(values: &str, schema: Option<&str>) -> Chart {
        let file = |name: &str, text: &str| File {
            name: name.to_owned(),
            data: text.into(),
        };
        let mut files = vec![
            file(
                "Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\ndescription: A web server.\n",
            ),
            file("values.yaml", values),
        ];
        files.extend(schema.map(|schema| file("values.schema.json", schema)));
        Chart::from_files(files).unwrap()
    }

    #[test]
    fn values_give_shape_and_comments_descriptions() {
        let spec = spec(&chart(
            "# How many pods there are.\nreplicas: 2\nimage:\n  # -- The image's tag.\n  tag: \"\"\nservice: {enabled: true, ports: []}\n",
            None,
        ));
        assert_eq!(
            spec,
            json!({
                "type": "object",
                PRESERVE: true,
                "properties": {
                    "replicas": {PRESERVE: true, "description": "How many pods there are."},
                    "image": {"type": "object", "nullable": true, PRESERVE: true, "properties": {
                        "tag": {PRESERVE: true, "description": "The image's tag."},
                    }},
                    "service": {"type": "object", "nullable": true, PRESERVE: true, "properties": {
                        "enabled": {"type": "boolean", "nullable": true},
                        "ports": {"type": "array", "nullable": true, "items": {PRESERVE: true}},
                    }},
                },
            })
        );
    }

    #[test]
    fn schema_of_values_is_kept_as_far_as_a_crd_may_say_it() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["replicas"],
            "definitions": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}},
            "properties": {
                "replicas": {"type": ["integer", "null"], "default": 1},
                "port": {"$ref": "#/definitions/port"},
                "level": {"type": "string", "enum": ["a", "b"]},
                "either": {"oneOf": [{"type": "string"}]},
                "limit": {"type": ["string", "integer"]},
                "name": {"type": "string", "pattern": "^(?!x)"},
            },
        });
        let spec = spec(&chart("more: x\n", Some(&schema.to_string())));
        assert_eq!(
            spec["properties"],
            json!({
                "replicas": {"type": "integer", "nullable": true},
                "port": {"type": "integer", "minimum": 1, "maximum": 65535, "nullable": true},
                "level": {"type": "string", "enum": ["a", "b", null], "nullable": true},
                "either": {PRESERVE: true, "nullable": true},
                "limit": {"x-kubernetes-int-or-string": true, "nullable": true},
                "name": {"type": "string", "nullable": true},
                "more": {PRESERVE: true},
            })
        );
        assert!(spec.get("required").is_none());
    }
}

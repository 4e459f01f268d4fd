//! Objects made from schemas keep to them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use windlass_manifests::generate::{Generator, smallest};

fn definition() -> CustomResourceDefinition {
    let spec = json!({
        "type": "object",
        "required": ["name", "size"],
        "properties": {
            "name": { "type": "string", "pattern": "^[a-z]([-a-z0-9]{0,6}[a-z0-9])?$", "maxLength": 5 },
            "size": { "type": "integer", "format": "int32", "minimum": 3, "maximum": 12, "multipleOf": 3 },
            "ratio": { "type": "number", "minimum": 0, "maximum": 1 },
            "mode": { "type": "string", "enum": ["A", "B"] },
            "when": { "type": "string", "format": "date-time" },
            "maybe": { "type": "string", "nullable": true, "minLength": 2, "maxLength": 4 },
            "port": { "x-kubernetes-int-or-string": true },
            "tags": { "type": "array", "minItems": 1, "maxItems": 3, "x-kubernetes-list-type": "set", "items": { "type": "string", "enum": ["x", "y"] } },
            "parts": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"],
                "items": {
                    "type": "object",
                    "required": ["id"],
                    "properties": { "id": { "type": "integer", "minimum": 0, "maximum": 2 } },
                },
            },
            "labels": { "type": "object", "maxProperties": 2, "additionalProperties": { "type": "boolean" } },
            "source": {
                "type": "object",
                "properties": { "git": { "type": "string" }, "path": { "type": "string" } },
                "oneOf": [{ "required": ["git"] }, { "required": ["path"] }],
            },
            "extra": { "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    let definition = json!({
        "metadata": { "name": "things.demo.dev" },
        "spec": {
            "group": "demo.dev",
            "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "required": ["spec"], "properties": { "spec": spec } } },
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

#[test]
fn the_smallest_object_has_what_is_required_and_nothing_else() {
    let object = smallest(&definition(), "v1", "sample").unwrap();
    assert_eq!(object["apiVersion"], "demo.dev/v1");
    assert_eq!(object["kind"], "Thing");
    let fields: Vec<&String> = object["spec"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "size"]);
    assert_eq!(object["spec"]["size"], 3);
    assert_eq!(smallest(&definition(), "v2", "sample"), None);
}

#[test]
fn a_seed_gives_the_same_objects_again_and_every_field_appears() {
    let objects = |seed| {
        let mut generator = Generator::new(seed);
        let object = |_| generator.object(&definition(), "v1", "x").unwrap();
        (0..50).map(object).collect::<Vec<Value>>()
    };
    assert_eq!(objects(7), objects(7));
    assert_ne!(objects(7), objects(8));
    let definition = serde_json::to_value(definition()).unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let objects = objects(7);
    for field in definition
        .pointer(schema)
        .unwrap()
        .as_object()
        .unwrap()
        .keys()
    {
        let with = objects
            .iter()
            .filter(|one| one["spec"].get(field).is_some());
        assert!((10..=50).contains(&with.count()), "{field}");
    }
}

proptest! {
    #[test]
    fn random_objects_keep_to_their_schema(seed: u64) {
        let object = Generator::new(seed).object(&definition(), "v1", "x").unwrap();
        let spec = &object["spec"];
        let name = spec["name"].as_str().unwrap();
        let pattern = Regex::new("^[a-z]([-a-z0-9]{0,6}[a-z0-9])?$").unwrap();
        prop_assert!(pattern.is_match(name), "{}", name);
        prop_assert!(name.len() <= 5, "{name}");
        let size = spec["size"].as_i64().unwrap();
        prop_assert!((3..=12).contains(&size) && size % 3 == 0, "{size}");
        if let Some(ratio) = spec.get("ratio") {
            prop_assert!((0.0..=1.0).contains(&ratio.as_f64().unwrap()));
        }
        if let Some(maybe) = spec.get("maybe").and_then(Value::as_str) {
            prop_assert!((2..=4).contains(&maybe.chars().count()), "{maybe}");
        }
        if let Some(tags) = spec.get("tags").and_then(Value::as_array) {
            prop_assert!((1..=2).contains(&tags.len()));
            prop_assert!(tags.len() == 1 || tags[0] != tags[1]);
        }
        if let Some(parts) = spec.get("parts").and_then(Value::as_array) {
            let mut ids: Vec<i64> = parts.iter().map(|part| part["id"].as_i64().unwrap()).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), parts.len());
        }
        if let Some(labels) = spec.get("labels").and_then(Value::as_object) {
            prop_assert!(labels.len() <= 2 && labels.values().all(Value::is_boolean));
        }
        if let Some(source) = spec.get("source").and_then(Value::as_object) {
            prop_assert_eq!(source.len(), 1);
        }
    }
}

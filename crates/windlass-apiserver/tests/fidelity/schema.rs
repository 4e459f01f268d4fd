//! Random structural schemas, and values for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::kinds::Kind;

const NAMES: &[&str] = &["size", "mode", "items", "note", "level"];
const DEEP: usize = 3;

/// A random definition and the kind it defines. The definition's names hold `group`, so that
/// several can be in one cluster.
pub(crate) fn definition(dice: &mut Dice, group: &str) -> (Value, Kind) {
    let spec = object(dice, DEEP, true);
    let status = object(dice, 1, false);
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
    });
    let has_status = dice.percent(70);
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    if dice.percent(30) {
        version["additionalPrinterColumns"] = json!([
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]);
    }
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version],
        },
    });
    let spec =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let status =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let kind = Kind {
        plural: "things".into(),
        api: format!("{group}/v1"),
        kind: "Thing".into(),
        cluster: false,
        scale: false,
        base: json!({"spec": valid(dice, spec)}),
        tweaks: tweaks(dice, "/spec", spec),
        status_tweaks: if has_status {
            tweaks(dice, "/status", status)
        } else {
            BTreeMap::new()
        },
    };
    (definition, kind)
}

fn object(dice: &mut Dice, depth: usize, with_defaults: bool) -> Value {
    let mut properties = Map::new();
    for _ in 0..=dice.below(4) {
        let name = *dice.one(NAMES);
        properties.insert(
            name.to_owned(),
            any(dice, depth.saturating_sub(1), with_defaults),
        );
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if dice.percent(20) {
        let names: Vec<&String> = schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .collect();
        let required = json!([names[dice.below(names.len())]]);
        schema["required"] = required;
    }
    // Within an object below it, kube-apiserver keeps what is applied and unknown where nobody sees
    // it: see `docs/fidelity.md`.
    let holds_objects = schema["properties"].to_string().contains("\"object\"");
    if dice.percent(10) && !holds_objects {
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if dice.percent(10) {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn any(dice: &mut Dice, depth: usize, with_defaults: bool) -> Value {
    let sort = if depth == 0 {
        dice.below(5)
    } else {
        dice.below(9)
    };
    let mut schema = match sort {
        0 => string(dice),
        1 => integer(dice),
        2 => json!({"type": "boolean"}),
        3 => json!({"x-kubernetes-int-or-string": true}),
        4 => json!({"type": "number", "minimum": 0.5}),
        5 => object(dice, depth, with_defaults),
        6 => json!({"type": "object", "additionalProperties": any(dice, depth - 1, false)}),
        _ => array(dice, depth),
    };
    if dice.percent(10) {
        schema["nullable"] = true.into();
    }
    if with_defaults && dice.percent(20) {
        schema["default"] = valid(dice, &schema);
    }
    schema
}

fn string(dice: &mut Dice) -> Value {
    match dice.below(5) {
        0 => json!({"type": "string", "enum": ["fast", "slow"]}),
        1 => json!({"type": "string", "minLength": 2, "maxLength": 4}),
        2 => json!({"type": "string", "pattern": "^[a-z]+$"}),
        3 => {
            json!({"type": "string", "format": *dice.one(&["date-time", "uuid", "ipv4", "byte", "email"])})
        }
        _ => json!({"type": "string"}),
    }
}

fn integer(dice: &mut Dice) -> Value {
    match dice.below(4) {
        0 => json!({"type": "integer", "minimum": 0, "maximum": 10}),
        1 => json!({"type": "integer", "multipleOf": 2}),
        2 => json!({"type": "integer", "format": *dice.one(&["int32", "int64"])}),
        _ => json!({"type": "integer"}),
    }
}

fn array(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(3) {
        0 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        1 => json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string"}, "value": any(dice, depth - 1, false),
            }},
        }),
        _ => {
            let mut schema = json!({"type": "array", "items": any(dice, depth - 1, false)});
            if dice.percent(30) {
                schema["maxItems"] = 2.into();
            }
            schema
        }
    }
}

/// A value that the schema allows.
pub(crate) fn valid(dice: &mut Dice, schema: &Value) -> Value {
    if let Some(Value::Array(all)) = schema.get("enum") {
        return dice.one(all).clone();
    }
    match schema["type"].as_str() {
        Some("string") => match schema["format"].as_str() {
            Some("date-time") => "2026-01-02T03:04:05Z".into(),
            Some("uuid") => "0f0f0f0f-1111-4222-8333-444444444444".into(),
            Some("ipv4") => "10.0.0.1".into(),
            Some("byte") => "YWJj".into(),
            Some("email") => "a@example.com".into(),
            _ => (*dice.one(&["ab", "abc", "xyz"])).into(),
        },
        Some("integer") => (*dice.one(&[0, 2, 4])).into(),
        Some("number") => (*dice.one(&[0.5, 1.5, 2.0])).into(),
        Some("boolean") => dice.percent(50).into(),
        Some("array") => {
            let items = &schema["items"];
            match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => json!(["x", "y"][..dice.below(3)]),
                Some("map") => (0..dice.below(3))
                    .map(|at| {
                        let mut item = valid(dice, items);
                        item["id"] = ["p", "q"][at].into();
                        item
                    })
                    .collect(),
                _ => (0..dice.below(3)).map(|_| valid(dice, items)).collect(),
            }
        }
        Some("object") => {
            let mut map = Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let required = schema["required"]
                    .as_array()
                    .is_some_and(|all| all.contains(&name.as_str().into()));
                if required || dice.percent(60) {
                    map.insert(name.clone(), valid(dice, property));
                }
            }
            if let Some(of) = schema.get("additionalProperties") {
                map.insert("k".into(), valid(dice, of));
            }
            map.into()
        }
        _ => dice.one(&[json!("50%"), json!(3)]).clone(),
    }
}

/// Values to try at the places of a schema: allowed ones, and wrong ones of all sorts.
fn tweaks(dice: &mut Dice, at: &str, schema: &Value) -> BTreeMap<String, Vec<Value>> {
    let wrong = [
        json!(null),
        json!("x"),
        json!(11),
        json!(-1),
        json!(true),
        json!([]),
        json!({}),
        json!(1.5),
        json!(["x", "x"]),
        json!([{"id": "p"}, {"id": "p"}]),
        json!([{"value": 1}]),
    ];
    let mut out = BTreeMap::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{at}/{name}");
        let mut values: Vec<Value> = (0..3).map(|_| valid(dice, property)).collect();
        values.push(dice.one(&wrong).clone());
        if dice.percent(50) {
            values.push(dice.one(&wrong).clone());
        }
        out.extend(tweaks(dice, &place, property));
        out.insert(place, values);
    }
    out.insert(
        format!("{at}/unknown"),
        vec![json!(1), json!({"deep": [1]})],
    );
    out
}

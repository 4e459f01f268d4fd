//! Our definitions mean what controller-gen's mean for the same type: `types.go` is the twin of the
//! type in `ship.rs`, and `scripts/controller-gen` had controller-gen write `ships.yaml` for it.

use std::collections::BTreeMap;

use serde_json::Value;

mod ship;

/// A definition without what differs and means the same:
/// - descriptions: the twin was written without them;
/// - `nullable`: Rust may write `null` where Go leaves a field out, and ours takes it;
/// - `anyOf` beside `x-kubernetes-int-or-string`: it says the same again;
/// - `required` fields with a default: the API server fills them in before it looks;
/// - who wrote it, and the order of enum values;
/// - numbers written as `3` or `3.0`.
fn meaning(mut definition: Value) -> Value {
    definition["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    let schema = &mut definition["spec"]["versions"][0]["schema"];
    plain(schema);
    definition
}

fn plain(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            if map.get("nullable").is_some_and(Value::is_boolean) {
                map.remove("nullable");
            }
            if map.contains_key("x-kubernetes-int-or-string") {
                map.remove("anyOf");
            }
            for values in ["enum", "required"] {
                if let Some(Value::Array(values)) = map.get_mut(values) {
                    values.retain(|value| !value.is_null());
                    values.sort_by_key(ToString::to_string);
                }
            }
            let properties = map.get("properties").cloned().unwrap_or_default();
            if let Some(Value::Array(required)) = map.get_mut("required") {
                required.retain(|name| properties[name.as_str().unwrap()]["default"].is_null());
                if required.is_empty() {
                    map.remove("required");
                }
            }
            map.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Number(number) => *schema = number.as_f64().unwrap().into(),
        _ => {}
    }
}

#[test]
fn the_definition_means_what_controller_gen_writes() {
    let operator = ship::operator();
    operator.check().unwrap();
    let ours = serde_json::to_value(&operator.crds()[0]).unwrap();
    let mut ours = meaning(ours);
    ours["apiVersion"] = "apiextensions.k8s.io/v1".into();
    ours["kind"] = "CustomResourceDefinition".into();
    let theirs: Value = serde_saphyr::from_str(include_str!("ships.yaml")).unwrap();
    let pretty = |value: &Value| serde_json::to_string_pretty(&sorted(value)).unwrap();
    let (ours, theirs) = (pretty(&ours), pretty(&meaning(theirs)));
    let mut differences = Vec::new();
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        if ours != theirs {
            differences.push(format!("ours {ours}\ntheirs {theirs}"));
        }
    }
    assert!(ours == theirs, "{}\n{ours}", differences.join("\n"));
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields: BTreeMap<_, _> = map
                .iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            serde_json::to_value(fields).unwrap()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        scalar => scalar.clone(),
    }
}

//! Sentences of single checks.

use super::*;
use serde_json::json;

fn messages(schema: &Value, value: &Value) -> Vec<String> {
    let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
    check(value, &schema, "", None)
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

#[test]
fn what_has_not_changed_is_not_complained_about() {
    let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "integer"},
    }}))
    .unwrap();
    let (old, new) = (json!({"a": "xx", "b": 1}), json!({"a": "xx", "b": 2}));
    let before = Correlated::new(&new, &old, &schema);
    assert_eq!(check(&new, &schema, "", Some(before)), []);
    assert_eq!(check(&new, &schema, "", None).len(), 1);
}

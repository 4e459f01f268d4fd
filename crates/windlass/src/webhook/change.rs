//! From what a function did to a typed object to a JSON patch of the object that was sent.
//!
//! A type may know fewer fields than the API server. What it does not know must not be lost, so
//! only the difference between the typed object before and after is carried over to the original.

use serde_json::{Map, Value, json};

/// The original with the difference between `before` and `after`.
pub(super) fn carry(original: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return original.clone();
    }
    match (original, before, after) {
        (Value::Object(original), Value::Object(before), Value::Object(after)) => {
            carry_map(original, before, after)
        }
        (Value::Array(original), Value::Array(before), Value::Array(after))
            if original.len() == before.len() =>
        {
            let same_length = before.len() == after.len();
            let items = after.iter().enumerate().map(|(place, item)| {
                let known = before.iter().position(|known| known == item);
                match known {
                    Some(known) => original[known].clone(),
                    None if same_length => carry(&original[place], &before[place], item),
                    None => item.clone(),
                }
            });
            items.collect()
        }
        _ => after.clone(),
    }
}

fn carry_map(
    original: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Value {
    let mut carried = original.clone();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        carried.remove(key);
    }
    for (key, value) in after {
        if before.get(key) == Some(value) {
            continue;
        }
        let value = match (original.get(key), before.get(key)) {
            (Some(original), Some(before)) => carry(original, before, value),
            _ => value.clone(),
        };
        carried.insert(key.clone(), value);
    }
    Value::Object(carried)
}

/// A JSON patch that makes `to` of `from`; lists are replaced as a whole.
pub(super) fn patch(from: &Value, to: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    differences(from, to, "", &mut operations);
    operations
}

fn differences(from: &Value, to: &Value, path: &str, operations: &mut Vec<Value>) {
    if from == to {
        return;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        operations.push(json!({"op": "replace", "path": path, "value": to}));
        return;
    };
    let below = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        operations.push(json!({"op": "remove", "path": below(key)}));
    }
    for (key, value) in to {
        match from.get(key) {
            Some(known) => differences(known, value, &below(key), operations),
            None => operations.push(json!({"op": "add", "path": below(key), "value": value})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_type_does_not_know_stays() {
        let original = json!({"new": 1, "spec": {"size": 1, "beyond": true}, "list": [{"name": "a", "beyond": 1}]});
        let before = json!({"spec": {"size": 1}, "list": [{"name": "a"}]});
        let after =
            json!({"spec": {"size": 2, "a/b": "c"}, "list": [{"name": "b"}, {"name": "a"}]});
        let carried = carry(&original, &before, &after);
        assert_eq!(
            carried,
            json!({"new": 1, "spec": {"size": 2, "beyond": true, "a/b": "c"},
                "list": [{"name": "b"}, {"name": "a", "beyond": 1}]})
        );
        let operations = patch(&original, &carried);
        assert_eq!(operations.len(), 3);
        assert!(operations.contains(&json!({"op": "add", "path": "/spec/a~1b", "value": "c"})));
        assert!(patch(&carried, &carried).is_empty());
    }
}

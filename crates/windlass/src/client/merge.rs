//! JSON merge patches: the smallest one, or none.

use serde_json::{Map, Value};

/// The merge patch that turns `current` into `wanted`; none if there is nothing to change. A null
/// in `wanted` is the same as an absent field.
pub(crate) fn diff(current: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(have), Value::Object(want)) = (current, wanted) else {
        return (current != wanted).then(|| wanted.clone());
    };
    let mut patch = Map::new();
    for (name, want) in want.iter().filter(|(_, want)| !want.is_null()) {
        match have.get(name) {
            Some(have) => {
                if let Some(below) = diff(have, want) {
                    patch.insert(name.clone(), below);
                }
            }
            None => {
                patch.insert(name.clone(), without_nulls(want.clone()));
            }
        }
    }
    for (name, have) in have {
        if !have.is_null() && want.get(name).is_none_or(Value::is_null) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Whether a merge patch would change anything.
pub(crate) fn changes(current: &Value, patch: &Value) -> bool {
    match (current, patch) {
        (Value::Object(have), Value::Object(patch)) => patch.iter().any(|(name, patch)| match have
            .get(name)
            .filter(|have| !have.is_null())
        {
            Some(have) => patch.is_null() || changes(have, patch),
            None => !patch.is_null(),
        }),
        (current, patch) => current != patch,
    }
}

/// The value without fields that are null: fields of a type that are not set.
pub(crate) fn without_nulls(mut value: Value) -> Value {
    drop_nulls(&mut value);
    value
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_sent() {
        let current = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1], "f": null});
        let wanted = json!({"a": 1, "b": {"c": 4}, "e": [1, 2], "g": {"h": null}});
        assert_eq!(
            diff(&current, &wanted),
            Some(json!({"b": {"c": 4, "d": null}, "e": [1, 2], "g": {}}))
        );
        assert_eq!(
            diff(
                &current,
                &json!({"a": 1, "b": {"d": 3, "c": 2}, "e": [1], "x": null})
            ),
            None
        );
    }

    #[test]
    fn an_idle_patch_is_recognised() {
        let current = json!({"a": {"b": 1}, "c": [1]});
        assert!(!changes(
            &current,
            &json!({"a": {"b": 1, "x": null}, "c": [1], "y": null})
        ));
        assert!(changes(&current, &json!({"a": {"b": 2}})));
        assert!(changes(&current, &json!({"a": null})));
        assert!(changes(&current, &json!({"d": {}})));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<u8>().prop_map(Value::from),
            "[a-c]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// RFC 7396, as a server does it.
    fn apply(target: &Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else {
            return patch.clone();
        };
        let mut result = target.as_object().cloned().unwrap_or_default();
        for (name, patch) in patch {
            if patch.is_null() {
                result.remove(name);
            } else {
                let below = apply(result.get(name).unwrap_or(&Value::Null), patch);
                result.insert(name.clone(), below);
            }
        }
        Value::Object(result)
    }

    proptest! {
        #[test]
        fn a_diff_leads_to_what_is_wanted(current in json_value(), wanted in json_value()) {
            if let Some(patch) = diff(&current, &wanted) {
                prop_assert!(changes(&current, &patch));
                prop_assert_eq!(apply(&current, &patch), wanted);
            } else {
                prop_assert_eq!(current, wanted);
            }
        }
    }
}

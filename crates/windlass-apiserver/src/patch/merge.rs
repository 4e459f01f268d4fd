//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use crate::steps::step;

/// Lays `patch` on `target`: null removes, objects merge, everything else replaces.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    step();
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                apply(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// The patch that turns `from` into `to`.
    fn diff(from: &Value, to: &Value) -> Value {
        match (from, to) {
            (Value::Object(from), Value::Object(to)) => {
                let mut out = Map::new();
                for key in from.keys().filter(|key| !to.contains_key(*key)) {
                    out.insert(key.clone(), Value::Null);
                }
                for (key, value) in to {
                    match from.get(key) {
                        Some(old) if old == value => {}
                        Some(old) => {
                            out.insert(key.clone(), diff(old, value));
                        }
                        None => {
                            out.insert(key.clone(), value.clone());
                        }
                    }
                }
                Value::Object(out)
            }
            _ => to.clone(),
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        let tree = leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[k-m]", inner, 0..3).prop_map(|map| json!(map)),
            ]
        });
        proptest::collection::btree_map("[k-m]", tree, 0..3).prop_map(|map| json!(map))
    }

    proptest! {
        #[test]
        fn merging_a_diff_gives_the_target(from in tree(), to in tree()) {
            let mut merged = from.clone();
            apply(&mut merged, &diff(&from, &to));
            prop_assert_eq!(merged, to);
        }
    }
}

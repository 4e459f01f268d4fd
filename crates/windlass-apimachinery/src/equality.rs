//! When two values are the same, though they are not written the same.

use serde_json::{Map, Value};

use crate::steps::step;

/// Whether two values are the same; of numbers, however they are written.
pub fn is_same(a: &Value, b: &Value) -> bool {
    step();
    match (a, b) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, a)| right.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

/// Whether two values of a built-in type mean the same: a list of nothing is no list.
pub fn means_the_same(a: &Value, b: &Value) -> bool {
    step();
    match (a, b) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| means_the_same(a, b))
        }
        (Value::Object(left), Value::Object(right)) => fields_mean_the_same(left, right),
        _ => is_same(a, b) || (is_nothing(a) && is_nothing(b)),
    }
}

/// The same for the fields of two objects. Each shared field is compared once: twice per level
/// would be 2^depth times at the bottom.
pub fn fields_mean_the_same(left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    let only_right = || right.iter().filter(|(key, _)| !left.contains_key(*key));
    left.iter().all(|(key, a)| match right.get(key) {
        Some(b) => means_the_same(a, b),
        None => is_nothing(a),
    }) && only_right().all(|(_, b)| is_nothing(b))
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_are_the_same_with_and_without_a_point() {
        assert!(is_same(&json!({"a": [2.0, 1.5]}), &json!({"a": [2, 1.5]})));
        assert!(!is_same(&json!([2.5]), &json!([2])));
        assert!(!is_same(&json!({"a": []}), &json!({})));
    }

    #[test]
    fn comparing_deep_objects_takes_one_step_per_value() {
        let deep = |depth| (0..depth).fold(json!(1), |below, _| json!({"a": below, "b": 2}));
        let (a, b) = (deep(60), deep(60));
        let (same, steps) = crate::steps::counted(|| means_the_same(&a, &b));
        assert!(same);
        // A leaf takes two: it is looked at, and compared.
        assert!(steps <= 2 * 121, "{steps} steps");
    }

    #[test]
    fn a_list_of_nothing_is_no_list() {
        assert!(means_the_same(
            &json!({"ports": []}),
            &json!({"ports": null})
        ));
        assert!(means_the_same(&json!({"a": {"b": []}}), &json!({"a": {}})));
        assert!(!means_the_same(&json!({"a": {}}), &json!({})));
        assert!(!means_the_same(&json!({"a": [1]}), &json!({})));
    }
}

//! Labels, and the selectors that choose by them.

use serde_json::{Map, Value};

use super::at::{At, Causes};
use crate::names;

/// The keys and values of a map of labels, which is told as a whole.
pub(crate) fn labels(at: &At<'_, '_>, causes: &mut Causes) {
    for (key, value) in at.value.as_object().into_iter().flatten() {
        for why in names::qualified_errors(key) {
            causes.push(at.invalid_value(key.as_str(), &why));
        }
        for why in names::label_value_errors(value.as_str().unwrap_or_default()) {
            causes.push(at.invalid_value(value.clone(), &why));
        }
    }
}

/// A label key, or anything that is named like one.
pub(crate) fn qualified(at: &At<'_, '_>, causes: &mut Causes) {
    let key = at.value.as_str().unwrap_or_default();
    at.complain(names::qualified_errors(key), causes);
}

/// A label selector, if there is one.
pub(crate) fn selector(at: &At<'_, '_>, causes: &mut Causes) {
    labels(&at.child("matchLabels"), causes);
    for expression in at.items("matchExpressions") {
        let values = expression.child("values");
        match expression.text("operator") {
            "In" | "NotIn" => {
                if expression.list("values").is_empty() {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    causes.push(values.required(why));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !expression.list("values").is_empty() {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    causes.push(values.forbidden(why));
                }
            }
            _ => causes.push(
                expression
                    .child("operator")
                    .invalid_text("not a valid selector operator"),
            ),
        }
        qualified(&expression.child("key"), causes);
        values_of(&expression, causes);
    }
}

/// The values of an expression, each at its place.
pub(crate) fn values_of(expression: &At<'_, '_>, causes: &mut Causes) {
    for value in expression.items("values") {
        let text = value.value.as_str().unwrap_or_default();
        value.complain(names::label_value_errors(text), causes);
    }
}

pub(crate) fn is_empty(selector: &Value) -> bool {
    let labels = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    labels.is_none_or(Map::is_empty) && expressions.is_none_or(Vec::is_empty)
}

/// Whether anything could be chosen by it: what is malformed cannot be used at all.
pub(crate) fn is_usable(selector: &Value) -> bool {
    let mut causes = Causes::new();
    self::selector(&At::root(selector, ""), &mut causes);
    causes.is_empty()
}

/// Whether a label selector matches; an absent one matches nothing.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array();
    equal
        .into_iter()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().flatten().all(|expression| {
            let found = labels.get(expression["key"].as_str().unwrap_or_default());
            let one_of = |value: &Value| {
                let values = expression["values"].as_array();
                values.is_some_and(|values| values.contains(value))
            };
            match expression["operator"].as_str() {
                Some("In") => found.is_some_and(one_of),
                Some("NotIn") => !found.is_some_and(one_of),
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_by_labels_and_expressions() {
        let labels = json!({"app": "a", "tier": "x"});
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        assert!(selects(&json!({"matchLabels": {"app": "a"}}), &labels));
        assert!(!selects(&json!({"matchLabels": {"app": "b"}}), &labels));
        assert!(selects(&expression("In", json!(["x", "y"])), &labels));
        assert!(!selects(&expression("NotIn", json!(["x"])), &labels));
        assert!(selects(&expression("Exists", Value::Null), &labels));
        assert!(!selects(&Value::Null, &labels));
    }
}

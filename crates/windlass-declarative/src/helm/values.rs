//! The values of a release: the spec of its custom resource, and what `watches.yaml` overrides.

use serde_json::Value;
use windlass_charts::{Values, values};

/// The values that a chart is rendered with for an object. The chart's own come beneath them.
pub fn values_of(parent: &Value, overrides: &Values) -> Result<Values, String> {
    let mut given = match &parent["spec"] {
        Value::Object(spec) => spec.clone(),
        Value::Null => Values::new(),
        other => return Err(format!("spec must be an object, not {other}")),
    };
    values::merge(&mut given, overrides.clone());
    Ok(given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overrides_win_over_spec_and_keep_the_rest() {
        let parent = json!({"spec": {"a": {"b": 1, "c": 2}, "d": [1]}});
        let overrides = json!({"a": {"b": "x"}, "d": "y"});
        let overrides = overrides.as_object().unwrap();
        assert_eq!(
            Value::Object(values_of(&parent, overrides).unwrap()),
            json!({"a": {"b": "x", "c": 2}, "d": "y"})
        );
        assert!(values_of(&json!({}), &Values::new()).unwrap().is_empty());
        assert!(values_of(&json!({"spec": 1}), &Values::new()).is_err());
    }
}

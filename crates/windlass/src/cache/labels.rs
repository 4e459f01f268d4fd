//! An object's labels, matched by the selectors of a client.

use kube::core::Expression;
pub(crate) use windlass_apimachinery::Labels;

/// Labels that a client's selector can be applied to.
pub(crate) trait MatchAll {
    /// Whether all expressions hold; an empty selector matches everything.
    fn match_all(&self, selector: &[Expression]) -> bool;
}

impl MatchAll for Labels {
    fn match_all(&self, selector: &[Expression]) -> bool {
        selector.iter().all(|expression| match expression {
            Expression::In(key, values) => {
                self.get(key).is_some_and(|value| values.contains(value))
            }
            Expression::NotIn(key, values) => {
                self.get(key).is_none_or(|value| !values.contains(value))
            }
            Expression::Equal(key, value) => self.get(key) == Some(value.as_str()),
            Expression::NotEqual(key, value) => self.get(key) != Some(value.as_str()),
            Expression::Exists(key) => self.get(key).is_some(),
            Expression::DoesNotExist(key) => self.get(key).is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_match_as_the_api_server_matches_them() {
        let labels = Labels::of_metadata(&json!({"labels": {"b": "2", "a": "1"}}));
        let holds = |expression: Expression| labels.match_all(&[expression]);
        assert!(holds(Expression::Equal("a".into(), "1".into())));
        assert!(!holds(Expression::Equal("c".into(), "1".into())));
        assert!(holds(Expression::NotEqual("c".into(), "1".into())));
        assert!(holds(Expression::In(
            "b".into(),
            ["1".into(), "2".into()].into()
        )));
        assert!(holds(Expression::NotIn("c".into(), ["1".into()].into())));
        assert!(!holds(Expression::NotIn("b".into(), ["2".into()].into())));
        assert!(holds(Expression::Exists("a".into())));
        assert!(!holds(Expression::DoesNotExist("a".into())));
        assert!(labels.match_all(&[]));
    }
}

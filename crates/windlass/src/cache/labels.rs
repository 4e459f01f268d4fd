//! [`Labels`]: an object's labels, kept small and matched by selectors.

use kube::core::Expression;
use serde_json::Value;

/// Labels in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    pub(crate) fn of(metadata: &Value) -> Self {
        let mut labels: Vec<(Box<str>, Box<str>)> = metadata
            .get("labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect();
        labels.sort_unstable();
        Self(labels.into())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let at = self
            .0
            .binary_search_by(|(have, _)| have.as_ref().cmp(key))
            .ok()?;
        Some(&self.0[at].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// Whether all expressions hold; an empty selector matches everything.
    pub(crate) fn match_all(&self, selector: &[Expression]) -> bool {
        selector.iter().all(|expression| match expression {
            Expression::In(key, values) => {
                self.get(key).is_some_and(|value| values.contains(value))
            }
            Expression::NotIn(key, values) => {
                self.get(key).is_none_or(|value| !values.contains(value))
            }
            Expression::Equal(key, value) => self.get(key) == Some(value),
            Expression::NotEqual(key, value) => self.get(key) != Some(value),
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
        let labels = Labels::of(&json!({"labels": {"b": "2", "a": "1"}}));
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

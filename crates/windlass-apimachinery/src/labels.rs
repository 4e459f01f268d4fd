//! The labels of a stored object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Labels by name. Objects have few, and many objects have some: a list in order takes a tenth of
/// the room of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// Those of an object; what is not text is none.
    pub fn of(labels: &Map<String, Value>) -> Self {
        let texts = labels
            .iter()
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
        let mut labels: Box<[_]> = texts.collect();
        labels.sort_unstable();
        Self(labels)
    }

    /// Those in `metadata`.
    pub fn of_metadata(metadata: &Value) -> Self {
        metadata
            .get("labels")
            .and_then(Value::as_object)
            .map(Self::of)
            .unwrap_or_default()
    }

    /// Each label and its value, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        found.ok().map(|at| &*self.0[at].1)
    }
}

/// Anything that has labels a selector can ask for.
pub trait Labelled {
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labelled for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

impl Labelled for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_label_is_found_and_nothing_else() {
        let object = json!({"b": "2", "a": "1", "c/d": "", "n": 3});
        let labels = Labels::of(object.as_object().unwrap());
        assert_eq!(labels.get("a"), Some("1"));
        assert_eq!(labels.get("b"), Some("2"));
        assert_eq!(labels.get("c/d"), Some(""));
        assert_eq!((labels.get("n"), labels.get("d")), (None, None));
    }
}

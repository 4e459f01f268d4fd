//! One step of a field path, in the four forms `managedFields` writes.

use std::fmt;

use serde_json::{Map, Value};

/// A step into an object. Keys and values are kept as canonical JSON, so that they order and compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathElement {
    /// `f:name`: a field, or an entry of a map.
    Field(String),
    /// `k:{"name":"x"}`: the item of a list with these key fields.
    Key(String),
    /// `v:"x"`: this value in a set.
    Value(String),
    /// `i:3`: a position.
    Index(u64),
}

impl PathElement {
    /// The item of a keyed list; a missing key field that has a default is that default.
    pub(crate) fn key(fields: Map<String, Value>) -> Self {
        // serde_json's map is sorted, so equal keys give equal text.
        Self::Key(Value::Object(fields).to_string())
    }

    /// Reads the form used in `fieldsV1`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (form, rest) = text.split_once(':')?;
        match form {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => match serde_json::from_str(rest).ok()? {
                Value::Object(fields) => Some(Self::key(fields)),
                _ => None,
            },
            "v" => Some(Self::Value(
                serde_json::from_str::<Value>(rest).ok()?.to_string(),
            )),
            "i" => Some(Self::Index(rest.parse().ok()?)),
            _ => None,
        }
    }

    /// The form used in `fieldsV1`.
    pub(crate) fn wire(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => format!("k:{fields}"),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// The form used in conflict messages: `.spec.containers[name="app"].image`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
                let shown: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", shown.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

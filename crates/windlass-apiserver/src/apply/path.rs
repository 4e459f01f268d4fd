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

    /// The same of the one field that most lists have as their key, without a map in between.
    pub(crate) fn key_of_one(name: &str, value: &Value) -> Self {
        let mut text = Vec::with_capacity(name.len() + 32);
        text.push(b'{');
        write_json(&mut text, name);
        text.push(b':');
        write_json(&mut text, value);
        text.push(b'}');
        Self::Key(String::from_utf8(text).unwrap_or_default())
    }

    /// The item of a set.
    pub(crate) fn value(item: &Value) -> Self {
        let mut text = Vec::with_capacity(32);
        write_json(&mut text, item);
        Self::Value(String::from_utf8(text).unwrap_or_default())
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

    /// How many bytes the form used in `fieldsV1` has at least, in quotes.
    pub(crate) fn least_bytes(&self) -> usize {
        let escaped = |text: &str| {
            let quotes = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
            text.len() + quotes.count()
        };
        // The form, a colon and two quotes.
        4 + match self {
            Self::Field(name) => name.len(),
            Self::Key(text) | Self::Value(text) => escaped(text),
            Self::Index(_) => 1,
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

/// JSON in memory: nothing can fail.
fn write_json<T: serde::Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(text, value);
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

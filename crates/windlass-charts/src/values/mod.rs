//! Values: what a chart is rendered with.
//!
//! Later sources win over earlier ones: the chart's own values, those of charts it is part of, and
//! what the user gives. A null takes a key away.

use serde_json::{Map, Value};

use crate::yaml;

pub(crate) mod coalesce;
pub(crate) mod dependencies;
mod set;

pub use set::{set, set_string};

/// Values by their names.
pub type Values = Map<String, Value>;

/// Reads the documents of a file of values, of which later ones win.
pub fn read(text: &[u8]) -> Result<Values, String> {
    let mut values = Values::new();
    for document in documents(text) {
        let found = yaml::read(document).and_then(yaml::to_json);
        match found.map_err(|why| format!("cannot unmarshal yaml document: {why}"))? {
            Value::Object(map) => merge(&mut values, map),
            Value::Null => {}
            other => {
                return Err(format!(
                    "cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    crate::json::kind(&other)
                ));
            }
        }
    }
    Ok(values)
}

/// The documents of a text, split at lines that begin with three dashes.
fn documents(text: &[u8]) -> Vec<&[u8]> {
    let mut documents = Vec::new();
    let mut from = 0;
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let is_separator = line
            .strip_prefix(b"---")
            .is_some_and(|rest| rest.trim_ascii().is_empty());
        if is_separator {
            if at > from {
                documents.push(&text[from..at]);
            }
            from = at + line.len();
        }
        at += line.len();
    }
    documents.push(&text[from..]);
    documents
}

/// Adds values to others, over which they win.
pub fn merge(into: &mut Values, from: Values) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// The table at a path with dots.
pub(crate) fn table<'a>(values: &'a Values, path: &str) -> Option<&'a Values> {
    path.split('.')
        .try_fold(values, |table, name| match table.get(name) {
            Some(Value::Object(inner)) => Some(inner),
            _ => None,
        })
}

/// The value at a path with dots, if it is no table.
pub(crate) fn path<'a>(values: &'a Values, path: &str) -> Option<&'a Value> {
    let (within, name) = match path.rsplit_once('.') {
        Some((parent, name)) => (table(values, parent)?, name),
        None => (values, path),
    };
    within.get(name).filter(|value| !value.is_object())
}

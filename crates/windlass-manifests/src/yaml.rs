//! Objects as YAML documents.

use serde::Serialize;
use serde_json::{Map, Value};

/// What can go wrong when a manifest is written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object has a field that JSON cannot express.
    #[error("cannot encode a manifest: {0}")]
    Encode(#[from] serde_json::Error),
    /// The API server would refuse a kind.
    #[error("the kinds of this operator cannot be installed:\n{0}")]
    Flawed(String),
    /// The YAML writer failed.
    #[error("cannot write {name} as yaml: {message}")]
    Write {
        /// The object.
        name: String,
        /// What the writer reported.
        message: String,
    },
}

/// One object of an installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// The manifest of an object.
    pub fn of(object: &impl Serialize) -> Result<Self, Error> {
        Ok(Self(ordered(serde_json::to_value(object)?, true)))
    }

    /// The object as JSON.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// The manifests as one stream of YAML documents.
pub fn to_yaml(manifests: &[Manifest]) -> Result<String, Error> {
    let mut text = String::new();
    for Manifest(value) in manifests {
        let document = serde_saphyr::to_string(value).map_err(|error| Error::Write {
            name: value["metadata"]["name"].to_string(),
            message: error.to_string(),
        })?;
        text.push_str("---\n");
        text.push_str(document.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// Fields in the order people expect at the top, and by name below; without nulls. The order is
/// made here because whether JSON maps keep theirs depends on how the program was built.
fn ordered(value: Value, top: bool) -> Value {
    const FIRST: [&str; 3] = ["apiVersion", "kind", "metadata"];
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            entries.sort_by_key(|(key, _)| {
                let place = FIRST.iter().position(|first| first == key).filter(|_| top);
                (place.unwrap_or(FIRST.len()), key.clone())
            });
            let entries = entries
                .into_iter()
                .map(|(key, value)| (key, ordered(value, false)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| ordered(item, false)).collect())
        }
        scalar => scalar,
    }
}

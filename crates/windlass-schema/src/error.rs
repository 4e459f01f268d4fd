//! Why an object, or a path within one, does not fit a schema.

use serde_json::Value;
use windlass_apimachinery::go;

use crate::prune::TooMuch;

/// Why an object cannot be read as one of its definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The kind or the API version of an object inside of another is no text.
    #[error("{at}: Invalid value: {value}: must be a string")]
    NotText {
        /// Where it is.
        at: String,
        /// What stands there.
        value: Value,
    },
    /// The metadata of an object inside of another is no metadata.
    #[error("{at}: Invalid value: {}: {why}", shown(value))]
    Metadata {
        /// Where it is.
        at: String,
        /// What stands there.
        value: Value,
        /// Why it cannot be read.
        why: MetadataError,
    },
    /// It gets more defaults than an object may have.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

/// Why metadata cannot be read, in the words of the one that read it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MetadataError(String);

impl MetadataError {
    /// What another error says.
    pub fn of(error: &dyn std::error::Error) -> Self {
        Self(error.to_string())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(map) => go::metadata_json(map),
        other => other.to_string(),
    }
}

/// Why a path leads to no field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("array notation is not allowed")]
    Brackets,
    #[error("unexpected end of JSON path")]
    End,
    #[error("expected single quoted string but got {0}")]
    NotQuoted(String),
    #[error("expected ] but got {0}")]
    NotClosed(String),
    #[error("expected [ or . but got: {0}")]
    NoStep(String),
    #[error("does not refer to a valid field")]
    Nowhere,
    #[error("invalid string literal: invalid escape char \\{0}")]
    Escape(String),
}

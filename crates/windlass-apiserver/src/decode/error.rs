//! Why an object is not of its type.

use serde_json::Value;
use windlass_schema::ReadError;

use crate::go;
use crate::timestamp::TimeError;

/// Why an object is not of its type, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// A text is not base64, from this byte on.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// A field has a value of another type.
    #[error("json: cannot unmarshal {found} into Go struct field {structure}.{field} of type {ty}")]
    Field {
        found: String,
        structure: String,
        field: String,
        ty: String,
    },
    /// A value that reads itself is of another type.
    #[error("json: cannot unmarshal {found} into Go value of type {ty}")]
    Value { found: String, ty: &'static str },
    /// The object is no object.
    #[error(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {0} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )]
    NotAnObject(String),
    #[error(transparent)]
    Time(#[from] TimeError),
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The schema of its definition refuses it.
    #[error(transparent)]
    Schema(#[from] ReadError),
}

impl DecodeError {
    /// A value that reads itself as `ty` is something else.
    pub(super) fn value(found: &Value, ty: &'static str) -> Self {
        Self::Value {
            found: go::json_kind(found),
            ty,
        }
    }

    /// What was to be an object is something else.
    pub(crate) fn not_an_object(found: &Value) -> Self {
        Self::NotAnObject(go::json_kind(found))
    }
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct QuantityError(pub(super) &'static str);

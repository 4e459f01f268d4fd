//! Why an object is not of its type.

/// Why an object is not of its type, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// A text is not base64, from this byte on.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// A value has not the form of its type.
    #[error("{0}")]
    Value(String),
}

impl From<String> for DecodeError {
    fn from(why: String) -> Self {
        Self::Value(why)
    }
}

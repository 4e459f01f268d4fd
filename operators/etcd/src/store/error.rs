//! [`StoreError`]: what went wrong, by what can be done about it.
//!
//! Answers of a store are not repeated in messages: they end in a status that more people can read
//! than may read the store.

use super::Call;

/// What went wrong with a call to a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The Secret lacks something, or does not parse.
    #[error("cannot use the secret: {0}")]
    Secret(String),
    /// The path names no bucket and key.
    #[error("cannot use path {0:?}: it must be <bucket>/<key>")]
    Path(String),
    /// The store refuses the credentials, or they do not allow this.
    #[error("cannot {0}: the store denies access; check the credentials in the secret")]
    AccessDenied(Call),
    /// There is no such object, bucket or upload.
    #[error("cannot {0}: there is no such object or bucket")]
    NotFound(Call),
    /// There is an object of that name.
    #[error("cannot {0}: an object of that name exists")]
    AlreadyExists(Call),
    /// No answer in time: it may have been done.
    #[error("cannot {0}: no answer in time")]
    TimedOut(Call),
    /// The store could not be reached, or answered with an error that may pass.
    #[error("cannot {call}: {message}")]
    Unavailable {
        /// What was asked.
        call: Call,
        /// What happened, in words of our own.
        message: String,
    },
}

impl StoreError {
    /// The reason, in `CamelCase`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Secret(_) => "InvalidSecret",
            Self::Path(_) => "InvalidPath",
            Self::AccessDenied(_) => "AccessDenied",
            Self::NotFound(_) => "NotFound",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::TimedOut(_) | Self::Unavailable { .. } => "StoreUnavailable",
        }
    }
}

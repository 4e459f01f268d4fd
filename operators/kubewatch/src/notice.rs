//! What happened to an object.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Created,
    Updated,
    Deleted,
}

impl Reason {
    /// How bad it is, in kubewatch's words.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Created => Status::Normal,
            Self::Updated => Status::Warning,
            Self::Deleted => Status::Danger,
        }
    }

    /// What `CloudEvents` call it.
    pub(crate) fn operation(self) -> &'static str {
        match self {
            Self::Created => "create",
            Self::Updated => "update",
            Self::Deleted => "delete",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The color of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Normal,
    Warning,
    Danger,
}

/// A change of an object. Whatever is secret has been taken out of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notice {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) reason: Reason,
    /// Names the change: a receiver that sees it twice has been sent one message twice.
    pub(crate) id: String,
    pub(crate) object: Option<Arc<Value>>,
    pub(crate) old: Option<Arc<Value>>,
    /// The text, if it is not about one object.
    pub(crate) text: Option<String>,
}

impl Notice {
    /// The sentence that every handler sends.
    pub(crate) fn message(&self) -> String {
        self.text.clone().unwrap_or_else(|| {
            format!(
                "A `{}` in namespace `{}` has been `{}`:\n`{}`",
                self.kind, self.namespace, self.reason, self.name
            )
        })
    }
}

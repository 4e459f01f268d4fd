//! What is traced when the feature `otel` is off: nothing. It takes the same calls, so that the code
//! that is traced is the same either way.

use serde_json::Value;
use tracing::Span;

use crate::{Error, Key, kind::KindInfo, queue::Causes};

/// The version of an object whose change woke a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin;

impl Origin {
    pub(crate) fn of(_: u64) -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "the signature of what is traced")]
    pub(crate) fn merge(&mut self, _: Self) {}
}

/// Which reconcile wrote which version.
#[derive(Default)]
pub(crate) struct Writes(());

#[allow(clippy::unused_self, reason = "the signatures of what is traced")]
impl Writes {
    pub(crate) fn wrote(&self, _: &KindInfo, _: &Key, _: &Value) {}

    pub(crate) fn link(&self, _: &Span, _: &Causes) {}
}

pub(crate) fn failed(_: &Span, _: &Error) {}

/// A request to the API server.
pub(crate) struct Request(());

impl Request {
    pub(crate) fn new<B>(_: &http::Request<B>) -> Self {
        Self(())
    }

    #[allow(clippy::unused_self, reason = "the signature of what is traced")]
    pub(crate) fn span(&self) -> Span {
        Span::none()
    }

    #[allow(clippy::unused_self, reason = "the signature of what is traced")]
    pub(crate) fn answered(&self, _: Option<u16>) {}
}

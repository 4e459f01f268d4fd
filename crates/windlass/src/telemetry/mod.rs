//! Traces: a span for each reconcile, with links to the reconciles that caused it, and a span for
//! each request to the API server.
//!
//! Spans are those of `tracing`; `tracing-opentelemetry` makes them spans of OpenTelemetry.
//! `windlass run` installs it ([`export`]) when the environment names a collector; a program that
//! embeds an operator adds `tracing_opentelemetry::layer()` to its own subscriber. Where there is no
//! such layer, nothing is kept and nothing is linked.

#[cfg(feature = "cli")]
pub(crate) mod export;
mod request;
mod writes;

use opentelemetry::trace::Status;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

pub(crate) use self::{
    request::Request,
    writes::{Origin, Writes},
};
use crate::Error;

/// The reconcile of this span failed.
pub(crate) fn failed(span: &Span, error: &Error) {
    span.set_status(Status::error(error.to_string()));
}

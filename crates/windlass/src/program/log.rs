//! What `run` logs, and where its traces go.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, layer::SubscriberExt, registry::LookupSpan, util::SubscriberInitExt,
};

#[cfg(feature = "otel")]
use crate::telemetry::export::Export;
use crate::{Operator, Result};

/// Nothing to end where nothing is exported.
#[cfg(not(feature = "otel"))]
pub(super) struct Export;

/// Logs to stderr from now on, and exports traces until the result is dropped.
#[cfg_attr(
    not(feature = "otel"),
    allow(clippy::unnecessary_wraps, unused_variables)
)]
pub(super) fn start(operator: &Operator, json: bool) -> Result<Option<Export>> {
    #[cfg(feature = "otel")]
    let export = Export::from_environment(operator.name())?;
    #[cfg(not(feature = "otel"))]
    let export = None;
    let subscriber = tracing_subscriber::registry().with(logs(json));
    #[cfg(feature = "otel")]
    let subscriber = subscriber.with(export.as_ref().map(Export::layer));
    // A second subscriber is refused when the program has set up its own: that one stays.
    let _ = subscriber.try_init();
    Ok(export)
}

fn logs<S>(json: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if json {
        logs.json().with_filter(filter).boxed()
    } else {
        let logs = logs.with_ansi(io::stderr().is_terminal());
        logs.with_filter(filter).boxed()
    }
}

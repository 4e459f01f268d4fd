//! [`Export`]: sends spans to the collector that the environment names, as OTLP over HTTP.
//!
//! The variables are those of OpenTelemetry: `OTEL_EXPORTER_OTLP_ENDPOINT` (or `..._TRACES_ENDPOINT`)
//! says where, and without it nothing is exported; `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`
//! and `OTEL_TRACES_SAMPLER` are read by the SDK.

use std::{
    env,
    fmt::{self, Debug},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};
use tracing::{Level, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::{Error, Result};

const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// How long the collector may take, unless the environment says so.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of its answer is read.
const ANSWER: usize = 1024 * 1024;

/// Spans on their way to a collector.
pub(crate) struct Export(SdkTracerProvider);

impl Export {
    /// Nothing when the environment names no collector.
    pub(crate) fn from_environment(operator: &str) -> Result<Option<Self>> {
        let set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
        let disabled = env::var("OTEL_SDK_DISABLED");
        let disabled = disabled.is_ok_and(|value| value.eq_ignore_ascii_case("true"));
        if disabled || !ENDPOINTS.into_iter().any(set) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Post::new()?)
            .build()
            .map_err(|error| Error::other(format!("cannot export traces: {error}")))?;
        let mut resource = Resource::builder();
        if !set("OTEL_SERVICE_NAME") {
            resource = resource.with_service_name(operator.to_owned());
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self(provider)))
    }

    /// Makes spans of those of `tracing`; what is logged in them stays in the log.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.0.tracer("windlass");
        let spans = filter_fn(|of| of.is_span() && *of.level() <= Level::INFO);
        // Of no use to those who read traces: where in our code a span is made, and on which thread.
        tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_tracer(tracer)
            .with_filter(spans)
    }
}

impl Drop for Export {
    /// Sends what is left.
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "cannot export the last traces");
        }
    }
}

/// Posts to the collector. The SDK exports from a thread of its own, on which there is no runtime.
struct Post {
    runtime: Runtime,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Post {
    fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: runtime.map_err(Error::other)?,
            client: Client::builder(TokioExecutor::new()).build_http(),
        })
    }

    async fn post(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let answer = self.client.request(request.map(Full::new)).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
        Ok(http::Response::from_parts(head, body))
    }
}

impl Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Post")
    }
}

#[async_trait::async_trait]
impl HttpClient for Post {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let post = async { tokio::time::timeout(PATIENCE, self.post(request)).await };
        self.runtime.block_on(post)?
    }
}

//! What webhooks are asked, and the certificate they are asked with.

use std::time::Duration;

use super::{
    Counters, Gauges, Histograms, counters, gauges, histograms,
    instrument::{Counter, Gauge, Histogram, Registry, exponential_buckets},
    owned,
};

/// The series of an operator's webhooks. Clones are the same.
#[derive(Clone)]
pub(crate) struct WebhookMetrics {
    latency: Histograms,
    requests: Counters,
    in_flight: Gauges,
    /// A webhook panicked.
    pub(crate) panics: Counter,
    /// A conversion panicked.
    pub(crate) conversion_panics: Counter,
    /// The certificate was read.
    pub(crate) certificate_reads: Counter,
    /// The certificate could not be read, or not be used.
    pub(crate) certificate_errors: Counter,
}

impl WebhookMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let single = |registry: &mut Registry, name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Self {
            latency: histograms(
                registry,
                "controller_runtime_webhook_latency_seconds",
                "How long answers to admission reviews take, by webhook",
                || Histogram::new(exponential_buckets(10e-9, 10.0, 12)),
            ),
            requests: counters(
                registry,
                "controller_runtime_webhook_requests",
                "Admission reviews by webhook and status code",
            ),
            in_flight: gauges(
                registry,
                "controller_runtime_webhook_requests_in_flight",
                "Admission reviews being answered, by webhook",
            ),
            panics: single(
                registry,
                "controller_runtime_webhook_panics",
                "Admission reviews whose webhook panicked",
            ),
            conversion_panics: single(
                registry,
                "controller_runtime_conversion_webhook_panics",
                "Conversions that panicked",
            ),
            certificate_reads: single(
                registry,
                "certwatcher_read_certificate",
                "How often the certificate was read",
            ),
            certificate_errors: single(
                registry,
                "certwatcher_read_certificate_errors",
                "How often it could not be read or used",
            ),
        }
    }

    /// A review arrives at a path.
    pub(crate) fn begins(&self, path: &str) -> Gauge {
        let labels = owned(&[("webhook", path)]);
        let gauge = self.in_flight.get_or_create_owned(&labels);
        gauge.inc();
        gauge
    }

    /// A review was answered.
    pub(crate) fn answered(&self, path: &str, code: u16, took: Duration) {
        let latency = self
            .latency
            .get_or_create_owned(&owned(&[("webhook", path)]));
        latency.observe(took.as_secs_f64());
        let labels = owned(&[("webhook", path), ("code", &code.to_string())]);
        self.requests.get_or_create(&labels).inc();
    }
}

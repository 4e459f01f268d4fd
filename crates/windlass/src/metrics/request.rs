//! What requests to the API server cost.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    Counters, Histograms, counters, histograms,
    instrument::{Counter, Histogram, Registry},
    owned,
};
use http::Method;

/// How many failed requests are remembered, to know when one is sent again.
const REMEMBERED: usize = 1000;
const SECONDS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];
const BYTES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// The series of all requests.
#[derive(Clone)]
pub(super) struct RequestSeries {
    requests: Counters,
    retries: Counters,
    time: Histograms,
    limited: Histograms,
    sent: Histograms,
    received: Histograms,
}

impl RequestSeries {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            requests: counters(
                registry,
                "rest_client_requests",
                "Requests by status code, method and host",
            ),
            retries: counters(
                registry,
                "rest_client_request_retries",
                "Requests sent again after they failed, by the status code they failed with",
            ),
            time: histograms(
                registry,
                "rest_client_request_duration_seconds",
                "How long requests take, by verb and host",
                || Histogram::new(SECONDS),
            ),
            limited: histograms(
                registry,
                "rest_client_rate_limiter_duration_seconds",
                "How long requests wait for a limit of the client's own: it has none",
                || Histogram::new(SECONDS),
            ),
            sent: histograms(
                registry,
                "rest_client_request_size_bytes",
                "How large requests are, by verb and host",
                || Histogram::new(BYTES),
            ),
            received: histograms(
                registry,
                "rest_client_response_size_bytes",
                "How large answers are whose size is known when they begin, by verb and host",
                || Histogram::new(BYTES),
            ),
        }
    }
}

/// Counts the requests to one server. Clones are the same.
#[derive(Clone)]
pub(crate) struct RequestMetrics(Arc<Inner>);

struct Inner {
    host: Arc<str>,
    series: RequestSeries,
    known: Mutex<Known>,
}

/// Series are looked up once: there are few, and many requests.
#[derive(Default)]
#[cfg_attr(not(feature = "metrics"), allow(clippy::zero_sized_map_values))]
struct Known {
    by_verb: BTreeMap<String, ByVerb>,
    by_code: BTreeMap<(u16, String), Counter>,
    /// What failed last, and how.
    failed: BTreeMap<(String, String), u16>,
}

#[derive(Clone)]
struct ByVerb {
    time: Histogram,
    limited: Histogram,
    sent: Histogram,
    received: Histogram,
}

/// One request and how it ended.
pub(crate) struct Answered<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// None if there was no answer.
    pub(crate) code: Option<u16>,
    pub(crate) took: Duration,
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
}

impl RequestMetrics {
    pub(super) fn new(series: RequestSeries, host: Arc<str>) -> Self {
        Self(Arc::new(Inner {
            host,
            series,
            known: Mutex::default(),
        }))
    }

    /// A request is about to be sent: again, if it failed before.
    pub(crate) fn sends(&self, method: &Method, path: &str) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.failed.is_empty() {
            return;
        }
        let name = (method.as_str().to_owned(), path.to_owned());
        if let Some(code) = known.failed.remove(&name) {
            let (code, host) = (named(code), &self.0.host);
            let labels = [("code", &*code), ("verb", method.as_str()), ("host", host)];
            self.0.series.retries.get_or_create(&owned(&labels)).inc();
        }
    }

    /// A request was answered, or not.
    pub(crate) fn answered(&self, request: &Answered<'_>) {
        let (series, host) = (&self.0.series, &*self.0.host);
        let (verb, code) = (request.method.as_str(), request.code.unwrap_or(0));
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.by_verb.contains_key(verb) {
            let labels = owned(&[("verb", verb), ("host", host)]);
            let by_verb = ByVerb {
                time: series.time.get_or_create_owned(&labels),
                limited: series.limited.get_or_create_owned(&labels),
                sent: series.sent.get_or_create_owned(&labels),
                received: series.received.get_or_create_owned(&labels),
            };
            known.by_verb.insert(verb.to_owned(), by_verb);
        }
        let counter = known
            .by_code
            .entry((code, verb.to_owned()))
            .or_insert_with(|| {
                let code = named(code);
                let labels = [("code", &*code), ("method", verb), ("host", host)];
                series.requests.get_or_create_owned(&owned(&labels))
            });
        counter.inc();
        if let Some(of) = known.by_verb.get(verb) {
            of.time.observe(request.took.as_secs_f64());
            of.limited.observe(0.0);
            observe(&of.sent, request.sent);
            observe(&of.received, request.received);
        }
        let failed = code == 0 || code == 429 || code >= 500;
        if failed && known.failed.len() < REMEMBERED {
            let name = (verb.to_owned(), request.path.to_owned());
            known.failed.insert(name, code);
        }
    }
}

fn named(code: u16) -> String {
    match code {
        0 => "<error>".to_owned(),
        code => code.to_string(),
    }
}

#[allow(clippy::cast_precision_loss)]
fn observe(histogram: &Histogram, bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        histogram.observe(bytes as f64);
    }
}

//! Metrics, under the names controller-runtime gives them, so that dashboards carry over.
//!
//! What happens is counted where it happens, through counters that are looked up once per
//! controller; what is (how many keys wait, how much a cache holds) is read when somebody asks.
//! Series that controller-runtime does not have begin with `windlass_`.

#[cfg(feature = "metrics")]
mod collector;
#[cfg_attr(not(feature = "metrics"), path = "uncounted.rs")]
mod instrument;
mod live;
mod request;
#[cfg(feature = "webhooks")]
mod webhook;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

#[cfg(feature = "webhooks")]
pub(crate) use self::webhook::WebhookMetrics;
use self::{
    instrument::{Counter, Family, Gauge, Histogram, Registry, exponential_buckets},
    request::RequestSeries,
};
pub(crate) use self::{
    live::Live,
    request::{Answered, RequestMetrics},
};
use crate::Error;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of one operator. Clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    live: Arc<Live>,
    reconciles: Counters,
    errors: Counters,
    terminal: Counters,
    panics: Counters,
    timeouts: Counters,
    time: Histograms,
    workers: Gauges,
    active: Gauges,
    adds: Counters,
    retries: Counters,
    latency: Histograms,
    work: Histograms,
    requests: RequestSeries,
    #[cfg(feature = "webhooks")]
    webhooks: WebhookMetrics,
    waits: Histograms,
    master: Gauges,
    slow_path: Counters,
    loops: Counters,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let live = Arc::new(Live::default());
        let reg = &mut registry;
        // The encoder adds `_total` to the name of a counter.
        let inner = Inner {
            reconciles: counters(
                reg,
                "controller_runtime_reconcile",
                "Reconciles by controller and result",
            ),
            errors: counters(
                reg,
                "controller_runtime_reconcile_errors",
                "Failed reconciles by controller",
            ),
            terminal: counters(
                reg,
                "controller_runtime_terminal_reconcile_errors",
                "Reconciles by controller that failed in a way trying again cannot mend",
            ),
            panics: counters(
                reg,
                "controller_runtime_reconcile_panics",
                "Reconciles by controller that panicked",
            ),
            timeouts: counters(
                reg,
                "controller_runtime_reconcile_timeouts",
                "Reconciles by controller that took longer than they may",
            ),
            time: histograms(
                reg,
                "controller_runtime_reconcile_time_seconds",
                "How long reconciles take",
                || Histogram::new(RECONCILE),
            ),
            workers: gauges(
                reg,
                "controller_runtime_max_concurrent_reconciles",
                "How many objects may be reconciled at once",
            ),
            active: gauges(
                reg,
                "controller_runtime_active_workers",
                "How many objects are being reconciled",
            ),
            adds: counters(reg, "workqueue_adds", "Keys added to the queue"),
            retries: counters(
                reg,
                "workqueue_retries",
                "Keys added to the queue with a delay",
            ),
            latency: histograms(
                reg,
                "workqueue_queue_duration_seconds",
                "How long keys wait in the queue",
                || Histogram::new(exponential_buckets(10e-9, 10.0, 12)),
            ),
            work: histograms(
                reg,
                "workqueue_work_duration_seconds",
                "How long keys are worked on",
                || Histogram::new(exponential_buckets(10e-9, 10.0, 12)),
            ),
            requests: RequestSeries::new(reg),
            #[cfg(feature = "webhooks")]
            webhooks: WebhookMetrics::new(reg),
            waits: histograms(
                reg,
                "controller_runtime_client_consistency_wait_duration_seconds",
                "How long reads wait until the cache shows what was written",
                || Histogram::new(WAIT),
            ),
            master: gauges(
                reg,
                "leader_election_master_status",
                "Whether this process holds the lease",
            ),
            slow_path: counters(
                reg,
                "leader_election_slowpath",
                "Renewals that had to read the lease first",
            ),
            loops: counters(
                reg,
                "windlass_write_loops",
                "Writes that were repeated without end, by controller and resource",
            ),
            live: Arc::clone(&live),
            registry: Mutex::default(),
        };
        #[cfg(feature = "metrics")]
        registry.register_collector(Box::new(live));
        *inner
            .registry
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = registry;
        Self(Arc::new(inner))
    }
}

const RECONCILE: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];
const WAIT: [f64; 13] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0,
];

/// With the feature `metrics`.
#[cfg(feature = "metrics")]
impl Metrics {
    /// All metrics as text, in the `OpenMetrics` format that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.0.registry.lock();
        let registry = registry.unwrap_or_else(PoisonError::into_inner);
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    /// Lets the author add metrics of their own.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        let registry = self.0.registry.lock();
        add(&mut registry.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Metrics {
    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    /// The metrics of one controller.
    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        let labels: Labels = vec![("controller", name.to_owned())];
        let of = |family: &Counters| family.get_or_create_owned(&labels);
        let result = |result: &str| {
            let mut labels = labels.clone();
            labels.push(("result", result.to_owned()));
            self.0.reconciles.get_or_create_owned(&labels)
        };
        ControllerMetrics {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: of(&self.0.errors),
            terminal: of(&self.0.terminal),
            panics: of(&self.0.panics),
            timeouts: of(&self.0.timeouts),
            time: self.0.time.get_or_create_owned(&labels),
            workers: self.0.workers.get_or_create_owned(&labels),
            active: self.0.active.get_or_create_owned(&labels),
        }
    }

    /// The metrics of one controller's queue.
    pub(crate) fn queue(&self, name: &str) -> QueueMetrics {
        let labels: Labels = vec![("name", name.to_owned()), ("controller", name.to_owned())];
        QueueMetrics {
            adds: self.0.adds.get_or_create_owned(&labels),
            retries: self.0.retries.get_or_create_owned(&labels),
            latency: self.0.latency.get_or_create_owned(&labels),
            work: self.0.work.get_or_create_owned(&labels),
        }
    }

    /// What counts the requests to one server.
    pub(crate) fn requests(&self, host: Arc<str>) -> RequestMetrics {
        RequestMetrics::new(self.0.requests.clone(), host)
    }

    /// What counts the calls of webhooks.
    #[cfg(feature = "webhooks")]
    pub(crate) fn webhooks(&self) -> &WebhookMetrics {
        &self.0.webhooks
    }

    /// A read waited for a write of our own.
    pub(crate) fn waited(&self, operation: &str, shown: bool, took: Duration) {
        let result = if shown { "success" } else { "timeout" };
        let labels = owned(&[("operation", operation), ("result", result)]);
        let waits = self.0.waits.get_or_create(&labels);
        waits.observe(took.as_secs_f64());
    }

    pub(crate) fn leads(&self, lease: &str, leads: bool) {
        let gauge = self
            .0
            .master
            .get_or_create_owned(&owned(&[("name", lease)]));
        gauge.set(i64::from(leads));
    }

    pub(crate) fn slow_path(&self, lease: &str) {
        let labels = owned(&[("name", lease)]);
        self.0.slow_path.get_or_create(&labels).inc();
    }

    /// The same write was sent again and again.
    pub(crate) fn loops(&self, controller: &str, resource: &str) {
        let labels = owned(&[("controller", controller), ("resource", resource)]);
        self.0.loops.get_or_create(&labels).inc();
    }
}

fn counters(registry: &mut Registry, name: &str, help: &str) -> Counters {
    let counters = Counters::default();
    registry.register(name, help, counters.clone());
    counters
}

fn gauges(registry: &mut Registry, name: &str, help: &str) -> Gauges {
    let gauges = Gauges::default();
    registry.register(name, help, gauges.clone());
    gauges
}

fn histograms(
    registry: &mut Registry,
    name: &str,
    help: &str,
    make: fn() -> Histogram,
) -> Histograms {
    let histograms = Histograms::new_with_constructor(make);
    registry.register(name, help, histograms.clone());
    histograms
}

fn owned(labels: &[(&'static str, &str)]) -> Labels {
    let owned = labels
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    owned.collect()
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// What a controller counts.
pub(crate) struct ControllerMetrics {
    pub(crate) success: Counter,
    pub(crate) error: Counter,
    pub(crate) requeue: Counter,
    pub(crate) requeue_after: Counter,
    errors: Counter,
    terminal: Counter,
    panics: Counter,
    timeouts: Counter,
    pub(crate) time: Histogram,
    pub(crate) workers: Gauge,
    pub(crate) active: Gauge,
}

impl ControllerMetrics {
    /// A reconcile failed.
    pub(crate) fn failed(&self, error: &Error) {
        self.error.inc();
        self.errors.inc();
        match error {
            Error::Panic { .. } => self.panics.inc(),
            Error::Timeout { .. } => self.timeouts.inc(),
            error if error.class() == crate::error::Class::Terminal => self.terminal.inc(),
            _ => 0,
        };
    }
}

/// What a queue counts.
pub(crate) struct QueueMetrics {
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
    pub(crate) latency: Histogram,
    pub(crate) work: Histogram,
}

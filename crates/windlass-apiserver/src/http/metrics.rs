//! `/metrics`: how many requests were answered and how fast, what is under way, what is stored.
//!
//! Names and labels are kube-apiserver's, in the text form of Prometheus. A request is counted by
//! adding to a few numbers that its series shares with everybody; what they are called is worked
//! out when somebody reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::{ResourceRequest, Verb};
use crate::registry::resource::Resource;
use crate::server::ApiServer;

/// The text form of Prometheus.
pub(super) const MEDIA_TYPE: &str =
    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Upper ends of the ranges that latencies are counted in, in seconds, as kube-apiserver has them.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// What tells the series of one resource from each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SeriesKey {
    /// Its place among the resource's subresources, from 1 on; 0 is none.
    subresource: usize,
    verb: &'static str,
    scope: &'static str,
    dry_run: &'static str,
}

/// What is counted of requests that are alike.
#[derive(Debug, Default)]
struct Series {
    /// By status.
    codes: Mutex<BTreeMap<u16, u64>>,
    /// By range; the last is beyond all of them.
    latencies: [AtomicU64; BUCKETS.len() + 1],
    nanos: AtomicU64,
    /// Those that last and have not ended.
    lasting: AtomicU64,
}

/// Everything that is counted of one resource.
#[derive(Default)]
pub(crate) struct Counts(RwLock<BTreeMap<SeriesKey, Arc<Series>>>);

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}

/// A request under way.
pub(super) struct Counted {
    series: Arc<Series>,
    began: Instant,
}

/// A request that lasts, counted until it is dropped.
pub(crate) struct Lasting(Arc<Series>);

impl Drop for Lasting {
    fn drop(&mut self) {
        self.0.lasting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counted {
    /// Takes note of how it ended.
    pub(super) fn answered(&self, code: StatusCode) {
        let took = self.began.elapsed();
        let seconds = took.as_secs_f64();
        let range = BUCKETS.partition_point(|end| *end < seconds);
        self.series.latencies[range].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.series.nanos.fetch_add(nanos, Ordering::Relaxed);
        let mut codes = self.series.lock_codes();
        *codes.entry(code.as_u16()).or_default() += 1;
    }

    /// Counts it as one that lasts.
    pub(super) fn lasts(&self) -> Lasting {
        self.series.lasting.fetch_add(1, Ordering::Relaxed);
        Lasting(self.series.clone())
    }
}

impl Series {
    fn lock_codes(&self) -> std::sync::MutexGuard<'_, BTreeMap<u16, u64>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Begins to count a request for the resource.
    pub(super) fn begin(
        request: &ResourceRequest,
        resource: &Resource,
        dry_run: bool,
        applies: bool,
    ) -> Counted {
        let below = request.subresource.as_deref();
        let place = |name: &str| {
            resource
                .subresources
                .iter()
                .position(|sub| sub.name == name)
        };
        let key = SeriesKey {
            subresource: below.and_then(place).map_or(0, |place| place + 1),
            verb: verb_of(request, applies),
            scope: scope_of(request),
            dry_run: if dry_run { "All" } else { "" },
        };
        let began = Instant::now();
        let all = &resource.counts.0;
        let known = all
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        let series = known.unwrap_or_else(|| {
            let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
            all.entry(key).or_default().clone()
        });
        Counted { series, began }
    }
}

/// The verb as kube-apiserver's metrics name it.
fn verb_of(request: &ResourceRequest, applies: bool) -> &'static str {
    let connects = ["attach", "exec", "log", "portforward", "proxy"];
    if request
        .subresource
        .as_deref()
        .is_some_and(|name| connects.contains(&name))
    {
        return "CONNECT";
    }
    match request.verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if applies => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
    }
}

fn scope_of(request: &ResourceRequest) -> &'static str {
    if request.name.is_some() || request.verb == Verb::Create {
        "resource"
    } else if request.namespace.is_some() {
        "namespace"
    } else {
        "cluster"
    }
}

/// A series, and what its numbers are labelled with.
struct Labelled {
    labels: String,
    dry_run: &'static str,
    series: Arc<Series>,
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail, here and below.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

impl ApiServer {
    /// What `/metrics` answers.
    pub(super) fn metrics_text(&self) -> String {
        let all = self.all_series();
        let mut text = String::new();
        head(
            &mut text,
            "apiserver_request_total",
            "counter",
            "[STABLE] Answered requests by verb, resource, scope and status.",
        );
        for Labelled {
            labels,
            dry_run,
            series,
        } in &all
        {
            for (code, count) in series.lock_codes().iter() {
                let _ = writeln!(
                    text,
                    "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",{labels}}} {count}"
                );
            }
        }
        let name = "apiserver_request_duration_seconds";
        head(
            &mut text,
            name,
            "histogram",
            "[STABLE] How long requests took to be answered.",
        );
        for Labelled {
            labels,
            dry_run,
            series,
        } in &all
        {
            let labels = format!("component=\"apiserver\",dry_run=\"{dry_run}\",{labels}");
            let mut count = 0;
            for (range, in_range) in series.latencies.iter().enumerate() {
                count += in_range.load(Ordering::Relaxed);
                let end = BUCKETS
                    .get(range)
                    .map_or_else(|| "+Inf".to_owned(), f64::to_string);
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{end}\"}} {count}");
            }
            let seconds = Duration::from_nanos(series.nanos.load(Ordering::Relaxed)).as_secs_f64();
            let _ = writeln!(text, "{name}_sum{{{labels}}} {seconds}");
            let _ = writeln!(text, "{name}_count{{{labels}}} {count}");
        }
        head(
            &mut text,
            "apiserver_longrunning_requests",
            "gauge",
            "[STABLE] Watches and other requests that last, at this moment.",
        );
        for Labelled {
            labels,
            dry_run,
            series,
        } in &all
        {
            let lasting = series.lasting.load(Ordering::Relaxed);
            if lasting > 0 && dry_run.is_empty() {
                let _ = writeln!(
                    text,
                    "apiserver_longrunning_requests{{component=\"apiserver\",{labels}}} {lasting}"
                );
            }
        }
        head(
            &mut text,
            "apiserver_current_inflight_requests",
            "gauge",
            "[STABLE] Requests that are served at this moment.",
        );
        let (reading, writing) = self.room().taken();
        for (kind, count) in [("mutating", writing), ("readOnly", reading)] {
            let _ = writeln!(
                text,
                "apiserver_current_inflight_requests{{request_kind=\"{kind}\"}} {count}"
            );
        }
        head(
            &mut text,
            "apiserver_resource_objects",
            "gauge",
            "[ALPHA] Stored objects.",
        );
        for (table, count) in self.store().counts() {
            let (plural, group) = table.split_once('.').unwrap_or((&table, ""));
            let _ = writeln!(
                text,
                "apiserver_resource_objects{{group=\"{group}\",resource=\"{plural}\"}} {count}"
            );
        }
        text
    }

    /// All series, resources in the order of discovery.
    fn all_series(&self) -> Vec<Labelled> {
        let mut all = Vec::new();
        for resource in self.registry().known().all() {
            let counts = resource.counts.0.read();
            for (key, series) in counts.unwrap_or_else(PoisonError::into_inner).iter() {
                let below = key.subresource.checked_sub(1);
                let below = below.and_then(|place| resource.subresources.get(place));
                let labels = format!(
                    "group=\"{}\",resource=\"{}\",scope=\"{}\",subresource=\"{}\",verb=\"{}\",version=\"{}\"",
                    resource.group,
                    resource.plural,
                    key.scope,
                    below.map_or("", |sub| &sub.name),
                    key.verb,
                    resource.version
                );
                all.push(Labelled {
                    labels,
                    dry_run: key.dry_run,
                    series: series.clone(),
                });
            }
        }
        all
    }
}

//! [`Live`] as metrics.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::Live;

/// One series: labels and value.
type Sample = (Vec<(&'static str, String)>, f64);

impl Collector for Live {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut depth: Vec<Sample> = Vec::new();
        let (mut unfinished, mut longest): (Vec<Sample>, Vec<Sample>) = (Vec::new(), Vec::new());
        for (name, queue) in self.queues() {
            let snapshot = queue.snapshot();
            let labels = vec![("name", name.to_string()), ("controller", name.to_string())];
            // controller-runtime's numbers for a change and for the first list.
            for (priority, waiting) in [("0", snapshot.high), ("-100", snapshot.low)] {
                let mut labels = labels.clone();
                labels.push(("priority", priority.to_owned()));
                depth.push((labels, number(waiting)));
            }
            let ages = || snapshot.running.iter().map(|(_, age)| age.as_secs_f64());
            unfinished.push((labels.clone(), ages().sum()));
            longest.push((labels, ages().fold(0.0, f64::max)));
        }
        let (mut objects, mut bytes, mut staleness) = (Vec::new(), Vec::new(), Vec::new());
        let (mut waits, mut failures, mut failing) = (Vec::new(), Vec::new(), Vec::new());
        for store in self.caches().iter().flat_map(|caches| caches.all()) {
            let labels = vec![
                ("resource", store.kind.to_string()),
                ("scope", store.scope.describe().unwrap_or_default()),
            ];
            let size = store.size();
            objects.push((labels.clone(), number(size.objects)));
            bytes.push((labels.clone(), number(size.bytes)));
            waits.push((labels.clone(), store.waits()));
            failures.push((labels.clone(), store.failures()));
            let failed = store.failing().map_or(0.0, |(time, _)| time.as_secs_f64());
            failing.push((labels.clone(), failed));
            if let Some(age) = store.staleness() {
                staleness.push((labels, age.as_secs_f64()));
            }
        }
        for (name, help, samples) in [
            ("workqueue_depth", "How many keys wait, by priority", depth),
            (
                "workqueue_unfinished_work_seconds",
                "How long the keys being worked on have been, together",
                unfinished,
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "How long the longest of them has been",
                longest,
            ),
            ("windlass_cache_objects", "Objects in the cache", objects),
            (
                "windlass_cache_bytes",
                "Memory the cache takes, roughly",
                bytes,
            ),
            (
                "windlass_cache_staleness_seconds",
                "How long the server has said nothing on a watch",
                staleness,
            ),
            (
                "windlass_watch_failing_seconds",
                "How long a watch has failed, zero if it works",
                failing,
            ),
            (
                "windlass_events_waiting",
                "Events that wait to be written",
                vec![(Vec::new(), number(self.events().waiting()))],
            ),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in &samples {
                ConstGauge::new(*value).encode(metric.encode_family(labels)?)?;
            }
        }
        for (name, help, samples) in [
            (
                "windlass_cache_waits",
                "Reads that waited until the cache showed what was written",
                waits,
            ),
            (
                "windlass_watch_failures",
                "Watches that failed, or on which the server said nothing",
                failures,
            ),
            (
                "windlass_events_lost",
                "Events that were not written",
                vec![(Vec::new(), self.events().lost())],
            ),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, value) in &samples {
                ConstCounter::new(*value).encode(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

/// A count as a metric's value; they are far from where a float is not exact.
#[allow(clippy::cast_precision_loss)]
fn number(count: usize) -> f64 {
    count as f64
}

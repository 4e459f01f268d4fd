//! [`DebugInfo`]: what a running operator is doing, for those who look at it from outside.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::{controller::History, run::Metrics};

/// How long a watch may fail before it counts as stalled: an API server that is restarted is back
/// sooner.
const MOMENT: Duration = Duration::from_secs(10);

/// How long the server may say nothing on a watch: it says something at the latest when the watch
/// ends, or when the next one begins.
const SILENCE: Duration = Duration::from_mins(1);

/// A look at a running operator: its queues, causes, last errors and caches.
#[derive(Clone)]
pub struct DebugInfo {
    operator: Arc<str>,
    metrics: Metrics,
    history: Arc<History>,
}

impl DebugInfo {
    pub(super) fn new(operator: Arc<str>, metrics: Metrics, history: Arc<History>) -> Self {
        Self {
            operator,
            metrics,
            history,
        }
    }

    /// The operator's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The kinds whose first list is not complete: what keeps it from being ready.
    pub fn unsynced(&self) -> Vec<String> {
        let caches = self.metrics.live().caches();
        let stores = caches.iter().flat_map(|caches| caches.all());
        let missing = stores.filter(|store| !store.is_synced());
        let named = missing.map(|store| {
            let why = if store.is_missing() {
                " (not served)"
            } else {
                ""
            };
            format!("{}{why}", store.kind)
        });
        named.collect()
    }

    /// The kinds whose watch fails or is silent for longer than a moment, with the reason: what their
    /// caches show may be old.
    pub fn stalled(&self) -> Vec<String> {
        let caches = self.metrics.live().caches();
        let stores = caches.iter().flat_map(|caches| caches.all());
        let stalled = stores.filter_map(|store| {
            let failing = store.failing().filter(|(time, _)| *time > MOMENT);
            let silent = || {
                let silent = store.staleness().filter(|_| !store.is_missing())?;
                (silent > SILENCE).then(|| (silent, "the API server says nothing".to_owned()))
            };
            let (time, why) = failing.or_else(silent)?;
            Some(format!("{} for {} s: {why}", store.kind, time.as_secs()))
        });
        stalled.collect()
    }

    /// What is being reconciled, and for how long: `controller of object (3 s)`.
    #[cfg(feature = "cli")]
    pub(crate) fn running(&self) -> Vec<String> {
        let queues = self.metrics.live().queues();
        let running = queues.iter().flat_map(|(controller, queue)| {
            let running = queue.snapshot().running;
            running
                .into_iter()
                .map(move |(key, age)| format!("{controller} {key} ({} s)", age.as_secs()))
        });
        running.collect()
    }

    /// Everything at once, as JSON.
    pub fn value(&self) -> Value {
        let live = self.metrics.live();
        let queues = live.queues();
        let queues = queues.iter().map(|(controller, queue)| {
            let snapshot = queue.snapshot();
            let failing = snapshot
                .failing
                .iter()
                .map(|(key, failures)| json!({"object": key.to_string(), "failures": failures}));
            let running = snapshot
                .running
                .iter()
                .map(|(key, age)| json!({"object": key.to_string(), "seconds": age.as_secs()}));
            json!({
                "controller": &**controller,
                "changed": snapshot.high,
                "listed": snapshot.low,
                "delayed": snapshot.delayed,
                "running": running.collect::<Vec<_>>(),
                "failing": failing.collect::<Vec<_>>(),
            })
        });
        let caches = live.caches();
        let stores = caches.iter().flat_map(|caches| caches.all());
        let stores = stores.map(|store| {
            let size = store.size();
            json!({
                "resource": store.kind.to_string(),
                "scope": store.scope.describe(),
                "synced": store.is_synced(),
                "served": !store.is_missing(),
                "objects": size.objects,
                "bytes": size.bytes,
                "waits": store.waits(),
                "failing": store.failing().map(|(_, why)| why),
                "failures": store.failures(),
                "stalenessSeconds": store.staleness().map(|age| age.as_secs()),
            })
        });
        let (reconciles, errors, loops) = self.history.read();
        json!({
            "operator": &*self.operator,
            "queues": queues.collect::<Vec<_>>(),
            "caches": stores.collect::<Vec<_>>(),
            "errors": errors,
            "writeLoops": loops,
            "reconciles": reconciles,
        })
    }
}

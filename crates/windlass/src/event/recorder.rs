//! Writes events, one after the other, in the background.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use tracing::debug;

use super::Event;
use crate::{Environment, Grant, Key, KindInfo, Verb, client::Requests, environment::BusyGuard};

/// An event that happens again within this time belongs to the series of the first.
const SERIES: Duration = Duration::from_mins(6);
/// How often the count of a series is written while it goes on.
const COUNTED: Duration = Duration::from_mins(5);
/// How many events are remembered.
const REMEMBERED: usize = 1024;

/// What recording events needs.
pub(crate) fn grant() -> Grant {
    Grant::new("events.k8s.io", "events", [Verb::Create, Verb::Patch])
}

/// The sending end: takes events without waiting.
pub(crate) struct Recorder {
    queue: mpsc::UnboundedSender<Entry>,
    environment: Environment,
}

struct Entry {
    event: Event,
    regarding: Value,
    /// Who tells it.
    reporter: Arc<str>,
    _busy: BusyGuard,
}

impl Recorder {
    /// A recorder, and the future that writes what it is given until it is dropped.
    pub(crate) fn new(
        requests: Requests,
        environment: Environment,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, entries) = mpsc::unbounded_channel();
        let run = write_all(requests, environment.clone(), entries);
        (Self { queue, environment }, run)
    }

    pub(crate) fn record(&self, event: Event, regarding: Value, reporter: Arc<str>) {
        let busy = self
            .environment
            .activity
            .busy(format!("event {}", event.reason));
        // Nobody listens any more when the operator ends: best effort.
        let _ = self.queue.send(Entry {
            event,
            regarding,
            reporter,
            _busy: busy,
        });
    }
}

/// The same event, again and again.
struct Series {
    /// The event in the cluster.
    key: Key,
    count: u32,
    last: Instant,
    written: Instant,
}

async fn write_all(
    requests: Requests,
    environment: Environment,
    mut entries: mpsc::UnboundedReceiver<Entry>,
) {
    let kind = kind();
    let mut recent: BTreeMap<String, Series> = BTreeMap::new();
    while let Some(entry) = entries.recv().await {
        let now = Instant::now();
        let Event {
            warning,
            reason,
            action,
            note,
        } = &entry.event;
        let Entry {
            regarding,
            reporter,
            ..
        } = &entry;
        let identity = format!("{reporter} {regarding} {warning} {reason} {action} {note}");
        recent.retain(|_, series| now.duration_since(series.last) < SERIES);
        if let Some(series) = recent.get_mut(&identity) {
            series.count += 1;
            series.last = now;
            // The second says that it is a series; then the count is brought up to date at times.
            if series.count > 2 && now.duration_since(series.written) < COUNTED {
                continue;
            }
            series.written = now;
            let count = json!({"series": {
                "count": series.count,
                "lastObservedTime": environment.clock.micro_time(),
            }});
            match requests.merge(&kind, &series.key, None, &count).await {
                Ok(_) => continue,
                // Events do not live for ever: then it is told anew.
                Err(error) if error.is_not_found() => {
                    recent.remove(&identity);
                }
                Err(error) => {
                    debug!(%error, "an event was not counted");
                    continue;
                }
            }
        }
        let body = body(&environment, &entry);
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or("default");
        let key = Key::namespaced(
            namespace,
            body["metadata"]["name"].as_str().unwrap_or_default(),
        );
        match requests.create(&kind, &key, body).await {
            Ok(_) if recent.len() < REMEMBERED => {
                let series = Series {
                    key,
                    count: 1,
                    last: now,
                    written: now,
                };
                recent.insert(identity, series);
            }
            Ok(_) => {}
            Err(error) => debug!(%error, "an event was lost"),
        }
    }
}

fn kind() -> KindInfo {
    KindInfo {
        group: "events.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
        namespaced: true,
    }
}

fn body(environment: &Environment, entry: &Entry) -> Value {
    let Entry {
        event,
        regarding,
        reporter,
        ..
    } = entry;
    let name = regarding["name"].as_str().unwrap_or("object");
    // Events about cluster-scoped objects live in the default namespace.
    let namespace = regarding["namespace"].as_str().unwrap_or("default");
    // The server refuses longer notes.
    let note: String = event.note.chars().take(1000).collect();
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{name}.{}", environment.random.suffix(10)),
            "namespace": namespace,
        },
        "eventTime": environment.clock.micro_time(),
        "reportingController": reporter.as_ref(),
        "reportingInstance": reporter.as_ref(),
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "action": event.action,
        "note": note,
        "regarding": regarding,
    })
}

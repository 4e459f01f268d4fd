//! Writes events, one after the other, in the background.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use tracing::debug;

use super::Event;
use crate::{Environment, Grant, Key, KindInfo, Verb, client::Requests, environment::BusyGuard};

/// The same event is not written again within this time.
const QUIET: Duration = Duration::from_mins(5);
/// How many events are remembered to be quiet about.
const REMEMBERED: usize = 1024;

/// What recording events needs.
pub(crate) fn grant() -> Grant {
    Grant::new("events.k8s.io", "events", [Verb::Create])
}

/// The sending end: takes events without waiting.
pub(crate) struct Recorder {
    queue: mpsc::UnboundedSender<Entry>,
    environment: Environment,
}

struct Entry {
    event: Event,
    regarding: Value,
    _busy: BusyGuard,
}

impl Recorder {
    /// A recorder, and the future that writes what it is given until it is dropped.
    pub(crate) fn new(
        operator: Arc<str>,
        requests: Requests,
        environment: Environment,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, entries) = mpsc::unbounded_channel();
        let run = write_all(operator, requests, environment.clone(), entries);
        (Self { queue, environment }, run)
    }

    pub(crate) fn record(&self, event: Event, regarding: Value) {
        let busy = self
            .environment
            .activity
            .busy(format!("event {}", event.reason));
        // Nobody listens any more when the operator ends: best effort.
        let _ = self.queue.send(Entry {
            event,
            regarding,
            _busy: busy,
        });
    }
}

async fn write_all(
    operator: Arc<str>,
    requests: Requests,
    environment: Environment,
    mut entries: mpsc::UnboundedReceiver<Entry>,
) {
    let kind = kind();
    let mut recent: BTreeMap<String, Instant> = BTreeMap::new();
    while let Some(entry) = entries.recv().await {
        let now = Instant::now();
        let Event {
            warning,
            reason,
            action,
            note,
        } = &entry.event;
        let identity = format!("{} {warning} {reason} {action} {note}", entry.regarding);
        if recent
            .get(&identity)
            .is_some_and(|last| now.duration_since(*last) < QUIET)
        {
            continue;
        }
        if recent.len() >= REMEMBERED {
            recent.retain(|_, last| now.duration_since(*last) < QUIET);
        }
        if recent.len() < REMEMBERED {
            recent.insert(identity, now);
        }
        let body = body(&operator, &environment, &entry);
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or("default");
        let key = Key::namespaced(
            namespace,
            body["metadata"]["name"].as_str().unwrap_or_default(),
        );
        if let Err(error) = requests.create(&kind, &key, body).await {
            debug!(%error, "an event was lost");
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

fn body(operator: &str, environment: &Environment, entry: &Entry) -> Value {
    let Entry {
        event, regarding, ..
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
        "reportingController": operator,
        "reportingInstance": operator,
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "action": event.action,
        "note": note,
        "regarding": regarding,
    })
}

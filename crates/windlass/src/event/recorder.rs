//! Writes events, one after the other, in the background.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tracing::debug;

use super::Event;
use crate::{
    Error, Key, Result, client::Requests, declare::Grant, environment::BusyGuard, handle::Verb,
    kind::KindInfo, testing::Environment,
};

/// An event that happens again within this time belongs to the series of the first.
const SERIES: Duration = Duration::from_mins(6);
/// How often the count of a series is written while it goes on.
const COUNTED: Duration = Duration::from_mins(5);
/// How many events are remembered.
const REMEMBERED: usize = 1024;
/// How often an event is sent that fails for a reason that may pass.
const TRIES: usize = 12;
/// How long is waited after the first failure; twice as long after each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(10);
/// How long the server may take to answer.
const RESPONSE: Duration = Duration::from_secs(30);
/// How many events wait while one is sent, and again while one is sent again; what comes then is
/// lost.
const WAITING: usize = 1000;
/// The longest that the server takes, in bytes: names, reasons and actions, notes.
const LONGEST_NAME: usize = 253;
const LONGEST_WORD: usize = 128;
const LONGEST_NOTE: usize = 1024;

/// What recording events needs.
pub(crate) fn grant() -> Grant {
    Grant::new("events.k8s.io", "events", [Verb::Create, Verb::Patch])
}

/// How many events wait, and how many were lost.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    waiting: AtomicUsize,
    lost: AtomicU64,
}

impl Counts {
    #[cfg(feature = "metrics")]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// An event that is counted among those that wait, until it is dropped.
struct Waiting(Arc<Counts>);

impl Waiting {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counts))
    }

    fn is_lost(&self) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The sending end: takes events without waiting.
pub(crate) struct Recorder {
    queue: mpsc::Sender<Entry>,
    environment: Environment,
    counts: Arc<Counts>,
}

struct Entry {
    event: Event,
    regarding: Value,
    /// Who tells it.
    reporter: Arc<str>,
    /// Held while it waits for its turn; none while another is sent again.
    queued: Option<BusyGuard>,
    waiting: Waiting,
}

impl Entry {
    /// What makes two events the same.
    fn identity(&self) -> String {
        let Event {
            warning,
            reason,
            action,
            note,
        } = &self.event;
        let Self {
            regarding,
            reporter,
            ..
        } = self;
        format!("{reporter} {regarding} {warning} {reason} {action} {note}")
    }
}

impl Recorder {
    /// A recorder, and the future that writes what it is given until it is dropped.
    pub(crate) fn new(
        requests: Requests,
        environment: Environment,
        counts: Arc<Counts>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, entries) = mpsc::channel(WAITING);
        let run = write_all(requests, environment.clone(), entries);
        let recorder = Self {
            queue,
            environment,
            counts,
        };
        (recorder, run)
    }

    pub(crate) fn record(&self, event: Event, regarding: Value, reporter: Arc<str>) {
        let queued = self.environment.activity.busy(what(&event));
        let entry = Entry {
            event,
            regarding,
            reporter,
            queued: Some(queued),
            waiting: Waiting::new(&self.counts),
        };
        // Best effort: the queue is closed when the operator ends, and full when the API server
        // does not take events.
        if let Err(mpsc::error::TrySendError::Full(entry)) = self.queue.try_send(entry) {
            entry.waiting.is_lost();
            debug!(
                reason = entry.event.reason,
                "an event was lost: too many wait"
            );
        }
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
    mut entries: mpsc::Receiver<Entry>,
) {
    let mut writer = Writer {
        requests,
        environment,
        kind: kind(),
        recent: BTreeMap::new(),
    };
    let mut waiting = VecDeque::new();
    loop {
        let entry = match waiting.pop_front() {
            Some(entry) => entry,
            None => match entries.recv().await {
                Some(entry) => entry,
                None => return,
            },
        };
        writer.write(entry, &mut entries, &mut waiting).await;
    }
}

struct Writer {
    requests: Requests,
    environment: Environment,
    kind: KindInfo,
    /// What was told lately, by what makes two events the same.
    recent: BTreeMap<String, Series>,
}

impl Writer {
    /// Writes an event, again and again while it fails for a reason that may pass; those that come
    /// meanwhile wait.
    async fn write(
        &mut self,
        mut entry: Entry,
        entries: &mut mpsc::Receiver<Entry>,
        waiting: &mut VecDeque<Entry>,
    ) {
        let activity = self.environment.activity.clone();
        let mut sending = entry
            .queued
            .take()
            .unwrap_or_else(|| activity.busy(what(&entry.event)));
        let identity = entry.identity();
        if self.counted(&identity).await {
            return;
        }
        let body = body(&self.environment, &entry);
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or("default");
        let key = Key::namespaced(
            namespace,
            body["metadata"]["name"].as_str().unwrap_or_default(),
        );
        let mut wait = FIRST_WAIT;
        for attempt in 1..=TRIES {
            match answered(self.requests.create(&self.kind, &key, body.clone())).await {
                Ok(_) => return self.remember(identity, key),
                // An earlier attempt arrived, and its answer was lost.
                Err(error) if attempt > 1 && error.is_already_exists() => {
                    return self.remember(identity, key);
                }
                // An operator that ends does not wait for its events.
                Err(error) if attempt == TRIES || entries.is_closed() || !may_pass(&error) => {
                    entry.waiting.is_lost();
                    debug!(%error, "an event was lost");
                    return;
                }
                Err(error) => debug!(%error, "an event is sent again in {wait:?}"),
            }
            let at = Instant::now() + wait;
            let due = activity.due(at, what(&entry.event));
            drop(sending);
            gather(entries, waiting, at).await;
            sending = activity.busy(what(&entry.event));
            drop(due);
            wait = (wait * 2).min(LAST_WAIT);
        }
    }

    /// Counts an event that was told lately. False if it is to be told.
    async fn counted(&mut self, identity: &str) -> bool {
        let now = Instant::now();
        self.recent
            .retain(|_, series| now.duration_since(series.last) < SERIES);
        let Some(series) = self.recent.get_mut(identity) else {
            return false;
        };
        series.count += 1;
        series.last = now;
        // The second says that it is a series; then the count is brought up to date at times.
        if series.count > 2 && now.duration_since(series.written) < COUNTED {
            return true;
        }
        series.written = now;
        let count = json!({"series": {
            "count": series.count,
            "lastObservedTime": self.environment.clock.micro_time(),
        }});
        match answered(self.requests.merge(&self.kind, &series.key, None, &count)).await {
            Ok(_) => true,
            // Events do not live for ever: then it is told anew.
            Err(error) if error.is_not_found() => {
                self.recent.remove(identity);
                false
            }
            // The next count says it too.
            Err(error) => {
                debug!(%error, "an event was not counted");
                true
            }
        }
    }

    fn remember(&mut self, identity: String, key: Key) {
        if self.recent.len() < REMEMBERED {
            let now = Instant::now();
            let series = Series {
                key,
                count: 1,
                last: now,
                written: now,
            };
            self.recent.insert(identity, series);
        }
    }
}

/// Takes what comes until `until`, so that nobody waits for events to be written.
/// A request that is answered in time; events must not pile up behind a dead connection.
async fn answered<T>(request: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(RESPONSE, request).await.unwrap_or_else(|_| {
        let seconds = RESPONSE.as_secs();
        Err(Error::other(format!(
            "the API server did not answer within {seconds} s"
        )))
    })
}

async fn gather(
    entries: &mut mpsc::Receiver<Entry>,
    waiting: &mut VecDeque<Entry>,
    until: Instant,
) {
    let passed = tokio::time::sleep_until(until);
    tokio::pin!(passed);
    loop {
        tokio::select! {
            biased;
            () = &mut passed => return,
            entry = entries.recv() => {
                let Some(mut entry) = entry else {
                    return;
                };
                entry.queued = None;
                if waiting.len() < WAITING {
                    waiting.push_back(entry);
                } else {
                    entry.waiting.is_lost();
                    debug!(reason = entry.event.reason, "an event was lost: too many wait");
                }
            }
        }
    }
}

/// What is being done, for a person.
fn what(event: &Event) -> String {
    format!("event {}", event.reason)
}

/// Whether the same request may be taken a little later.
fn may_pass(error: &Error) -> bool {
    match error.status() {
        Some(status) => matches!(status.code, 409 | 429 | 500..),
        // No answer at all. Who does not lead leaves it to the one that does.
        None => !error.is_not_leading(),
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
    let suffix = environment.random.suffix(10);
    let name = regarding["name"].as_str().unwrap_or("object");
    let name = within(name, LONGEST_NAME - suffix.len() - 1).trim_end_matches(['-', '.']);
    // Events about cluster-scoped objects live in the default namespace.
    let namespace = regarding["namespace"].as_str().unwrap_or("default");
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{name}.{suffix}"),
            "namespace": namespace,
        },
        "eventTime": environment.clock.micro_time(),
        "reportingController": reporter.as_ref(),
        "reportingInstance": reporter.as_ref(),
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": within(&event.reason, LONGEST_WORD),
        "action": within(&event.action, LONGEST_WORD),
        "note": within(&event.note, LONGEST_NOTE),
        "regarding": regarding,
    })
}

/// As much of a text as fits into so many bytes, which is what the server counts.
fn within(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

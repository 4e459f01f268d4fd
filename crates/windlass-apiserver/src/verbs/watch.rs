//! Watch: a cursor over a table's changes.
//!
//! A watch holds nothing but the revision it has seen. Woken by a write, it reads the changes
//! after that revision and sends them; one that falls behind what is kept is told to start over.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use super::form::to_requested;
use super::list::too_large;
use super::options::parse_int;
use super::present::{object_bytes, stored_metadata_only};
use super::{Call, list, present};
use crate::hooks::{EventKind, Hooks, Watch, WatchEnd, WatchEvent};
use crate::http::{Answer, Body, BodyError, Query, Shape, Wanted};
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result, field};
use crate::store::{Change, ChangeKind, Listing, RevisionError, Stored};
use crate::table;
use crate::verbs::selector::Selector;

/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// How long before its end it gets a last one, from which the next watch goes on.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// No watch lasts longer than a year, whatever it asks for.
const MAX_TIMEOUT_SECONDS: u64 = 365 * 24 * 3600;
/// How many changes are made ready at a time: a client that reads slowly holds no more than these.
const CHANGES_AT_ONCE: usize = 100;
/// How many bytes of its own a watch makes ready at a time: beyond this, or one event.
const ENOUGH: usize = 64 * 1024;
/// Objects from this size on are sent from where the store has them, in a piece of their own;
/// smaller ones are copied into one piece with what is around them.
const LARGE: usize = 16 * 1024;
/// A watch from a future version that is never reached is not told so: it waits.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

pub(super) fn run(call: &Call<'_>) -> Result<Answer> {
    let mut selector = Selector::from_query(&call.query, &call.resource)?;
    if let Some(name) = &call.request.name {
        selector.require_name(name);
    }
    let send_initial = initial_events_wanted(&call.query)?;
    let version = list::version_asked(&call.query)?;
    let bookmarks = call.query.flag("allowWatchBookmarks");
    let asked = call.query.get("timeoutSeconds");
    let seconds = match asked.map(parse_int).transpose()? {
        Some(seconds) if seconds > 0 => seconds.unsigned_abs().min(MAX_TIMEOUT_SECONDS),
        // At random, so that watches that began together do not end together.
        _ => {
            let least = call.server.min_request_timeout().as_secs();
            call.server.random().between(least, 2 * least)
        }
    };
    let store = call.server.store();
    let changed = store.changed(&call.resource.table);
    let observed = call
        .server
        .hooks()
        .map(|hooks| Observed::begin(hooks, described(call, version.unwrap_or_default())));
    let ends = Instant::now() + Duration::from_secs(seconds);
    let mut cursor = Cursor {
        server: call.server.clone(),
        namespace: call.request.namespace.clone(),
        observed,
        resource: call.resource.clone(),
        selector,
        wanted: call.wanted,
        options: present::table_options(call),
        columns_sent: false,
        seen: version.unwrap_or_default(),
        ready: VecDeque::new(),
        made: 0,
        present: None,
        changed,
        ends: Box::pin(sleep_until(ends)),
        bookmark: bookmarks.then(|| Box::pin(sleep_until(next_bookmark(ends)))),
        over: false,
    };
    let initial = send_initial
        || (version.unwrap_or_default() == 0 && call.query.get("sendInitialEvents").is_none());
    if version.is_none_or(|version| version == 0) && !initial {
        cursor.seen = store.revision();
    }
    if send_initial && cursor.seen > store.revision() {
        cursor.fail(&too_large(cursor.seen, store.revision()));
    } else if initial {
        // One without a version wants the present.
        let past = version.and_then(|oldest| list::of_the_past(call, oldest));
        cursor.begin_with(past, send_initial && bookmarks)?;
    }
    let chunks = futures::stream::unfold(cursor, |mut cursor| async move {
        Some((cursor.next().await?, cursor))
    });
    Ok(Answer::stream("application/json", Body::stream(chunks)))
}

/// This watch as hooks see it.
fn described(call: &Call<'_>, from: u64) -> Watch {
    let text = |key| call.query.get(key).unwrap_or_default().to_owned();
    Watch {
        id: call.server.next_watch(),
        who: call.who.clone(),
        request: call.request.clone(),
        label_selector: text("labelSelector"),
        field_selector: text("fieldSelector"),
        metadata_only: call.wanted.shape == Shape::Metadata,
        from,
    }
}

fn initial_events_wanted(query: &Query) -> Result<bool> {
    let matching = query.get("resourceVersionMatch");
    let mut causes = Vec::new();
    match (query.get("sendInitialEvents").is_some(), matching) {
        (true, Some("NotOlderThan")) => return Ok(query.flag("sendInitialEvents")),
        (true, other) => {
            causes.push(field::forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
            if let Some(other) = other {
                let allowed = ["\"NotOlderThan\"".to_owned()];
                let path = "resourceVersionMatch";
                causes.push(field::not_supported(path, &other.into(), &allowed));
            }
        }
        (false, Some(_)) => causes.push(field::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        (false, None) => return Ok(false),
    }
    Err(super::options::invalid("ListOptions", &causes))
}

/// The objects there were when a watch began. They are the store's own: a client that reads slowly,
/// or not at all, holds no copies of them.
struct Present {
    objects: std::vec::IntoIter<Arc<Stored>>,
    revision: u64,
    end_mark: bool,
}

/// The hooks of a server, and the watch that they are shown.
struct Observed {
    hooks: Arc<dyn Hooks>,
    watch: Watch,
}

impl Observed {
    fn begin(hooks: &Arc<dyn Hooks>, watch: Watch) -> Arc<Self> {
        hooks.watch_began(&watch);
        let hooks = hooks.clone();
        Arc::new(Self { hooks, watch })
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.hooks.watch_ended(&self.watch);
    }
}

/// What is to be sent next.
enum Ready {
    /// As it stands.
    Piece(Bytes),
    /// An event about an object, whose bytes are mostly the store's: a client that does not read
    /// would otherwise hold a copy of everything it watches.
    Event(&'static str, Bytes),
}

/// What ends an event.
const EVENT_END: &[u8] = b"}\n";
/// How many bytes an event has around its object, at most.
const EVENT_FRAME: usize = 40;

fn event_start(kind: &str) -> String {
    ["{\"type\":\"", kind, "\",\"object\":"].concat()
}

impl Ready {
    fn append_to(&self, piece: &mut Vec<u8>) {
        match self {
            Self::Piece(ready) => piece.extend_from_slice(ready),
            Self::Event(kind, object) => {
                for part in [event_start(kind).as_bytes(), object, EVENT_END] {
                    piece.extend_from_slice(part);
                }
            }
        }
    }
}

/// A watch under way.
struct Cursor {
    server: ApiServer,
    /// The namespace that it watches, if it does not watch all.
    namespace: Option<String>,
    /// None when no hook looks on.
    observed: Option<Arc<Observed>>,
    resource: Arc<Resource>,
    selector: Selector,
    wanted: Wanted,
    options: table::Options,
    /// A Table's columns are told once.
    columns_sent: bool,
    /// Every change up to this revision was sent or is ready to be.
    seen: u64,
    ready: VecDeque<Ready>,
    /// How many bytes were made, not taken from the store, since nothing was ready.
    made: usize,
    /// What is there and still to be sent, before any change.
    present: Option<Present>,
    changed: Arc<Notify>,
    /// Kept, so that no event has to ask the timer anew.
    ends: Pin<Box<Sleep>>,
    /// When the next bookmark is due, if any were asked for.
    bookmark: Option<Pin<Box<Sleep>>>,
    over: bool,
}

/// When a watch that ends then gets its next bookmark.
fn next_bookmark(ends: Instant) -> Instant {
    let now = Instant::now();
    let regular = now + BOOKMARK_INTERVAL;
    let last = ends.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
    last.map_or(regular, |last| last.min(regular))
}

impl Cursor {
    /// The next chunk to send; `None` ends the watch.
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        let changed = self.changed.clone();
        let observed = self.observed.clone();
        let ends_early = async {
            match &observed {
                Some(observed) => observed.hooks.ends(&observed.watch).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(ends_early);
        loop {
            if let Some(piece) = self.next_piece() {
                return Some(Ok(piece));
            }
            self.made = 0;
            if self.over {
                return None;
            }
            // Listened for before the changes are read: none slips through in between.
            let woken = changed.notified();
            let progress = tokio::select! {
                biased;
                end = &mut ends_early => return self.end_early(end),
                progress = self.make_ready() => progress,
            };
            if progress || !self.ready.is_empty() {
                continue;
            }
            if self.is_superseded() {
                return None;
            }
            let bookmark = async {
                match &mut self.bookmark {
                    Some(due) => due.as_mut().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = woken => {}
                end = &mut ends_early => return self.end_early(end),
                () = self.ends.as_mut() => self.over = true,
                () = bookmark => {
                    let next = next_bookmark(self.ends.deadline());
                    self.bookmark = Some(Box::pin(sleep_until(next)));
                    let revision = self.seen.max(self.server.store().revision());
                    self.push("BOOKMARK", &self.bookmark_object(revision, false));
                }
            }
        }
    }

    /// Ends as a hook wants it, and answers the last chunk.
    fn end_early(&mut self, end: WatchEnd) -> Option<Result<Bytes, BodyError>> {
        match end {
            WatchEnd::Closed => None,
            WatchEnd::Reset => {
                self.over = true;
                Some(Err(BodyError("connection reset".to_owned())))
            }
            WatchEnd::Expired => {
                self.expire(self.server.store().revision());
                self.next_piece().map(Ok)
            }
        }
    }

    /// How much is made ready at a time. An event that a hook holds must not hold those before it.
    fn at_once(&self) -> usize {
        match self.observed {
            Some(_) => 1,
            None => CHANGES_AT_ONCE,
        }
    }

    /// Makes the next chunks ready; whether there was anything to look at.
    async fn make_ready(&mut self) -> bool {
        if let Some(present) = self.present.take() {
            self.send_some_of(present).await;
            return true;
        }
        self.read_changes().await
    }

    /// Waits until the hooks let an event pass.
    async fn pass_hooks(&self, kind: EventKind, revision: u64, object: &Stored, initial: bool) {
        let Some(observed) = &self.observed else {
            return;
        };
        let event = WatchEvent {
            kind,
            revision,
            namespace: object.key.namespace(),
            name: object.key.name(),
            object: &object.json,
            initial,
        };
        observed.hooks.deliver(&observed.watch, event).await;
    }

    /// The next piece of what is ready: small events together, a large object by itself.
    fn next_piece(&mut self) -> Option<Bytes> {
        let mut together = Vec::new();
        while let Some(ready) = self.ready.pop_front() {
            let more = match &ready {
                Ready::Piece(piece) => piece.len(),
                Ready::Event(_, object) => EVENT_FRAME + object.len(),
            };
            if more < LARGE && together.len() + more <= LARGE {
                if self.ready.is_empty() && together.is_empty() {
                    together.reserve_exact(more);
                }
                ready.append_to(&mut together);
            } else if together.is_empty() {
                return Some(self.start_of(ready));
            } else {
                self.ready.push_front(ready);
                break;
            }
        }
        (!together.is_empty()).then(|| together.into())
    }

    /// The start of something large; its rest is ready to follow.
    fn start_of(&mut self, ready: Ready) -> Bytes {
        match ready {
            Ready::Piece(piece) => piece,
            Ready::Event(kind, object) => {
                self.ready
                    .push_front(Ready::Piece(Bytes::from_static(EVENT_END)));
                self.ready.push_front(Ready::Piece(object));
                event_start(kind).into()
            }
        }
    }

    /// Whether the definition of the kind has changed or gone: the watch ends, to be started anew.
    fn is_superseded(&self) -> bool {
        let resource = &self.resource;
        let served = || {
            self.server
                .registry()
                .find(&resource.group, &resource.version, &resource.plural)
        };
        resource.is_custom() && served().is_none_or(|served| !Arc::ptr_eq(&served, resource))
    }

    /// Begins with the objects there are now, or with those of the past.
    fn begin_with(&mut self, past: Option<Listing>, end_mark: bool) -> Result<()> {
        let published = self.server.store().published();
        let (table, namespace) = (&self.resource.table, self.namespace.as_deref());
        let present = || published.list(table, namespace, None, None);
        let listing = past
            .map_or_else(present, Ok)
            .map_err(|_| ApiError::internal("the present is always there to be listed"))?;
        let mut objects = listing.objects;
        objects.retain(|object| self.selector.matches(object));
        self.seen = listing.revision;
        self.present = Some(Present {
            objects: objects.into_iter(),
            revision: listing.revision,
            end_mark,
        });
        Ok(())
    }

    /// Makes some of the objects ready, as ADDED; the mark of their end comes after the last.
    async fn send_some_of(&mut self, mut present: Present) {
        for object in present.objects.by_ref().take(self.at_once()) {
            let kind = EventKind::Added;
            self.pass_hooks(kind, object.revision, &object, true).await;
            self.push_object(kind, &object.json).await;
            if self.made >= ENOUGH {
                break;
            }
        }
        if present.objects.len() > 0 {
            self.present = Some(present);
        } else if present.end_mark {
            self.push("BOOKMARK", &self.bookmark_object(present.revision, true));
        }
    }

    /// Makes some changes ready; whether there were any.
    async fn read_changes(&mut self) -> bool {
        let store = self.server.store();
        match store.changes_after(&self.resource.table, self.seen, self.at_once()) {
            Err(RevisionError::Compacted(oldest)) => {
                self.expire(oldest);
                false
            }
            // A version that is still to come is waited for.
            Err(RevisionError::Future) => false,
            Ok(changes) => {
                for change in &changes {
                    self.send_change(change).await;
                    self.seen = change.revision;
                    if self.made >= ENOUGH {
                        break;
                    }
                }
                !changes.is_empty()
            }
        }
    }

    /// Fails, because the changes are remembered from `oldest` only.
    fn expire(&mut self, oldest: u64) {
        let seen = self.seen;
        self.fail(&ApiError::expired(format!(
            "too old resource version: {seen} ({oldest})"
        )));
    }

    async fn send_change(&mut self, change: &Change) {
        if self
            .namespace
            .as_deref()
            .is_some_and(|namespace| namespace != change.object.key.namespace())
        {
            return;
        }
        let is = change.kind != ChangeKind::Deleted && self.selector.matches(&change.object);
        let was = change
            .previous
            .as_ref()
            .is_some_and(|previous| self.selector.matches(previous));
        let kind = match (was, is) {
            (false, false) => return,
            (false, true) => EventKind::Added,
            (true, true) => EventKind::Modified,
            (true, false) => EventKind::Deleted,
        };
        self.pass_hooks(kind, change.revision, &change.object, false)
            .await;
        if kind != EventKind::Deleted || change.kind == ChangeKind::Deleted {
            self.push_object(kind, &change.object.json).await;
        } else if let Some(previous) = change.previous_at_this_revision() {
            // It left the selector: it is shown as it was, at the version that made it leave.
            self.push_object(kind, &previous).await;
        }
    }

    async fn push_object(&mut self, kind: EventKind, json: &Bytes) {
        if let Err(error) = self.try_push_object(kind.as_str(), json).await {
            self.fail(&error);
        }
    }

    async fn try_push_object(&mut self, kind: &'static str, json: &Bytes) -> Result<()> {
        match self.wanted.shape {
            Shape::Object => {
                let object = object_bytes(json, &self.resource, &self.server).await?;
                if object.as_ptr() != json.as_ptr() {
                    self.made += object.len();
                }
                self.ready.push_back(Ready::Event(kind, object));
            }
            Shape::Metadata => {
                let object = stored_metadata_only(json, &self.resource);
                self.made += object.len();
                self.ready.push_back(Ready::Event(kind, object.into()));
            }
            Shape::Table => {
                let object = self.value(json).await?;
                let revision = object["metadata"]["resourceVersion"].clone();
                let options = table::Options {
                    now: self.server.clock().now(),
                    ..self.options
                };
                let mut table = table::of(
                    &self.resource,
                    &[object],
                    &json!({"resourceVersion": revision}),
                    options,
                );
                if std::mem::replace(&mut self.columns_sent, true) {
                    table["columnDefinitions"] = Value::Null;
                }
                self.push(kind, &table);
            }
        }
        Ok(())
    }

    async fn value(&self, json: &Bytes) -> Result<Value> {
        let stored = serde_json::from_slice(json).unwrap_or_default();
        to_requested(&self.server, &self.resource, stored).await
    }

    fn bookmark_object(&self, revision: u64, end_of_initial: bool) -> Value {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end_of_initial {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        match self.wanted.shape {
            Shape::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            _ => {
                json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata})
            }
        }
    }

    fn fail(&mut self, error: &ApiError) {
        self.push("ERROR", &error.to_status());
        self.over = true;
    }

    fn push(&mut self, kind: &str, object: &Value) {
        let event = format!("{}\n", json!({"type": kind, "object": object}));
        self.made += event.len();
        self.ready.push_back(Ready::Piece(event.into()));
    }
}

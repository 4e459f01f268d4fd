//! The server's edges, where a test looks on and disturbs.
//!
//! Hooks see each request before it is applied and before it is answered, each event of each watch
//! before it is sent, and each list whose client accepts a past revision. They can refuse, hold
//! and lose, never change: whatever a client sees, a real server could have shown it. A server
//! without hooks does nothing for them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;

use crate::auth::Identity;
use crate::http::ResourceRequest;
use crate::store::{ChangeKind, Recorded};

/// What a hook answers, when it does: until then, what it was asked about is held.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is applied.
    Pass,
    /// It is answered with this code and message, and not applied.
    Fail(StatusCode, String),
    /// Its connection is reset, and it is not applied.
    Reset,
}

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is sent.
    Send,
    /// Its connection is reset: the client does not learn whether the request was applied.
    Lose,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// As at its timeout: the stream ends.
    Closed,
    /// Its connection is reset.
    Reset,
    /// As when it is behind what is remembered: an ERROR event, 410 Expired.
    Expired,
}

/// How a request ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Status code of the answer.
    pub code: StatusCode,
    /// Whether it was a write that succeeded. One that changed nothing has no changes.
    pub wrote: bool,
    /// What it changed, in order: empty for a read, a refusal, a dry run, and a write that changes
    /// nothing.
    pub changes: Vec<Written>,
    /// Whether the write named the uid or the version of the object that it means: it cannot have
    /// hit another.
    pub guarded: bool,
    /// Whether it was a server-side apply, which leaves the fields of others alone.
    pub applied: bool,
}

impl Outcome {
    /// A request that changed nothing.
    pub(crate) fn refused(code: StatusCode) -> Self {
        Self {
            code,
            wrote: false,
            changes: Vec::new(),
            guarded: false,
            applied: false,
        }
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was created, or began to match a selector.
    Added,
    /// It was changed.
    Modified,
    /// It was deleted, or ceased to match a selector.
    Deleted,
}

impl EventKind {
    /// As in a watch: `ADDED`, `MODIFIED` or `DELETED`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl From<ChangeKind> for EventKind {
    fn from(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Added => Self::Added,
            ChangeKind::Modified => Self::Modified,
            ChangeKind::Deleted => Self::Deleted,
        }
    }
}

/// One change of one stored object.
#[derive(Clone)]
pub struct Written(Recorded);

impl From<Recorded> for Written {
    fn from(recorded: Recorded) -> Self {
        Self(recorded)
    }
}

impl Written {
    /// `deployments.apps`.
    pub fn resource(&self) -> &str {
        self.0.table()
    }

    /// Empty for an object of the whole cluster.
    pub fn namespace(&self) -> &str {
        self.0.change.object.key.namespace()
    }

    /// Name of the object.
    pub fn name(&self) -> &str {
        self.0.change.object.key.name()
    }

    /// What happened.
    pub fn kind(&self) -> EventKind {
        self.0.change.kind.into()
    }

    /// The resourceVersion that the change has.
    pub fn revision(&self) -> u64 {
        self.0.change.revision
    }

    /// The revision that the object had before it, if it was there.
    pub fn revision_before(&self) -> Option<u64> {
        let previous = self.0.change.previous.as_ref();
        previous.map(|previous| previous.revision)
    }

    /// The stored JSON before it, if the object was there.
    pub fn before(&self) -> Option<&Bytes> {
        let previous = self.0.change.previous.as_ref();
        previous.map(|previous| &previous.json)
    }

    /// The stored JSON after it; for a deletion, what was deleted.
    pub fn after(&self) -> &Bytes {
        &self.0.change.object.json
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, resource) = (self.kind().as_str(), self.resource());
        let (namespace, name) = (self.namespace(), self.name());
        write!(
            f,
            "{kind} {resource} {namespace}/{name} at {}",
            self.revision()
        )
    }
}

/// A watch, from its first event to its end.
#[derive(Clone)]
pub struct Watch {
    /// Its number: no two watches of one server have the same.
    pub id: u64,
    /// The client.
    pub who: Identity,
    /// What it watches.
    pub request: ResourceRequest,
    /// As in the query; empty when it watches everything.
    pub label_selector: String,
    /// As in the query; empty when it watches everything.
    pub field_selector: String,
    /// Whether it gets the metadata of objects only.
    pub metadata_only: bool,
    /// The revision that it began with.
    pub from: u64,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, what) = (&self.who.user, &self.request.resource);
        write!(f, "watch {} of {what} by {who}", self.id)
    }
}

/// One event on its way to one watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchEvent<'a> {
    /// What the watch is shown.
    pub kind: EventKind,
    /// The revision that the watch has seen once it has this event.
    pub revision: u64,
    /// Empty for an object of the whole cluster.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// Its JSON, as stored.
    pub object: &'a Bytes,
    /// Whether it shows what was there when the watch began, rather than a change.
    pub initial: bool,
}

/// A list (or the first state of a watch) whose client accepts a past revision.
#[derive(Clone, Copy, Debug)]
pub struct StaleRead<'a> {
    /// The client.
    pub who: &'a Identity,
    /// What it reads.
    pub request: &'a ResourceRequest,
    /// The oldest revision that its client accepts: 0 for any.
    pub not_older_than: u64,
    /// The present.
    pub newest: u64,
}

/// What looks on and disturbs.
pub trait Hooks: Send + Sync {
    /// Before a request is applied.
    fn before<'a>(
        &'a self,
        _who: &'a Identity,
        _request: &'a ResourceRequest,
    ) -> HookFuture<'a, Verdict> {
        Box::pin(std::future::ready(Verdict::Pass))
    }

    /// After it was applied and before its client has the answer. A future that never ends is a
    /// client that died.
    fn after<'a>(
        &'a self,
        _who: &'a Identity,
        _request: &'a ResourceRequest,
        _outcome: Outcome,
    ) -> HookFuture<'a, Reply> {
        Box::pin(std::future::ready(Reply::Send))
    }

    /// When a watch begins.
    fn watch_began(&self, _watch: &Watch) {}

    /// Before an event is sent. The later events of that watch wait behind it, no other watch does.
    fn deliver<'a>(&'a self, _watch: &'a Watch, _event: WatchEvent<'a>) -> HookFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends when the watch is to end; by default it never does.
    fn ends<'a>(&'a self, _watch: &'a Watch) -> HookFuture<'a, WatchEnd> {
        Box::pin(std::future::pending())
    }

    /// When a watch has ended.
    fn watch_ended(&self, _watch: &Watch) {}

    /// The revision that a read is answered at. One that its client does not accept, or that is no
    /// longer remembered, is not taken: the present is.
    fn revision_of(&self, _read: StaleRead<'_>) -> Option<u64> {
        None
    }
}

/// What a client sees of a request whose connection is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection reset")]
pub struct ConnectionReset;

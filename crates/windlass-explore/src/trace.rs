//! What happened in a run, in order.

use std::time::Duration;

use bytes::Bytes;
use windlass_apiserver::hooks::{EventKind, Written};

use crate::plan::Point;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Record {
    /// When, since the run began.
    pub at: Duration,
    /// During which step of the scenario; 0 is the start of the operator.
    pub step: usize,
    /// What.
    pub happened: Happened,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Happened {
    /// A step of the scenario began.
    Step(String),
    /// The operator is about to write.
    Attempt(Point),
    /// A write of the operator was applied or refused.
    Write {
        /// Which write; its text has the fields that it changed.
        at: Point,
        /// The request: `patch deployments.apps web in default`.
        request: String,
        /// Status code.
        code: u16,
        /// What it changed; nothing when it had no effect.
        changes: Vec<Change>,
        /// Objects that had changed by then without the operator having been shown it.
        unseen: Vec<String>,
        /// The attempt that it was, if another writer could have been quicker.
        conflicts: Option<Point>,
    },
    /// Another client, such as a controller of the cluster or the user, changed something.
    Other {
        /// Who.
        user: String,
        /// What.
        changes: Vec<Change>,
    },
    /// An event was sent to the operator.
    Event {
        /// Which.
        at: Point,
        /// The revision that it shows.
        revision: u64,
        /// The object: `deployments.apps web in default`.
        object: String,
        /// Whether it shows what was there when the watch began.
        initial: bool,
    },
    /// The operator was started.
    Started,
    /// The operator ended by itself.
    Ended(String),
    /// A fault was carried out.
    Fault(String),
    /// Everything has settled.
    Settled,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// `deployments.apps web in default`.
    pub object: String,
    /// Its resource.
    pub resource: String,
    /// What happened to it.
    pub kind: EventKind,
    /// The revision that it has since.
    pub revision: u64,
    /// Its JSON before.
    pub before: Option<Bytes>,
    /// Its JSON after; of a deletion what was deleted.
    pub after: Bytes,
}

impl Change {
    pub(crate) fn of(written: &Written) -> Self {
        Self {
            object: crate::names::object(written.resource(), written.namespace(), written.name()),
            resource: written.resource().to_owned(),
            kind: written.kind(),
            revision: written.revision(),
            before: written.before().cloned(),
            after: written.after().clone(),
        }
    }
}

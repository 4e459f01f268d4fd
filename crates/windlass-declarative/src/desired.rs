//! [`Desired`]: what a renderer answers.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use windlass::Event;

/// What should be there for a parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The objects, in stages: those of a stage are applied when everything in the stages before it
    /// is ready. What no stage holds is deleted once all stages are applied.
    pub stages: Vec<Vec<Wanted>>,
    /// The parent's whole status; none leaves it as it is.
    pub status: Option<Value>,
    /// Labels of the parent: set, or removed by a none. Others stay.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations of the parent: set, or removed by a none. Others stay.
    pub annotations: BTreeMap<String, Option<String>>,
    /// When to render again even if nothing changes.
    pub again: Option<Duration>,
    /// While the parent is being deleted: whether it may go. Without a meaning otherwise.
    pub done: bool,
    /// Nothing is known: everything stays as it is, and the other fields but `again` and `events`
    /// mean nothing.
    pub unchanged: bool,
    /// Events about the parent.
    pub events: Vec<Event>,
}

impl Desired {
    /// These objects, all in one stage.
    pub fn of(objects: impl IntoIterator<Item = Wanted>) -> Self {
        Self {
            stages: vec![objects.into_iter().collect()],
            ..Self::default()
        }
    }

    /// The objects of all stages.
    pub fn objects(&self) -> impl DoubleEndedIterator<Item = &Wanted> {
        self.stages.iter().flatten()
    }
}

/// One object that should be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The object, with `apiVersion`, `kind` and `metadata.name`. A namespaced object without a
    /// namespace is in that of the parent.
    pub object: Value,
    /// How one that is there already is changed.
    pub method: Method,
    /// When the stage after this one may begin.
    pub ready: Ready,
    /// Whether it stays when it is no longer wanted, or when the parent is deleted.
    pub keep: bool,
    /// Whether one that is there and belongs to nobody is taken over. Otherwise it is an error.
    pub adopt: bool,
}

impl Wanted {
    /// An object that is changed in place and waited for as its kind says.
    pub fn new(object: Value) -> Self {
        Self {
            object,
            method: Method::default(),
            ready: Ready::default(),
            keep: false,
            adopt: false,
        }
    }

    /// With this method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Ready when this holds.
    #[must_use]
    pub fn ready(mut self, ready: Ready) -> Self {
        self.ready = ready;
        self
    }

    /// Never deleted by the engine.
    #[must_use]
    pub fn keep(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Taken over if it is there and belongs to nobody.
    #[must_use]
    pub fn adopt(mut self) -> Self {
        self.adopt = true;
        self
    }
}

/// How an object that is there already is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// By server-side apply.
    #[default]
    InPlace,
    /// Not at all: it is made, and made again when it was deleted.
    OnDelete,
    /// Deleted, and made again when it is gone.
    Recreate,
}

/// When an object counts as ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// As its kind says: a Deployment when all replicas are available, a Job when it is complete, a
    /// Pod when it is Ready, any other kind when it exists.
    #[default]
    ByKind,
    /// When it exists.
    Exists,
    /// When all these conditions hold.
    Conditions(Vec<Check>),
}

/// A condition in an object's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its type.
    pub kind: String,
    /// The status it must have; none for any.
    pub status: Option<String>,
    /// The reason it must have; none for any.
    pub reason: Option<String>,
}

impl Check {
    /// Whether an object has this condition.
    pub fn holds(&self, object: &Value) -> bool {
        let conditions = object
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| {
            let is = |field: &str, wanted: &Option<String>| {
                wanted
                    .as_ref()
                    .is_none_or(|wanted| condition[field] == **wanted)
            };
            condition["type"] == *self.kind
                && is("status", &self.status)
                && is("reason", &self.reason)
        })
    }
}

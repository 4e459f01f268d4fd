//! What becomes of an object that is to go: by its finalizers, and by its kind's strategy.

use std::time::Duration;

use serde_json::{Value, json};

use super::Options;
use crate::clock::Clock;
use crate::kinds::Strategy;
use crate::object::{self, set_meta};
use crate::registry::resource::Resource;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// What a delete does to an object.
pub(crate) enum Outcome {
    /// It goes.
    Gone,
    /// It is marked, and stays until its finalizers are removed or its grace is over.
    Marked(Value),
    /// It is marked and, having no grace left, goes at once: watches see both.
    MarkedAndGone(Value),
    /// It is going already, and nothing changes.
    Unchanged,
}

/// An object that is to go, and what was asked of it.
pub(crate) struct Deletion<'a> {
    pub(crate) old: &'a Value,
    pub(crate) options: &'a Options,
    pub(crate) resource: &'a Resource,
    pub(crate) clock: &'a Clock,
}

impl Deletion<'_> {
    /// The finalizers the object is to have while it goes.
    pub(crate) fn finalizers(&self) -> Vec<String> {
        self.options.finalizers(self.old, self.resource.strategy)
    }

    /// The object with these finalizers.
    pub(crate) fn with_finalizers(&self, finalizers: &[String]) -> Value {
        let mut marked = self.old.clone();
        let kept = (!finalizers.is_empty()).then(|| json!(finalizers));
        set_meta(&mut marked, "finalizers", kept);
        marked
    }

    /// The object is marked so, if that changes anything.
    pub(crate) fn marked_as(&self, marked: Value) -> Outcome {
        if marked == *self.old {
            Outcome::Unchanged
        } else {
            Outcome::Marked(marked)
        }
    }

    /// What becomes of most objects.
    pub(crate) fn outcome(&self) -> Outcome {
        let finalizers = self.finalizers();
        if finalizers.is_empty() {
            return Outcome::Gone;
        }
        let mut marked = self.with_finalizers(&finalizers);
        mark(&mut marked, self.old, 0, self.clock);
        self.marked_as(marked)
    }
}

impl Options {
    /// The finalizers the object is to have while it goes.
    fn finalizers(&self, object: &Value, strategy: &dyn Strategy) -> Vec<String> {
        let mut finalizers: Vec<String> = object::finalizers(object)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let policy = match (self.propagation.as_deref(), self.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(orphan)) => Some(if orphan { "Orphan" } else { "Background" }),
            // A finalizer set earlier tells what was wanted.
            (None, None)
                if finalizers
                    .iter()
                    .any(|name| name == FOREGROUND || name == ORPHAN) =>
            {
                None
            }
            (None, None) if strategy.orphans_by_default() => Some("Orphan"),
            (None, None) => Some("Background"),
        };
        // Nothing depends on events.
        let policy = policy.filter(|_| strategy.may_have_dependents());
        let wanted = match policy {
            None => return finalizers,
            Some("Foreground") => Some(FOREGROUND),
            Some("Orphan") => Some(ORPHAN),
            Some(_) => None,
        };
        let is_wanted =
            |name: &String| Some(name.as_str()) == wanted || (name != FOREGROUND && name != ORPHAN);
        // Who has the right ones keeps their order.
        let is_there = wanted.is_none_or(|wanted| finalizers.iter().any(|name| name == wanted));
        if is_there && finalizers.iter().all(is_wanted) {
            return finalizers;
        }
        finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
        finalizers.extend(wanted.map(str::to_owned));
        finalizers
    }
}

/// Sets what says that an object is going away.
pub(crate) fn mark(object: &mut Value, old: &Value, grace: i64, clock: &Clock) {
    let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
    let going = object::is_terminating(old);
    if going && left.is_some_and(|left| left <= grace) {
        return;
    }
    let later = Duration::from_secs(grace.unsigned_abs());
    let at = clock.after_seconds(later);
    set_meta(object, "deletionTimestamp", Some(at.into()));
    set_meta(object, "deletionGracePeriodSeconds", Some(grace.into()));
    if let (Some(generation), false) = (old["metadata"]["generation"].as_i64(), going) {
        set_meta(
            object,
            "generation",
            Some(generation.saturating_add(1).into()),
        );
    }
}

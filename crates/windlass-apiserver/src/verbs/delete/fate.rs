//! What becomes of an object that is to go: by its finalizers, its grace and its kind.

use std::time::Duration;

use serde_json::{Value, json};

use super::Options;
use crate::object::{self, set_meta};
use crate::resource::Resource;
use crate::verbs::Call;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Kinds that leave their dependents alone unless told otherwise.
const ORPHANS_BY_DEFAULT: &[(&str, &str)] = &[("", "replicationcontrollers"), ("batch", "jobs")];

/// What a delete does to an object.
pub(super) enum Fate {
    /// It goes.
    Gone,
    /// It is marked, and stays until its finalizers are removed or its grace is over.
    Marked(Value),
    /// It is marked and, having no grace left, goes at once: watches see both.
    MarkedAndGone(Value),
    /// It is going already, and nothing changes.
    Going,
}

impl Options {
    /// The finalizers the object is to have while it goes.
    fn finalizers(&self, object: &Value, resource: &Resource) -> Vec<String> {
        let mut finalizers: Vec<String> = object::finalizers(object)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let address = (resource.group.as_str(), resource.plural.as_str());
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
            (None, None) if ORPHANS_BY_DEFAULT.contains(&address) && !resource.is_custom() => {
                Some("Orphan")
            }
            (None, None) => Some("Background"),
        };
        // Nothing depends on events.
        let policy = policy.filter(|_| resource.plural != "events" || resource.is_custom());
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

    /// Seconds a pod is given: none unless it runs on a node.
    fn grace_for(&self, pod: &Value) -> i64 {
        let scheduled = pod["spec"]["nodeName"]
            .as_str()
            .is_some_and(|node| !node.is_empty());
        let over = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        if !scheduled || over {
            return 0;
        }
        let asked = self
            .grace
            .or(pod["spec"]["terminationGracePeriodSeconds"].as_i64())
            .unwrap_or(30);
        one_at_least(asked)
    }
}

/// A negative period is one second.
fn one_at_least(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

impl Call<'_> {
    pub(super) fn fate(&self, old: &Value, options: &Options) -> Fate {
        let resource = &self.resource;
        if resource.is("", "pods") {
            return self.fate_of_pod(old, options);
        }
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            return self.fate_of_definition(old);
        }
        let finalizers = options.finalizers(old, resource);
        let mut marked = old.clone();
        set_finalizers(&mut marked, &finalizers);
        if resource.is("", "namespaces") {
            return self.fate_of_namespace(marked, old, &finalizers);
        }
        if finalizers.is_empty() {
            return Fate::Gone;
        }
        self.mark(&mut marked, old, 0);
        if marked == *old {
            Fate::Going
        } else {
            Fate::Marked(marked)
        }
    }

    /// A pod is given its grace; once it is going, only a shorter one changes anything.
    fn fate_of_pod(&self, old: &Value, options: &Options) -> Fate {
        let mut marked = old.clone();
        let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let grace = match (object::is_terminating(old), left) {
            (false, _) => options.grace_for(old),
            (true, None) => 0,
            (true, Some(left)) => match options.grace {
                Some(asked) if one_at_least(asked) < left => one_at_least(asked),
                // Nothing is waited for but the finalizers, of which more may be wanted now.
                _ if left == 0 => {
                    let finalizers = options.finalizers(old, &self.resource);
                    set_finalizers(&mut marked, &finalizers);
                    return if finalizers.is_empty() {
                        Fate::Gone
                    } else if marked == *old {
                        Fate::Going
                    } else {
                        Fate::Marked(marked)
                    };
                }
                _ => return Fate::Going,
            },
        };
        let finalizers = options.finalizers(old, &self.resource);
        set_finalizers(&mut marked, &finalizers);
        self.mark(&mut marked, old, grace);
        if grace == 0 && finalizers.is_empty() {
            Fate::MarkedAndGone(marked)
        } else {
            Fate::Marked(marked)
        }
    }

    /// A namespace stays until the finalizers in its spec are removed.
    fn fate_of_namespace(&self, mut marked: Value, old: &Value, finalizers: &[String]) -> Fate {
        let held = old["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
        // The first request only says that it is to go.
        if object::is_terminating(old) {
            return if !held && finalizers.is_empty() {
                Fate::Gone
            } else {
                Fate::Going
            };
        }
        let now = self.server.clock().now_seconds();
        set_meta(&mut marked, "deletionTimestamp", Some(now.into()));
        marked["status"]["phase"] = "Terminating".into();
        Fate::Marked(marked)
    }

    /// A definition stays until its objects are gone: see `custom`.
    fn fate_of_definition(&self, old: &Value) -> Fate {
        if object::is_terminating(old) {
            let has_grace = old["metadata"].get("deletionGracePeriodSeconds").is_some();
            return if object::finalizers(old).is_empty() {
                Fate::Gone
            } else if has_grace {
                Fate::Going
            } else {
                let mut marked = old.clone();
                set_meta(&mut marked, "deletionGracePeriodSeconds", Some(0.into()));
                Fate::Marked(marked)
            };
        }
        let mut marked = old.clone();
        let now = self.server.clock().now_seconds();
        windlass_schema::mark_terminating(&mut marked, &now);
        set_meta(&mut marked, "deletionTimestamp", Some(now.into()));
        Fate::Marked(marked)
    }

    /// Sets what says that an object is going away.
    pub(super) fn mark(&self, object: &mut Value, old: &Value, grace: i64) {
        let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let going = object::is_terminating(old);
        if going && left.is_some_and(|left| left <= grace) {
            return;
        }
        let later = Duration::from_secs(grace.unsigned_abs());
        let at = self.server.clock().after_seconds(later);
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
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let kept = (!finalizers.is_empty()).then(|| json!(finalizers));
    set_meta(object, "finalizers", kept);
}

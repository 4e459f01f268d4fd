//! `Pod`.

mod app_armor;
mod cell;
pub(crate) mod prepare;
pub(crate) mod resources;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission;
use crate::admission::quota::Measured;
use crate::kinds::{Admission, Fields, Strategy, Way, Writing, reset_fields};
use crate::node::Proxied;
use crate::object::{is_terminating, set_meta};
use crate::status::Result;
use crate::validation::at::Causes;

use crate::validation::warnings::pod as pod_warnings;
use crate::verbs::delete::{Deletion, Outcome, mark};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Pod;

impl Strategy for Pod {
    fn proxied(&self) -> Option<Proxied> {
        Some(Proxied::Pod)
    }

    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
        if old.is_none() {
            validation::check_new(object, causes);
        }
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_update(new, old, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_status(new, old, causes);
    }

    fn check_subresource(&self, new: &Value, old: &Value, subresource: &str, causes: &mut Causes) {
        match subresource {
            "ephemeralcontainers" => {
                validation::check(new, causes);
                validation::check_ephemeral_update(new, old, causes);
            }
            "resize" => {
                validation::check(new, causes);
                validation::check_resize(new, old, causes);
            }
            _ => {}
        }
    }

    fn pod_template(&self) -> Option<Way> {
        Some(&[])
    }

    fn measured(&self) -> Option<Measured> {
        Some(Measured::Pod)
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn reset_fields(&self, subresource: &str, has_status: bool) -> Fields {
        match subresource {
            "status" => &[&["spec"], &["metadata", "ownerReferences"]],
            _ => reset_fields(subresource, has_status),
        }
    }

    fn prepare_create(&self, object: &mut Value, writing: &Writing<'_>) -> Vec<String> {
        prepare::prepare_create(object, writing.clock);
        app_armor::adopt(object)
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        let owners = old["metadata"].get("ownerReferences").cloned();
        set_meta(new, "ownerReferences", owners);
        if new["status"].get("qosClass").is_none()
            && let Some(class) = old["status"].get("qosClass")
        {
            new["status"]["qosClass"] = class.clone();
        }
    }

    fn prepare_subresource(&self, new: &mut Value, old: &Value, subresource: &str) -> bool {
        let is_own = matches!(subresource, "ephemeralcontainers" | "resize");
        if is_own {
            prepare::keep_all_but(new, old, subresource);
        }
        is_own
    }

    fn admit(&self, admission: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::admit_pod(admission, object)
    }

    fn admit_change(&self, new: &mut Value, old: &Value) {
        admission::admit_pod_change(new, old);
    }

    fn admit_created(&self, admission: &Admission<'_>, object: &Value) -> Result<()> {
        admission::check_limits(admission, object)
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_pod(object)
    }

    fn row_conditions(&self, object: &Value) -> Option<Value> {
        cell::row_conditions(object)
    }

    fn delete(&self, deletion: &Deletion<'_>) -> Outcome {
        let old = deletion.old;
        let left = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let grace = match (is_terminating(old), left) {
            (false, _) => grace_for(deletion.options.grace, old),
            (true, None) => 0,
            (true, Some(left)) => match deletion.options.grace {
                Some(asked) if one_at_least(asked) < left => one_at_least(asked),
                // Nothing is waited for but the finalizers, of which more may be wanted now.
                _ if left == 0 => {
                    let finalizers = deletion.finalizers();
                    let marked = deletion.with_finalizers(&finalizers);
                    return if finalizers.is_empty() {
                        Outcome::Gone
                    } else {
                        deletion.marked_as(marked)
                    };
                }
                _ => return Outcome::Unchanged,
            },
        };
        let finalizers = deletion.finalizers();
        let mut marked = deletion.with_finalizers(&finalizers);
        mark(&mut marked, old, grace, deletion.clock);
        if grace == 0 && finalizers.is_empty() {
            Outcome::MarkedAndGone(marked)
        } else {
            Outcome::Marked(marked)
        }
    }

    fn cell(&self, object: &Value, column: &str, now: Timestamp) -> Option<Value> {
        cell::cell(object, column, now)
    }
}

/// Seconds a pod is given: none before it runs on a node.
fn grace_for(asked: Option<i64>, pod: &Value) -> i64 {
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
    let asked = asked
        .or(pod["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(30);
    one_at_least(asked)
}

/// A negative period is one second.
fn one_at_least(grace: i64) -> i64 {
    if grace < 0 { 1 } else { grace }
}

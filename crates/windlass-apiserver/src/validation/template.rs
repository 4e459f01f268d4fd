//! Templates of pods, as every workload has them.

use serde_json::Value;

use super::at::{At, Causes};
use super::{internal, label};
use crate::kinds::core::pod::validation as pod;
use crate::kinds::core::pod::validation::Form;
use crate::names;

/// All annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What is wrong with a template.
pub(crate) fn check(at: &At<'_, '_>, causes: &mut Causes) {
    let metadata = at.child("metadata");
    // Told as if the metadata were part of the template itself.
    let path = at.to_string();
    let here = At::root(metadata.value, &path);
    label::labels(&here.child("labels"), causes);
    annotations(&here.child("annotations"), causes);
    let spec = at.child("spec");
    pod::annotations(&here.child("annotations"), &spec, causes);
    pod::check_spec(&spec, "", Form::Template, causes);
    if !spec.list("ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        causes.push(spec.child("ephemeralContainers").forbidden(why));
    }
}

/// The keys of annotations, and how much there is of them.
pub(crate) fn annotations(at: &At<'_, '_>, causes: &mut Causes) {
    let mut size = 0;
    for (key, value) in at.value.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        for why in names::qualified_errors(&key.to_lowercase()) {
            causes.push(at.invalid_value(key.as_str(), &why));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(crate::status::field::too_long(
            at.to_string(),
            ANNOTATIONS_LIMIT as u64,
        ));
    }
}

/// Pods of controllers that keep them running are restarted whenever they end.
pub(crate) fn always_restarting(at: &At<'_, '_>, kind: &str, causes: &mut Causes) {
    let spec = at.child("spec");
    if spec.text("restartPolicy") != "Always" {
        causes.push(spec.child("restartPolicy").not_supported(&["Always"]));
    }
    if spec.has("activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(spec.child("activeDeadlineSeconds").forbidden(&why));
    }
}

/// The labels of a template must be what its selector selects.
pub(crate) fn selected(at: &At<'_, '_>, selector: &Value, causes: &mut Causes) {
    let metadata = at.child("metadata");
    let labels = metadata.child("labels");
    if !label::selects(selector, labels.value) {
        causes.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

/// A selector that may not change shows in Go's order.
pub(crate) fn immutable_selector(new: &At<'_, '_>, old: &Value, causes: &mut Causes) {
    if new.value != old {
        let shown = internal::show(new.value, "v1.LabelSelector");
        causes.push(new.invalid_shown(&shown, "field is immutable"));
    }
}

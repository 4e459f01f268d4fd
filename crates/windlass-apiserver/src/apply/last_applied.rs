//! Moving from client-side to server-side `kubectl apply`.
//!
//! A client-side apply leaves its configuration in an annotation, and its fields to the manager
//! `kubectl-client-side-apply`. When `kubectl` then applies on the server, what the annotation says
//! and the object still shows is its own: no conflict. And the annotation is kept in step, so that
//! the way back works too.

use serde_json::Value;

use super::fieldset::FieldSet;
use super::typed;
use crate::object::{meta_mut, set_meta};
use crate::registry::types::Type;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager this is for.
pub(super) const KUBECTL: &str = "kubectl";

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION].as_str()
}

/// The fields the last client-side apply set and nobody has changed since.
pub(super) fn still_as_applied(live: &Value, ty: &Type) -> FieldSet {
    let Some(last) = annotation(live).and_then(|text| serde_json::from_str::<Value>(text).ok())
    else {
        return FieldSet::default();
    };
    let difference = typed::compare(&last, live, ty);
    typed::fields_of(&last, ty)
        .difference(&difference.modified)
        .difference(&difference.added)
        .difference(&difference.removed)
}

/// Writes `config` into the annotation of `object`, if it has one.
pub(super) fn keep_in_step(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    set_meta(&mut config, "managedFields", None);
    if let Some(annotations) = meta_mut(&mut config)
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
    }
    object["metadata"]["annotations"][ANNOTATION] = format!("{config}\n").into();
}

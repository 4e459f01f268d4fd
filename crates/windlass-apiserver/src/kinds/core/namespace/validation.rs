//! Namespaces.

use serde_json::Value;

use crate::names;
use crate::object::is_terminating;
use crate::status::{Cause, field};
use crate::validation::at::At;

const NOT_STANDARD: &str = "name is neither a standard finalizer name nor is it fully qualified";

fn check_finalizer(name: &str, path: &str, causes: &mut Vec<Cause>) {
    for why in names::qualified_errors(name) {
        causes.push(field::invalid(path, &name.into(), &why));
    }
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    if !name.contains('/') && !standard.contains(&name) {
        causes.push(field::invalid(path, &name.into(), NOT_STANDARD));
    }
}

pub(crate) fn check(namespace: &Value, causes: &mut Vec<Cause>) {
    let finalizers = At::root(namespace, "").then("spec").then("finalizers");
    for finalizer in finalizers.elements() {
        check_finalizer(finalizer.as_text(), &finalizers.path(), causes);
    }
}

/// A namespace is active until it is deleted, and terminating from then on.
pub(crate) fn check_status(namespace: &Value, _: &Value, causes: &mut Vec<Cause>) {
    let phase = &namespace["status"]["phase"];
    let why = match is_terminating(namespace) {
        false if *phase != "Active" => "may only be 'Active' if `deletionTimestamp` is empty",
        true if *phase != "Terminating" => {
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
        }
        _ => return,
    };
    causes.push(field::invalid("status.Phase", phase, why));
}

/// What is wrong with the finalizers that `finalize` sets.
pub(crate) fn check_finalize(namespace: &Value, causes: &mut Vec<Cause>) {
    for finalizer in At::root(namespace, "")
        .then("spec")
        .then("finalizers")
        .elements()
    {
        check_finalizer(finalizer.as_text(), &finalizer.path(), causes);
    }
}

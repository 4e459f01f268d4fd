//! Claims of storage that are made by a template: a pod's, for as long as it lives, or a set's.

use crate::names;
use crate::validation::at::{At, Causes};
use crate::validation::label;

/// The template of a claim that a pod makes for itself.
pub(super) fn check_template(at: &At<'_, '_>, causes: &mut Causes) {
    let metadata = at.child("metadata");
    crate::validation::template::annotations(&metadata.child("annotations"), causes);
    label::labels(&metadata.child("labels"), causes);
    for (field, value) in metadata.value.as_object().into_iter().flatten() {
        let set = !value.is_null() && value != "";
        if set && !matches!(field.as_str(), "labels" | "annotations") {
            causes.push(metadata.child(field).forbidden("cannot be set"));
        }
    }
    check_spec(&at.child("spec"), causes);
}

/// What a template says of the storage it wants.
pub(crate) fn check_spec(spec: &At<'_, '_>, causes: &mut Causes) {
    let modes = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    if spec.list("accessModes").is_empty() {
        let why = "at least 1 access mode is required";
        causes.push(spec.child("accessModes").required(why));
    }
    label::selector(&spec.child("selector"), causes);
    for mode in spec.items("accessModes") {
        let text = mode.value.as_str().unwrap_or_default();
        if !modes.contains(&text) {
            let list = spec.child("accessModes");
            causes.push(list.not_supported_value(text, &modes));
        }
    }
    let resources = spec.child("resources");
    match resources
        .entries("requests")
        .find(|(name, _)| *name == "storage")
    {
        None => causes.push(crate::status::field::required(
            format!("{resources}[storage]"),
            "",
        )),
        Some((_, storage)) => {
            let size = crate::validation::resources::quantity(storage.value);
            if size.is_some_and(|size| size.is_negative() || size.is_zero()) {
                let path = format!("{resources}.requests[storage]");
                causes.push(crate::status::field::invalid(
                    path,
                    storage.value,
                    "must be greater than zero",
                ));
            }
        }
    }
    let class = spec.text("storageClassName");
    if !class.is_empty() {
        spec.child("storageClassName")
            .complain(names::subdomain_errors(class), causes);
    }
    spec.child("volumeMode")
        .one_of_if_set(&["Block", "Filesystem"], causes);
}

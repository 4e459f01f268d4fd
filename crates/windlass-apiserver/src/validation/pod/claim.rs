//! Claims that pods make: of devices, and of storage that lives as long as they do.

use std::collections::BTreeSet;

use super::super::at::{At, Causes};
use super::super::label;
use crate::names;

/// The claims of devices a pod uses.
pub(super) fn check(spec: &At<'_, '_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for claim in spec.items("resourceClaims") {
        match claim.text("name") {
            "" => causes.push(claim.child("name").required("")),
            name if !seen.insert(name) => causes.push(claim.child("name").duplicate()),
            name => claim
                .child("name")
                .complain(names::label_errors(name), causes),
        }
        let (own, template) = (
            claim.has("resourceClaimName"),
            claim.has("resourceClaimTemplateName"),
        );
        let wrong = match (own, template) {
            (true, true) => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => {
                Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
            }
            _ => None,
        };
        if let Some(why) = wrong {
            let shown = super::super::internal::show(claim.value, "core.PodResourceClaim");
            causes.push(claim.invalid_shown(&shown, why));
        }
        for field in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = claim.get(field) {
                let text = name.value.as_str().unwrap_or_default();
                name.complain(names::subdomain_errors(text), causes);
            }
        }
    }
}

/// The template of a claim that a pod makes for itself.
pub(super) fn check_template(at: &At<'_, '_>, causes: &mut Causes) {
    let metadata = at.child("metadata");
    super::super::template::annotations(&metadata.child("annotations"), causes);
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
pub(in crate::validation) fn check_spec(spec: &At<'_, '_>, causes: &mut Causes) {
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
            let size = super::super::resources::quantity(storage.value);
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

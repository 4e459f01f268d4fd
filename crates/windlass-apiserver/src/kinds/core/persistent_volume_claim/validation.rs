//! `PersistentVolumeClaims`.

use serde_json::Value;

use crate::kinds::core::persistent_volume::validation::{
    VOLUME_MODES, check_class, check_each_mode, check_not_negative,
};
use crate::names;
use crate::quantity::Quantity;
use crate::status::{Cause, field};
use crate::validation::at::{At, IMMUTABLE};
use crate::validation::{internal, label};

pub(crate) fn check(claim: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(claim, "").then("spec");
    let modes = spec.child("accessModes");
    if modes.len() == 0 {
        causes.push(modes.required("at least 1 access mode is required"));
    }
    label::selector(&spec.child("selector"), causes);
    check_each_mode(&modes, causes);
    let asked = spec.child("resources").then("requests").then_key("storage");
    let asked = At::root(asked.value, "spec.resources[storage]");
    match Quantity::parse(asked.as_text()) {
        None => causes.push(asked.required("")),
        Some(read) if read <= Quantity::ZERO => {
            causes.push(asked.invalid("must be greater than zero"));
        }
        Some(_) => {}
    }
    check_class(&spec.child("storageClassName"), causes);
    spec.child("volumeMode").one_of_if_set(VOLUME_MODES, causes);
    check_sources(&spec, causes);
    check_class(&spec.child("volumeAttributesClassName"), causes);
}

/// The old and the new way to say what a claim begins with.
fn check_sources(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (source, reference) = (spec.child("dataSource"), spec.child("dataSourceRef"));
    for source in [&source, &reference] {
        if source.is_set() {
            check_source(source, causes);
        }
    }
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let elsewhere = !reference.child("namespace").as_text().is_empty();
    let part = |at: &At<'_, '_>, name: &str| at.child(name).as_text().to_owned();
    let same = ["apiGroup", "kind", "name"]
        .iter()
        .all(|name| part(&source, name) == part(&reference, name));
    let why = if elsewhere {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if same {
        return;
    } else {
        "must match dataSourceRef"
    };
    // Kubernetes shows the path's Go struct, which has no public fields.
    causes.push(field::invalid_shown(spec.path(), "{}", why));
}

fn check_source(source: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for part in ["name", "kind"] {
        let part = source.child(part);
        if part.as_text().is_empty() {
            causes.push(part.required(""));
        }
    }
    let group = source.child("apiGroup");
    let kind = source.child("kind");
    if !group.as_text().is_empty() {
        group.each(names::subdomain_errors, causes);
    } else if kind.as_text() != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        let path = source.path();
        causes.push(field::invalid(path, &kind.as_text().into(), why));
    }
    let namespace = source.child("namespace");
    if !namespace.as_text().is_empty() {
        namespace.each(names::label_errors, causes);
    }
}

/// A claim is for life, but for its size and class of attributes once it is bound.
pub(crate) fn check_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (mut spec, mut before) = (new["spec"].clone(), old["spec"].clone());
    if before["volumeName"].as_str().is_none_or(str::is_empty) {
        before["volumeName"] = spec["volumeName"].clone();
    }
    // A class that was not chosen may be chosen later.
    if before["storageClassName"].is_null() {
        before["storageClassName"] = spec["storageClassName"].clone();
    }
    if new["status"]["phase"] == "Bound" {
        if spec["resources"]["requests"].is_object() {
            spec["resources"]["requests"]["storage"] =
                before["resources"]["requests"]["storage"].clone();
        }
        spec["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
    }
    let (spec, before) = (without_nulls(spec), without_nulls(before));
    if spec != before {
        let difference = internal::diff(&before, &spec, "core.PersistentVolumeClaimSpec");
        causes.push(field::forbidden(
            "spec",
            &format!(
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{difference}"
            ),
        ));
    }
    let size = |value: &Value| {
        let amount = value["storage"].as_str().and_then(Quantity::parse);
        amount.unwrap_or(Quantity::ZERO)
    };
    let asked = size(&new["spec"]["resources"]["requests"]);
    if asked < size(&old["spec"]["resources"]["requests"])
        && asked <= size(&old["status"]["capacity"])
    {
        causes.push(field::forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        ));
    }
    let mode = &new["spec"]["volumeMode"];
    if *mode != old["spec"]["volumeMode"] {
        causes.push(field::invalid("volumeMode", mode, IMMUTABLE));
    }
    let class = &new["spec"]["volumeAttributesClassName"];
    if *class != old["spec"]["volumeAttributesClassName"]
        && !old["status"]["currentVolumeAttributesClassName"].is_null()
    {
        let why = match class.as_str() {
            None => {
                "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"
            }
            Some("") => {
                "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"
            }
            Some(_) => return,
        };
        causes.push(field::forbidden("spec.volumeAttributesClassName", why));
    }
}

fn without_nulls(mut spec: Value) -> Value {
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    spec
}

pub(crate) fn check_status(new: &Value, _: &Value, causes: &mut Vec<Cause>) {
    let capacity = At::root(new, "").then("status").then("capacity");
    for key in capacity.keys() {
        let amount = capacity.key(key);
        if let Some(read) = Quantity::parse(amount.as_text()) {
            check_not_negative(&amount, read, causes);
        }
    }
    let modes = At::root(new, "").then("status").then("accessModes");
    if modes.is_set() {
        check_each_mode(&modes, causes);
    }
}

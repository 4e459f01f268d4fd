//! The kinds of `storage.k8s.io`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::kinds::core::persistent_volume::validation::{check_driver_name, check_inline};
use crate::names;
use crate::quantity::Quantity;
use crate::status::{Cause, field};
use crate::validation::at::{At, IMMUTABLE, immutable};
use crate::validation::label;

/// All parameters of a class together, in bytes, and how many there may be.
const PARAMETERS_LIMIT: usize = 256 * 1024;
const PARAMETERS_COUNT: usize = 512;
/// Seconds a token for a driver lives at least and at most.
const TOKEN_SECONDS: (i64, i64) = (600, 1 << 32);

pub(crate) fn check_class(class: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(class, "");
    check_provisioner(&root.child("provisioner"), causes);
    check_parameters(&root.child("parameters"), true, causes);
    root.child("reclaimPolicy")
        .one_of_if_set(&["Delete", "Retain"], causes);
    root.child("volumeBindingMode")
        .one_of(&["Immediate", "WaitForFirstConsumer"], causes);
    check_topologies(&root.child("allowedTopologies"), causes);
}

/// A name whose case does not count.
fn check_provisioner(name: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let lower = Value::from(name.as_text().to_lowercase());
    name.with(&lower).name(names::qualified_errors, causes);
}

fn check_parameters(parameters: &At<'_, '_>, may_be_empty: bool, causes: &mut Vec<Cause>) {
    if parameters.len() > PARAMETERS_COUNT {
        causes.push(field::too_long(parameters.path(), PARAMETERS_COUNT as u64));
        return;
    }
    let mut size = 0;
    for key in parameters.keys() {
        if key.is_empty() {
            let why = "field can not be empty.";
            causes.push(field::invalid(parameters.path(), &key.into(), why));
        }
        size += key.len() + parameters.key(key).as_text().len();
    }
    if size > PARAMETERS_LIMIT {
        causes.push(field::too_long(parameters.path(), PARAMETERS_LIMIT as u64));
    }
    if parameters.len() == 0 && !may_be_empty {
        causes.push(parameters.required("must contain at least one key/value pair"));
    }
}

fn check_topologies(topologies: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for term in topologies.elements() {
        let expressions = term.child("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        let mut wanted = std::collections::BTreeMap::new();
        for expression in expressions.elements() {
            let (key, values) = (expression.child("key"), expression.child("values"));
            let mut found = BTreeSet::new();
            if values.len() == 0 {
                causes.push(values.required(""));
            }
            for value in values.elements() {
                if !found.insert(value.as_text()) {
                    causes.push(value.duplicate());
                }
            }
            key.each(names::qualified_errors, causes);
            if !keys.insert(key.as_text()) {
                causes.push(key.duplicate());
            }
            wanted.insert(key.as_text(), found);
        }
        if !seen.insert(wanted) {
            causes.push(field::duplicate(expressions.path(), &"".into()));
        }
    }
}

pub(crate) fn check_class_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for part in [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ] {
        immutable(
            &At::root(new, "").then(part),
            &At::root(old, "").then(part),
            causes,
        );
    }
}

pub(crate) fn check_driver(driver: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(driver, "").then("spec");
    spec.child("fsGroupPolicy")
        .one_of_if_set(&["File", "None", "ReadWriteOnceWithFSType"], causes);
    let mut seen = BTreeSet::new();
    for request in spec.child("tokenRequests").elements() {
        let audience = request.child("audience");
        if !seen.insert(audience.as_text()) {
            causes.push(audience.duplicate());
            continue;
        }
        let seconds = request.child("expirationSeconds");
        if seconds.is_set() && seconds.as_int() < TOKEN_SECONDS.0 {
            causes.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        if seconds.as_int() > TOKEN_SECONDS.1 {
            causes.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
    }
    let modes = spec.child("volumeLifecycleModes");
    for mode in modes.elements() {
        let known = ["Persistent", "Ephemeral"];
        if !known.contains(&mode.as_text()) {
            causes.push(modes.with(mode.value).not_supported(&known));
        }
    }
    let period = spec.child("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.as_int() < 10 {
        causes.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
}

pub(crate) fn check_driver_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for (part, path) in [
        ("attachRequired", "spec.attachedRequired"),
        ("fsGroupPolicy", ""),
        ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
    ] {
        let value = &new["spec"][part];
        if !path.is_empty() && *value != old["spec"][part] {
            causes.push(field::invalid(path, value, IMMUTABLE));
        }
    }
}

pub(crate) fn check_node(node: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for driver in At::root(node, "").then("spec").then("drivers").elements() {
        let (name, id) = (driver.child("name"), driver.child("nodeID"));
        check_driver_name(&name, causes);
        if id.as_text().is_empty() {
            causes.push(id.required(""));
        } else if id.as_text().len() > 256 {
            causes.push(id.invalid("must be 256 characters or less"));
        }
        let count = driver.child("allocatable").then("count");
        if count.as_int() < 0 {
            causes.push(count.invalid("must be greater than or equal to 0"));
        }
        let mut keys = BTreeSet::new();
        for key in driver.child("topologyKeys").elements() {
            // The driver is named, not the key.
            let key = driver.with(key.value);
            if !keys.insert(key.as_text()) {
                causes.push(key.duplicate());
            }
            key.each(names::qualified_errors, causes);
        }
        if !name.as_text().is_empty() && !seen.insert(name.as_text()) {
            causes.push(name.duplicate());
        }
    }
}

/// A driver that a node has stays as it is; others may come, and it may go.
pub(crate) fn check_node_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let drivers = |node: &Value| {
        node["spec"]["drivers"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    // How much a driver can take may change.
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver["allocatable"] = Value::Null;
        driver
    };
    let name = |driver: &Value| driver["name"].to_string();
    let mut before: BTreeMap<String, Value> = BTreeMap::new();
    for driver in drivers(old) {
        before.entry(name(&driver)).or_insert(driver);
    }
    for driver in drivers(new) {
        let known = before.get(&name(&driver));
        if known.is_some_and(|known| fixed(known) != fixed(&driver)) {
            // As the Go struct shows it.
            let shown = format!(
                "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
                driver["name"], driver["nodeID"], driver["topologyKeys"]
            );
            causes.push(field::invalid_shown("spec.drivers", &shown, IMMUTABLE));
        }
    }
}

pub(crate) fn check_attachment(attachment: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(attachment, "").then("spec");
    check_driver_name(&spec.child("attacher"), causes);
    let source = spec.child("source");
    let (inline, name) = (
        source.child("inlineVolumeSpec"),
        source.child("persistentVolumeName"),
    );
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), name.is_set()) {
        (false, false) => causes.push(source.required(one)),
        (true, true) => causes.push(source.forbidden(one)),
        (true, false) => check_inline(&inline, causes),
        (false, true) if name.as_text().is_empty() => {
            causes.push(name.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
    }
    spec.child("nodeName").each(names::subdomain_errors, causes);
}

pub(crate) fn check_attachment_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    if spec != before {
        let source = &spec["source"];
        // As the Go struct shows it.
        let shown = format!(
            "{{\"Attacher\":{},\"Source\":{{\"PersistentVolumeName\":{},\"InlineVolumeSpec\":{}}},\"NodeName\":{}}}",
            spec["attacher"],
            source["persistentVolumeName"],
            source["inlineVolumeSpec"],
            spec["nodeName"]
        );
        causes.push(field::invalid_shown("spec", &shown, IMMUTABLE));
    }
}

pub(crate) fn check_capacity(capacity: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(capacity, "");
    label::selector(&root.child("nodeTopology"), causes);
    root.child("storageClassName")
        .each(names::subdomain_errors, causes);
    let amount = root.child("capacity");
    if Quantity::parse(amount.as_text()).is_some_and(|read| read < Quantity::ZERO) {
        causes.push(amount.invalid("must be greater than or equal to 0"));
    }
}

pub(crate) fn check_capacity_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for part in ["nodeTopology", "storageClassName"] {
        immutable(
            &At::root(new, "").then(part),
            &At::root(old, "").then(part),
            causes,
        );
    }
}

pub(crate) fn check_attributes(class: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(class, "");
    check_provisioner(&root.child("driverName"), causes);
    check_parameters(&root.child("parameters"), false, causes);
}

pub(crate) fn check_attributes_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for part in ["driverName", "parameters"] {
        if new[part] != old[part] {
            let why = format!("updates to {part} are forbidden.");
            causes.push(field::forbidden(part, &why));
        }
    }
}

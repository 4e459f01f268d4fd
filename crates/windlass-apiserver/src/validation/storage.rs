//! The kinds of `storage.k8s.io`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::place::{At, IMMUTABLE, immutable};
use super::selector;
use super::volume::{check_driver_name, check_inline};
use crate::names;
use crate::quantity::Quantity;
use crate::status::{Cause, field};

/// All parameters of a class together, in bytes, and how many there may be.
const PARAMETERS_LIMIT: usize = 256 * 1024;
const PARAMETERS_COUNT: usize = 512;
/// Seconds a token for a driver lives at least and at most.
const TOKEN_SECONDS: (i64, i64) = (600, 1 << 32);

pub(super) fn check_class(class: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(class);
    check_provisioner(&root.get("provisioner"), causes);
    check_parameters(&root.get("parameters"), true, causes);
    root.get("reclaimPolicy")
        .maybe_one_of(&["Delete", "Retain"], causes);
    root.get("volumeBindingMode")
        .one_of(&["Immediate", "WaitForFirstConsumer"], causes);
    check_topologies(&root.get("allowedTopologies"), causes);
}

/// A name whose case does not count.
fn check_provisioner(name: &At<'_>, causes: &mut Vec<Cause>) {
    let lower = Value::from(name.text().to_lowercase());
    At::new(name.path.as_str(), &lower).name(names::qualified_errors, causes);
}

fn check_parameters(parameters: &At<'_>, may_be_empty: bool, causes: &mut Vec<Cause>) {
    let path = parameters.path.as_str();
    if parameters.len() > PARAMETERS_COUNT {
        causes.push(field::too_long(path, PARAMETERS_COUNT as u64));
        return;
    }
    let mut size = 0;
    for key in parameters.keys() {
        if key.is_empty() {
            causes.push(field::invalid(path, &key.into(), "field can not be empty."));
        }
        size += key.len() + parameters.key(key).text().len();
    }
    if size > PARAMETERS_LIMIT {
        causes.push(field::too_long(path, PARAMETERS_LIMIT as u64));
    }
    if parameters.len() == 0 && !may_be_empty {
        causes.push(parameters.required("must contain at least one key/value pair"));
    }
}

fn check_topologies(topologies: &At<'_>, causes: &mut Vec<Cause>) {
    let mut seen = Vec::new();
    for term in topologies.items() {
        let expressions = term.get("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        let mut wanted = std::collections::BTreeMap::new();
        for expression in expressions.items() {
            let (key, values) = (expression.get("key"), expression.get("values"));
            let mut found = BTreeSet::new();
            if values.len() == 0 {
                causes.push(values.required(""));
            }
            for value in values.items() {
                if !found.insert(value.text()) {
                    causes.push(value.duplicate());
                }
            }
            key.each(names::qualified_errors, causes);
            if !keys.insert(key.text()) {
                causes.push(key.duplicate());
            }
            wanted.insert(key.text(), found);
        }
        if seen.contains(&wanted) {
            causes.push(field::duplicate(expressions.path.as_str(), &"".into()));
        }
        seen.push(wanted);
    }
}

pub(super) fn check_class_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for part in [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ] {
        immutable(&At::root(new).get(part), &At::root(old).get(part), causes);
    }
}

pub(super) fn check_driver(driver: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(driver).get("spec");
    spec.get("fsGroupPolicy")
        .maybe_one_of(&["File", "None", "ReadWriteOnceWithFSType"], causes);
    let mut seen = BTreeSet::new();
    for request in spec.get("tokenRequests").items() {
        let audience = request.get("audience");
        if !seen.insert(audience.text()) {
            causes.push(audience.duplicate());
            continue;
        }
        let seconds = request.get("expirationSeconds");
        if seconds.is_set() && seconds.int() < TOKEN_SECONDS.0 {
            causes.push(seconds.invalid("may not specify a duration less than 10 minutes"));
        }
        if seconds.int() > TOKEN_SECONDS.1 {
            causes.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        let known = ["Persistent", "Ephemeral"];
        if !known.contains(&mode.text()) {
            causes.push(At::new(modes.path.as_str(), mode.value).unsupported(&known));
        }
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < 10 {
        causes.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
}

pub(super) fn check_driver_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
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

pub(super) fn check_node(node: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for driver in At::root(node).get("spec").get("drivers").items() {
        let (name, id) = (driver.get("name"), driver.get("nodeID"));
        check_driver_name(&name, causes);
        if id.text().is_empty() {
            causes.push(id.required(""));
        } else if id.text().len() > 256 {
            causes.push(id.invalid("must be 256 characters or less"));
        }
        let count = driver.get("allocatable").get("count");
        if count.int() < 0 {
            causes.push(count.invalid("must be greater than or equal to 0"));
        }
        let mut keys = BTreeSet::new();
        for key in driver.get("topologyKeys").items() {
            // The driver is named, not the key.
            let key = At::new(driver.path.as_str(), key.value);
            if !keys.insert(key.text()) {
                causes.push(key.duplicate());
            }
            key.each(names::qualified_errors, causes);
        }
        if !name.text().is_empty() && !seen.insert(name.text()) {
            causes.push(name.duplicate());
        }
    }
}

/// A driver that a node has stays as it is; others may come, and it may go.
pub(super) fn check_node_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
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
    let before = drivers(old);
    for driver in drivers(new) {
        let known = before.iter().find(|known| known["name"] == driver["name"]);
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

pub(super) fn check_attachment(attachment: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(attachment).get("spec");
    check_driver_name(&spec.get("attacher"), causes);
    let source = spec.get("source");
    let (inline, name) = (
        source.get("inlineVolumeSpec"),
        source.get("persistentVolumeName"),
    );
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), name.is_set()) {
        (false, false) => causes.push(source.required(one)),
        (true, true) => causes.push(source.forbidden(one)),
        (true, false) => check_inline(&inline, causes),
        (false, true) if name.text().is_empty() => {
            causes.push(name.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
    }
    spec.get("nodeName").each(names::subdomain_errors, causes);
}

pub(super) fn check_attachment_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
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

pub(super) fn check_capacity(capacity: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(capacity);
    selector::check(&root.get("nodeTopology"), causes);
    root.get("storageClassName")
        .each(names::subdomain_errors, causes);
    let amount = root.get("capacity");
    if Quantity::parse(amount.text()).is_some_and(|read| read < Quantity::ZERO) {
        causes.push(amount.invalid("must be greater than or equal to 0"));
    }
}

pub(super) fn check_capacity_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for part in ["nodeTopology", "storageClassName"] {
        immutable(&At::root(new).get(part), &At::root(old).get(part), causes);
    }
}

pub(super) fn check_attributes(class: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(class);
    check_provisioner(&root.get("driverName"), causes);
    check_parameters(&root.get("parameters"), false, causes);
}

pub(super) fn check_attributes_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for part in ["driverName", "parameters"] {
        if new[part] != old[part] {
            let why = format!("updates to {part} are forbidden.");
            causes.push(field::forbidden(part, &why));
        }
    }
}

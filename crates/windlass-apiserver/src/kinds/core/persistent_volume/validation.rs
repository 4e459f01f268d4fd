//! `PersistentVolumes`.

use serde_json::{Value, json};

use crate::names;
use crate::quantity::Quantity;
use crate::status::{Cause, field};
use crate::validation::at::{At, IMMUTABLE};
use crate::validation::internal;
use crate::validation::node_selector;

pub(crate) const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
pub(crate) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
/// Where a volume can be kept, in the order in which a second one is noticed.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

pub(crate) fn check(volume: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(volume, "").then("spec");
    check_modes(&spec.child("accessModes"), "", causes);
    check_capacity(&spec.child("capacity"), causes);
    let policy = spec.child("persistentVolumeReclaimPolicy");
    policy.one_of_if_set(&["Delete", "Recycle", "Retain"], causes);
    let affinity = spec.child("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.child("required");
        if required.is_set() {
            node_selector::check(&required, causes);
        } else {
            causes.push(required.required("must specify required node constraints"));
        }
    }
    check_source(&spec, causes);
    let path = spec.child("hostPath").then("path");
    if policy.as_text() == "Recycle" && !path.as_text().is_empty() && is_root(path.as_text()) {
        causes.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    check_class(&spec.child("storageClassName"), causes);
    spec.child("volumeMode").one_of_if_set(VOLUME_MODES, causes);
    let class = spec.child("volumeAttributesClassName");
    if class.is_set() {
        if class.as_text().is_empty() {
            causes.push(class.required("an empty string is disallowed"));
        } else {
            class.each(names::subdomain_errors, causes);
        }
        let csi = spec.child("csi");
        if !csi.is_set() {
            let why = "has to be specified when using volumeAttributesClassName";
            causes.push(csi.required(why));
        }
    }
}

/// The modes of a volume or a claim; `why` tells that there must be one.
pub(crate) fn check_modes(modes: &At<'_, '_>, why: &str, causes: &mut Vec<Cause>) {
    if modes.len() == 0 {
        causes.push(modes.required(why));
    }
    check_each_mode(modes, causes);
}

pub(crate) fn check_each_mode(modes: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (mut exclusive, mut shared) = (false, false);
    for mode in modes.elements() {
        let known = ACCESS_MODES.contains(&mode.as_text());
        if !known {
            let mode = modes.with(mode.value);
            causes.push(mode.not_supported(ACCESS_MODES));
        }
        exclusive |= mode.as_text() == "ReadWriteOncePod";
        shared |= known && mode.as_text() != "ReadWriteOncePod";
    }
    if exclusive && shared {
        causes.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

pub(crate) fn check_class(class: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if !class.as_text().is_empty() {
        class.each(names::subdomain_errors, causes);
    }
}

fn check_capacity(capacity: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if capacity.len() == 0 {
        causes.push(capacity.required(""));
    }
    if capacity.len() != 1 || !capacity.key("storage").is_set() {
        let allowed = ["\"storage\"".to_owned()];
        let path = capacity.path();
        causes.push(field::not_supported(path, capacity.value, &allowed));
    }
    for key in capacity.keys() {
        let amount = capacity.key(key);
        let Some(read) = Quantity::parse(amount.as_text()) else {
            continue;
        };
        check_not_negative(&amount, read, causes);
        if read <= Quantity::ZERO {
            causes.push(amount.invalid("must be greater than zero"));
        }
    }
}

/// No amount is less than nothing.
pub(crate) fn check_not_negative(amount: &At<'_, '_>, read: Quantity, causes: &mut Vec<Cause>) {
    if read < Quantity::ZERO {
        let path = amount.path();
        let shown = read.units().to_string();
        let why = "must be a valid resource quantity";
        causes.push(field::invalid_shown(path, &shown, why));
    }
}

fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "."))
}

/// Exactly one place, and what each of the usual ones needs.
fn check_source(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let mut found = false;
    for source in SOURCES.iter().map(|name| spec.child(name)) {
        if !source.is_set() {
            continue;
        }
        if found {
            causes.push(source.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        match source.path().rsplit('.').next().unwrap_or_default() {
            "hostPath" => check_host_path(&source, causes),
            "nfs" => check_nfs(&source, causes),
            "iscsi" => check_iscsi(&source, causes),
            "csi" => check_csi(&source, causes),
            "local" => {
                need(&source, &["path"], causes);
                check_no_backsteps(&source.child("path"), causes);
                let affinity = spec.child("nodeAffinity");
                if !affinity.child("required").is_set() {
                    causes.push(affinity.required("Local volume requires node affinity"));
                }
            }
            "rbd" => need(&source, &["monitors", "image"], causes),
            "cephfs" => need(&source, &["monitors"], causes),
            "gcePersistentDisk" => need(&source, &["pdName"], causes),
            "awsElasticBlockStore" | "cinder" => need(&source, &["volumeID"], causes),
            "azureFile" => need(&source, &["secretName", "shareName"], causes),
            "azureDisk" => need(&source, &["diskName", "diskURI"], causes),
            "vsphereVolume" => need(&source, &["volumePath"], causes),
            _ => {}
        }
    }
    if !found {
        causes.push(spec.required("must specify a volume type"));
    }
}

fn need(source: &At<'_, '_>, parts: &[&str], causes: &mut Vec<Cause>) {
    for part in parts.iter().map(|part| source.child(part)) {
        if part.is_zero() {
            causes.push(part.required(""));
        }
    }
}

fn check_no_backsteps(path: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if path.as_text().split('/').any(|part| part == "..") {
        causes.push(path.invalid("must not contain '..'"));
    }
}

fn check_host_path(source: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let path = source.child("path");
    if path.as_text().is_empty() {
        causes.push(path.required(""));
        return;
    }
    check_no_backsteps(&path, causes);
    source.child("type").one_of_if_set(HOST_PATH_TYPES, causes);
}

fn check_nfs(source: &At<'_, '_>, causes: &mut Vec<Cause>) {
    need(source, &["server", "path"], causes);
    let path = source.child("path");
    if !path.as_text().is_empty() && !path.as_text().starts_with('/') {
        causes.push(path.invalid("must be an absolute path"));
    }
}

fn check_iscsi(source: &At<'_, '_>, causes: &mut Vec<Cause>) {
    need(source, &["targetPortal"], causes);
    let name = source.child("iqn");
    if name.as_text().is_empty() {
        causes.push(name.required(""));
    } else if !["iqn.", "eui.", "naa."]
        .iter()
        .any(|prefix| name.as_text().starts_with(prefix))
    {
        causes.push(name.invalid("must be valid format"));
    }
    let unit = source.child("lun");
    if !(0..=255).contains(&unit.as_int()) {
        causes.push(unit.invalid("must be between 0 and 255, inclusive"));
    }
}

fn check_csi(source: &At<'_, '_>, causes: &mut Vec<Cause>) {
    check_driver_name(&source.child("driver"), causes);
    need(source, &["volumeHandle"], causes);
}

/// The name of a CSI driver.
pub(crate) fn check_driver_name(name: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if name.as_text().is_empty() {
        causes.push(name.required(""));
        return;
    }
    if name.as_text().len() > 63 {
        causes.push(field::too_long(name.path(), 63));
    }
    let lower = |text: &str| names::subdomain_errors(&text.to_lowercase());
    name.each(lower, causes);
}

/// What is wrong with the volume an attachment brings along.
pub(crate) fn check_inline(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let refused = "may not be specified in the context of inline volumes";
    for part in ["claimRef", "capacity"] {
        let part = spec.child(part);
        if !part.is_zero() || (part.is_set() && part.path().ends_with("claimRef")) {
            causes.push(part.forbidden(refused));
        }
    }
    let csi = spec.child("csi");
    if !csi.is_set() {
        causes.push(csi.required("has to be specified in the context of inline volumes"));
    }
    check_modes(&spec.child("accessModes"), "", causes);
    let affinity = spec.child("nodeAffinity");
    if affinity.is_set() {
        causes.push(affinity.forbidden(refused));
    }
    check_source(spec, causes);
    let class = spec.child("storageClassName");
    if !class.as_text().is_empty() {
        causes.push(class.forbidden(refused));
    }
}

/// The place of a volume is for life.
pub(crate) fn check_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let source = |volume: &Value| {
        let spec = &volume["spec"];
        let sources: Vec<Value> = SOURCES.iter().map(|name| spec[*name].clone()).collect();
        sources
    };
    if source(new) != source(old) {
        let difference = internal::diff(&old["spec"], &new["spec"], "core.PersistentVolumeSource");
        causes.push(field::forbidden(
            "spec.persistentvolumesource",
            &format!("spec.persistentvolumesource is immutable after creation\n{difference}"),
        ));
    }
    let (spec, before) = (&new["spec"], &old["spec"]);
    if spec["volumeMode"] != before["volumeMode"] {
        causes.push(field::invalid("volumeMode", &spec["volumeMode"], IMMUTABLE));
    }
    if !before["nodeAffinity"].is_null() && spec["nodeAffinity"] != before["nodeAffinity"] {
        causes.push(field::invalid(
            "nodeAffinity",
            &shown_affinity(&spec["nodeAffinity"]),
            "field is immutable, except for updating from beta label to GA",
        ));
    }
    let class = "volumeAttributesClassName";
    if !before[class].is_null() && spec[class].is_null() {
        let why = "update from non-nil value to nil is forbidden";
        causes.push(field::forbidden(format!("spec.{class}"), why));
    }
}

/// As the Go struct shows it.
fn shown_affinity(affinity: &Value) -> Value {
    if affinity.is_null() {
        return Value::Null;
    }
    let list = |value: &Value, shown: &dyn Fn(&Value) -> Value| match value.as_array() {
        Some(items) => items.iter().map(shown).collect(),
        None => Value::Null,
    };
    let expression = |one: &Value| json!({"Key": one["key"], "Operator": one["operator"], "Values": one["values"]});
    let term = |one: &Value| {
        json!({
            "MatchExpressions": list(&one["matchExpressions"], &expression),
            "MatchFields": list(&one["matchFields"], &expression),
        })
    };
    json!({"Required": {"NodeSelectorTerms": list(&affinity["required"]["nodeSelectorTerms"], &term)}})
}

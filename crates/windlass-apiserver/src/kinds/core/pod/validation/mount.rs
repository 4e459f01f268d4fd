//! Where a container sees its volumes: as directories, and as devices.

use std::collections::{BTreeMap, BTreeSet};

use super::volume::{Volumes, backsteps, descending};
use crate::validation::at::{At, Causes};

pub(super) fn check(container: &At<'_, '_>, volumes: &Volumes<'_>, causes: &mut Causes) {
    let (mounted, devices_of) = (
        places(container, "volumeMounts", "mountPath"),
        places(container, "volumeDevices", "devicePath"),
    );
    mounts(container, volumes, &devices_of, causes);
    devices(container, volumes, &mounted, causes);
}

/// What is seen where, by the volume's name.
fn places<'v>(container: &At<'_, 'v>, list: &str, place: &str) -> BTreeMap<&'v str, &'v str> {
    let text = |value: &'v serde_json::Value| value.as_str().unwrap_or_default();
    let entries = container.list(list).iter();
    entries
        .map(|entry| (text(&entry["name"]), text(&entry[place])))
        .collect()
}

fn mounts(
    container: &At<'_, '_>,
    volumes: &Volumes<'_>,
    devices: &BTreeMap<&str, &str>,
    causes: &mut Causes,
) {
    // Some causes are told of the list, not of the mount.
    let list = container.child("volumeMounts");
    let mut taken = BTreeSet::new();
    let device_places: BTreeSet<&str> = devices.values().copied().collect();
    for mount in container.items("volumeMounts") {
        let (name, place) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            causes.push(mount.child("name").required(""));
        }
        if !volumes.contains_key(name) {
            causes.push(mount.child("name").not_found());
        }
        if place.is_empty() {
            causes.push(mount.child("mountPath").required(""));
        }
        if !taken.insert(place) {
            causes.push(mount.child("mountPath").invalid("must be unique"));
        }
        if devices.contains_key(name) {
            let why = "must not already exist in volumeDevices";
            causes.push(mount.child("name").invalid(why));
        }
        if device_places.contains(place) {
            let why = "must not already exist as a path in volumeDevices";
            causes.push(mount.child("mountPath").invalid(why));
        }
        let (sub, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
        if !sub.is_empty() {
            descending(&list.child("subPath"), sub, causes);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                causes.push(mount.child("subPathExpr").invalid(why));
            }
            descending(&list.child("subPathExpr"), expression, causes);
        }
        propagation(&mount, container, causes);
        recursive(&mount, &list, causes);
    }
}

fn propagation(mount: &At<'_, '_>, container: &At<'_, '_>, causes: &mut Causes) {
    let list = container.child("volumeMounts");
    let told = list.child("mountPropagation");
    let Some(how) = mount
        .get("mountPropagation")
        .and_then(|how| how.value.as_str())
    else {
        return;
    };
    let known = ["Bidirectional", "HostToContainer", "None"];
    if !known.contains(&how) {
        causes.push(told.not_supported_value(how, &known));
    }
    if how == "Bidirectional" && !container.child("securityContext").flag("privileged") {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        causes.push(told.forbidden(why));
    }
}

fn recursive(mount: &At<'_, '_>, list: &At<'_, '_>, causes: &mut Causes) {
    let told = list.child("recursiveReadOnly");
    let Some(how) = mount
        .get("recursiveReadOnly")
        .and_then(|how| how.value.as_str())
    else {
        return;
    };
    match how {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.flag("readOnly") {
                causes.push(told.forbidden("may only be specified when readOnly is true"));
            }
            if !matches!(mount.text("mountPropagation"), "" | "None") {
                let why = "may only be specified when mountPropagation is None or not specified";
                causes.push(told.forbidden(why));
            }
        }
        other => {
            causes.push(told.not_supported_value(other, &["Disabled", "Enabled", "IfPossible"]));
        }
    }
}

fn devices(
    container: &At<'_, '_>,
    volumes: &Volumes<'_>,
    mounts: &BTreeMap<&str, &str>,
    causes: &mut Causes,
) {
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    let mounted: BTreeSet<&str> = mounts.values().copied().collect();
    for device in container.items("volumeDevices") {
        let (name, place) = (device.text("name"), device.text("devicePath"));
        let at = device.child("name");
        if name.is_empty() {
            causes.push(at.required(""));
        }
        if names.contains(name) {
            causes.push(at.invalid("must be unique"));
        }
        match volumes.get(name) {
            Some(true) => {}
            Some(false) => causes.push(at.invalid(
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )),
            None => causes.push(at.not_found()),
        }
        let path = device.child("devicePath");
        if place.is_empty() {
            causes.push(path.required(""));
        }
        if places.contains(place) {
            causes.push(path.invalid("must be unique"));
        }
        let mut steps = Causes::new();
        backsteps(&path, place, &mut steps);
        if steps.is_empty() {
            places.insert(place);
        } else {
            causes.push(path.invalid("can not contain backsteps ('..')"));
        }
        if mounts.contains_key(name) {
            causes.push(at.invalid("must not already exist in volumeMounts"));
        }
        if mounted.contains(place) {
            causes.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}

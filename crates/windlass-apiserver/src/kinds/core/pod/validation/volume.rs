//! Volumes: each has a name of its own and exactly one source.

use std::collections::{BTreeMap, BTreeSet};

use super::{claim_template, env, projected};
use crate::names;
use crate::quantity::Quantity;
use crate::validation::at::{At, Causes};

/// The volumes that are in order, and whether each can be used as a device.
pub(super) type Volumes<'v> = BTreeMap<&'v str, bool>;

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// A source of volumes: its field, what must be set in it, and what else is checked.
type Source = (
    &'static str,
    &'static [&'static str],
    fn(&At<'_, '_>, &mut Causes),
);

/// All sources, in the order they are looked at.
const SOURCES: &[Source] = &[
    ("emptyDir", &[], empty_dir),
    ("hostPath", &["path"], host_path),
    ("gitRepo", &["repository"], git_repo),
    ("gcePersistentDisk", &["pdName"], nothing),
    ("awsElasticBlockStore", &["volumeID"], nothing),
    ("secret", &["secretName"], keys),
    ("nfs", &["server", "path"], nfs),
    ("iscsi", &["targetPortal", "iqn"], nothing),
    ("glusterfs", &["endpoints", "path"], nothing),
    ("flocker", &[], nothing),
    ("persistentVolumeClaim", &["claimName"], nothing),
    ("rbd", &["monitors", "image"], nothing),
    ("cinder", &["volumeID"], nothing),
    ("cephfs", &["monitors"], nothing),
    ("quobyte", &["registry", "volume"], nothing),
    ("downwardAPI", &[], downward),
    ("fc", &[], nothing),
    ("flexVolume", &["driver"], nothing),
    ("configMap", &["name"], keys),
    ("azureFile", &["secretName", "shareName"], nothing),
    ("vsphereVolume", &["volumePath"], nothing),
    ("photonPersistentDisk", &["pdID"], nothing),
    ("portworxVolume", &["volumeID"], nothing),
    ("azureDisk", &["diskName", "diskURI"], nothing),
    ("storageos", &["volumeName"], nothing),
    ("projected", &[], projected::check),
    ("scaleIO", &["gateway", "system", "volumeName"], nothing),
    ("csi", &["driver"], csi),
    ("ephemeral", &[], ephemeral),
    ("image", &["reference"], nothing),
];

/// Checks all volumes of a pod; those in order come back.
pub(super) fn check<'v>(spec: &At<'_, 'v>, pod_name: &str, causes: &mut Causes) -> Volumes<'v> {
    let made: BTreeSet<String> = spec
        .items("volumes")
        .filter(|volume| volume.has("ephemeral") && !pod_name.is_empty())
        .map(|volume| format!("{pod_name}-{}", volume.text("name")))
        .collect();
    let mut good = Volumes::new();
    for volume in spec.items("volumes") {
        let known = causes.len();
        source(&volume, causes);
        let name = volume.text("name");
        match name {
            "" => causes.push(volume.child("name").required("")),
            name => volume
                .child("name")
                .complain(names::label_errors(name), causes),
        }
        if good.contains_key(name) {
            causes.push(volume.child("name").duplicate());
        }
        if causes.len() == known {
            let block = volume.has("persistentVolumeClaim") || volume.has("ephemeral");
            good.insert(name, block);
        }
        let claim = volume.child("persistentVolumeClaim");
        if made.contains(claim.text("claimName")) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            causes.push(claim.child("claimName").invalid(why));
        }
    }
    good
}

fn source(volume: &At<'_, '_>, causes: &mut Causes) {
    let mut found = false;
    for (name, required, check) in SOURCES {
        let Some(source) = volume.get(name) else {
            continue;
        };
        if found {
            causes.push(source.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        let known = causes.len();
        for field in *required {
            if source.text(field).is_empty() && source.list(field).is_empty() {
                causes.push(source.child(field).required(""));
            }
        }
        // A path that is missing is not checked for what it says.
        if causes.len() == known || !matches!(*name, "hostPath") {
            check(&source, causes);
        }
    }
    if !found {
        causes.push(volume.required("must specify a volume type"));
    }
}

fn nothing(_: &At<'_, '_>, _: &mut Causes) {}

fn empty_dir(at: &At<'_, '_>, causes: &mut Causes) {
    let limit = at.child("sizeLimit");
    let size = limit.value.as_str().and_then(Quantity::parse);
    if size.is_some_and(|size| size.is_negative()) {
        causes.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn host_path(at: &At<'_, '_>, causes: &mut Causes) {
    backsteps(&at.child("path"), at.text("path"), causes);
    let types = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    at.child("type").one_of_if_set(&types, causes);
}

fn git_repo(at: &At<'_, '_>, causes: &mut Causes) {
    descending(&at.child("directory"), at.text("directory"), causes);
}

fn nfs(at: &At<'_, '_>, causes: &mut Causes) {
    if !at.text("path").starts_with('/') {
        causes.push(
            at.child("path")
                .invalid_value(at.text("path"), "must be an absolute path"),
        );
    }
}

fn csi(at: &At<'_, '_>, causes: &mut Causes) {
    let driver = at.text("driver");
    if !driver.is_empty() {
        if driver.len() > 63 {
            causes.push(crate::status::field::too_long(
                at.child("driver").to_string(),
                63,
            ));
        }
        at.child("driver")
            .complain(names::subdomain_errors(&driver.to_lowercase()), causes);
    }
    if let Some(secret) = at.get("nodePublishSecretRef") {
        match secret.text("name") {
            "" => causes.push(secret.child("name").required("")),
            name => {
                for why in names::subdomain_errors(name) {
                    causes.push(at.child("name").invalid_value(name, &why));
                }
            }
        }
    }
}

fn ephemeral(at: &At<'_, '_>, causes: &mut Causes) {
    match at.get("volumeClaimTemplate") {
        None => causes.push(at.child("volumeClaimTemplate").required("")),
        Some(template) => claim_template::check_template(&template, causes),
    }
}

/// The mode of a file.
pub(super) fn mode(at: &At<'_, '_>, causes: &mut Causes) {
    if at
        .value
        .as_i64()
        .is_some_and(|mode| !(0..=0o777).contains(&mode))
    {
        causes.push(at.invalid(MODE));
    }
}

fn keys(at: &At<'_, '_>, causes: &mut Causes) {
    mode(&at.child("defaultMode"), causes);
    for item in at.items("items") {
        key_to_path(&item, causes);
    }
}

/// Which key becomes which file.
pub(super) fn key_to_path(at: &At<'_, '_>, causes: &mut Causes) {
    for field in ["key", "path"] {
        if at.text(field).is_empty() {
            causes.push(at.child(field).required(""));
        }
    }
    local(&at.child("path"), at.text("path"), causes);
    mode(&at.child("mode"), causes);
}

fn downward(at: &At<'_, '_>, causes: &mut Causes) {
    mode(&at.child("defaultMode"), causes);
    for item in at.items("items") {
        downward_file(at, &item, causes);
    }
}

/// A file that holds something of the pod; told of the volume, not of the file.
pub(super) fn downward_file(told: &At<'_, '_>, file: &At<'_, '_>, causes: &mut Causes) {
    let path = file.text("path");
    if path.is_empty() {
        causes.push(told.child("path").required(""));
    }
    local(&told.child("path"), path, causes);
    let told_path = told.to_string();
    let here = At::root(file.value, &told_path);
    match (here.get("fieldRef"), here.get("resourceFieldRef")) {
        (Some(field), resource) => {
            env::field(&field, env::OF_FILES, causes);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.push(told.invalid_value("resource", why));
            }
        }
        (None, Some(resource)) => env::resource(&resource, true, causes),
        (None, None) => {
            causes.push(told.required("one of fieldRef and resourceFieldRef is required"));
        }
    }
    mode(&here.child("mode"), causes);
}

/// A path that stays where it starts.
pub(super) fn descending(at: &At<'_, '_>, path: &str, causes: &mut Causes) {
    if path.starts_with('/') {
        causes.push(at.invalid_value(path, "must be a relative path"));
    }
    backsteps(at, path, causes);
}

/// A path that never goes up.
pub(super) fn backsteps(at: &At<'_, '_>, path: &str, causes: &mut Causes) {
    if path.split('/').any(|part| part == "..") {
        causes.push(at.invalid_value(path, "must not contain '..'"));
    }
}

/// A path below the volume, and not one of its own.
pub(super) fn local(at: &At<'_, '_>, path: &str, causes: &mut Causes) {
    descending(at, path, causes);
    if path.starts_with("..") && !path.starts_with("../") {
        causes.push(at.invalid_value(path, "must not start with '..'"));
    }
}

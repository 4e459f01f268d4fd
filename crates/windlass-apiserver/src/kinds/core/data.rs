//! `ConfigMaps` and Secrets.

use base64::Engine as _;
use serde_json::Value;

use crate::json;
use crate::names;
use crate::status::{Cause, field};
use crate::validation::at::{At, IMMUTABLE};

/// All data of an object together, in bytes.
const LIMIT: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";
const ACCOUNT: &str = "kubernetes.io/service-account.name";

fn check_keys(data: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for key in data.keys() {
        check_key(data, key, causes);
    }
}

/// Keys become file names.
fn check_key(data: &At<'_, '_>, key: &str, causes: &mut Vec<Cause>) {
    let path = data.key(key).path();
    for why in names::data_key_errors(key) {
        causes.push(field::invalid(path.as_str(), &key.into(), &why));
    }
}

fn decoded(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default().replace(['\n', '\r'], "");
    let engine = base64::engine::general_purpose::STANDARD;
    engine.decode(text).unwrap_or_default()
}

fn size(data: &At<'_, '_>, of: impl Fn(&Value) -> usize) -> usize {
    let values = data
        .value
        .as_object()
        .into_iter()
        .flat_map(|map| map.values());
    values.map(of).sum()
}

pub(crate) fn check_config_map(map: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(map, "");
    let (data, binary) = (root.child("data"), root.child("binaryData"));
    for key in data.keys() {
        check_key(&data, key, causes);
        if binary.value.get(key).is_some() {
            let why = "duplicate of key present in binaryData";
            causes.push(field::invalid(data.key(key).path(), &key.into(), why));
        }
    }
    check_keys(&binary, causes);
    let bytes = size(&data, |value| value.as_str().map_or(0, str::len))
        + size(&binary, |value| decoded(value).len());
    if bytes > LIMIT {
        causes.push(field::too_long("", LIMIT as u64));
    }
}

pub(crate) fn check_secret(secret: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(secret, "");
    let data = root.child("data");
    check_keys(&data, causes);
    if size(&data, |value| decoded(value).len()) > LIMIT {
        causes.push(field::too_long("data", LIMIT as u64));
    }
    let need = |keys: &[&str], causes: &mut Vec<Cause>| {
        for key in keys.iter().map(|key| data.key(key)) {
            if !key.is_set() {
                causes.push(key.required(""));
            }
        }
    };
    match root.child("type").as_text() {
        "kubernetes.io/service-account-token" => {
            let account = root.child("metadata").then("annotations").then_key(ACCOUNT);
            if account.as_text().is_empty() {
                causes.push(account.required(""));
            }
        }
        "kubernetes.io/basic-auth"
            if !data.key("username").is_set() && !data.key("password").is_set() =>
        {
            need(&["username", "password"], causes);
        }
        "kubernetes.io/ssh-auth" => need(&["ssh-privatekey"], causes),
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"], causes),
        "kubernetes.io/dockercfg" => check_docker(&data.key(".dockercfg"), causes),
        "kubernetes.io/dockerconfigjson" => {
            check_docker(&data.key(".dockerconfigjson"), causes);
        }
        _ => {}
    }
}

/// Credentials of a registry are JSON; nobody is shown what is in them.
fn check_docker(credentials: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if !credentials.is_set() {
        causes.push(credentials.required(""));
        return;
    }
    let bytes = decoded(credentials.value);
    if let Err(error) = json::from_json(&bytes) {
        let why = json::go_error(&error, &bytes);
        let shown = "\"<secret contents redacted>\"";
        let path = credentials.path();
        causes.push(field::invalid_shown(path, shown, &why));
    }
}

/// An immutable `ConfigMap` or Secret stays so, with all it holds.
pub(crate) fn check_frozen(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if old["immutable"] != true {
        return;
    }
    if new["immutable"] != true {
        causes.push(field::forbidden("immutable", FROZEN));
    }
    for part in ["data", "binaryData"] {
        if new.get(part) != old.get(part) {
            causes.push(field::forbidden(part, FROZEN));
        }
    }
}

pub(crate) fn check_secret_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if new["type"] != old["type"] {
        causes.push(field::invalid("type", &new["type"], IMMUTABLE));
    }
    check_frozen(new, old, causes);
}

//! What changes when a definition replaces the one that is installed, and what of it breaks objects
//! that exist or clients that write them.
//!
//! A change breaks when something that was valid no longer is: a field that goes, another type,
//! narrower bounds, a value no longer allowed, a version no longer served. Wider is not broken.

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;

/// One change between two definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The version and the field, as `v1 .spec.size`; empty for the definition itself.
    pub path: String,
    /// What changes.
    pub message: String,
    /// Whether it breaks objects or clients.
    pub breaking: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Everything of note that changes when `wanted` replaces `installed`.
pub fn changes(
    installed: &CustomResourceDefinition,
    wanted: &CustomResourceDefinition,
) -> Vec<Change> {
    let mut changes = Changes(Vec::new());
    let (old, new) = (&installed.spec, &wanted.spec);
    for (what, old, new) in [
        ("group", &old.group, &new.group),
        ("scope", &old.scope, &new.scope),
        ("kind", &old.names.kind, &new.names.kind),
        ("plural name", &old.names.plural, &new.names.plural),
    ] {
        if old != new {
            changes.breaks("", format!("the {what} changes from {old} to {new}"));
        }
    }
    let storage = |versions: &[CustomResourceDefinitionVersion]| {
        let found = versions.iter().find(|version| version.storage);
        found
            .map(|version| version.name.clone())
            .unwrap_or_default()
    };
    let (from, to) = (storage(&old.versions), storage(&new.versions));
    if from != to {
        let message = format!("objects are stored as {to} instead of {from}, and are rewritten");
        changes.notes("", message);
    }
    let stored = installed.status.as_ref();
    let stored = stored.and_then(|status| status.stored_versions.as_ref());
    for version in stored.into_iter().flatten() {
        if !new.versions.iter().any(|one| one.name == *version) {
            changes.breaks(
                "",
                format!("objects may be stored as {version}, which is gone"),
            );
        }
    }
    for version in old.versions.iter().filter(|version| version.served) {
        let found = new.versions.iter().find(|one| one.name == version.name);
        match found.filter(|one| one.served) {
            Some(wanted) => versions(version, wanted, &mut changes),
            None => changes.breaks("", format!("{} is no longer served", version.name)),
        }
    }
    changes.0
}

struct Changes(Vec<Change>);

impl Changes {
    fn add(&mut self, path: &str, message: String, breaking: bool) {
        self.0.push(Change {
            path: path.to_owned(),
            message,
            breaking,
        });
    }

    fn breaks(&mut self, path: &str, message: String) {
        self.add(path, message, true);
    }

    fn notes(&mut self, path: &str, message: String) {
        self.add(path, message, false);
    }
}

fn versions(
    old: &CustomResourceDefinitionVersion,
    new: &CustomResourceDefinitionVersion,
    changes: &mut Changes,
) {
    let as_json = |version: &CustomResourceDefinitionVersion| {
        serde_json::to_value(version).unwrap_or_default()
    };
    let (old_json, new_json) = (as_json(old), as_json(new));
    for name in ["status", "scale"] {
        let has = |version: &Value| !version["subresources"][name].is_null();
        if has(&old_json) && !has(&new_json) {
            changes.breaks(&old.name, format!("the subresource {name} goes"));
        }
    }
    let schema = "openAPIV3Schema";
    let (old_schema, new_schema) = (&old_json["schema"][schema], &new_json["schema"][schema]);
    if new_schema.is_object() {
        schemas(old_schema, new_schema, &format!("{} ", old.name), changes);
    }
}

/// Bounds that must not grow.
const LEAST: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
/// Bounds that must not shrink.
const MOST: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// What must stay as it is, or go.
const SAME_OR_GONE: [&str; 9] = [
    "pattern",
    "format",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];
/// What must stay as it is: objects are merged by it.
const SAME: [&str; 4] = [
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];
const ANY: &str = "x-kubernetes-preserve-unknown-fields";

fn schemas(old: &Value, new: &Value, path: &str, changes: &mut Changes) {
    // What took anything, or nothing in particular, now takes less.
    if old["type"] != new["type"] {
        if new[ANY] != true || !new["type"].is_null() {
            let name = |schema: &Value| schema["type"].as_str().unwrap_or("any").to_owned();
            changes.breaks(
                path,
                format!("the type changes from {} to {}", name(old), name(new)),
            );
        }
        return;
    }
    for key in SAME {
        if old[key] != new[key] {
            let (old, new) = (shown(&old[key]), shown(&new[key]));
            changes.breaks(path, format!("{key} changes from {old} to {new}"));
        }
    }
    for key in SAME_OR_GONE {
        let (old, new) = (&old[key], &new[key]);
        let off = |value: &Value| value.is_null() || *value == false;
        if old != new && !off(new) {
            let message = format!("{key} changes from {} to {}", shown(old), shown(new));
            changes.breaks(path, message);
        }
    }
    for (keys, grows) in [(LEAST, true), (MOST, false)] {
        for key in keys {
            let (old, new) = (old[key].as_f64(), new[key].as_f64());
            let tighter = match (old, new) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(old), Some(new)) => (new > old) == grows && (new - old).abs() > 0.0,
            };
            if tighter {
                let shown = |bound: Option<f64>| bound.map_or("none".to_owned(), |b| b.to_string());
                changes.breaks(
                    path,
                    format!("{key} changes from {} to {}", shown(old), shown(new)),
                );
            }
        }
    }
    values(old, new, path, changes);
    if old["nullable"] == true && new["nullable"] != true {
        changes.breaks(path, "null is no longer allowed".to_owned());
    }
    if old[ANY] == true && new[ANY] != true {
        changes.breaks(path, "unknown fields are no longer kept".to_owned());
    }
    if old["default"] != new["default"] {
        let (old, new) = (shown(&old["default"]), shown(&new["default"]));
        changes.notes(path, format!("the default changes from {old} to {new}"));
    }
    rules(old, new, path, changes);
    fields(old, new, path, changes);
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        match (&old[key], &new[key]) {
            (old @ Value::Object(_), new @ Value::Object(_)) => {
                schemas(old, new, &format!("{path}{mark}"), changes);
            }
            (Value::Null, Value::Null) => {}
            (old, Value::Null) if !old.is_null() && new[ANY] != true => {
                changes.breaks(path, format!("{key} goes"));
            }
            _ => {}
        }
    }
}

fn values(old: &Value, new: &Value, path: &str, changes: &mut Changes) {
    let Some(allowed) = new["enum"].as_array() else {
        return;
    };
    match old["enum"].as_array() {
        None => changes.breaks(path, format!("only {} is allowed now", shown(&new["enum"]))),
        Some(before) => {
            for gone in before.iter().filter(|value| !allowed.contains(value)) {
                changes.breaks(path, format!("{} is no longer allowed", shown(gone)));
            }
        }
    }
}

fn rules(old: &Value, new: &Value, path: &str, changes: &mut Changes) {
    let key = "x-kubernetes-validations";
    let of = |schema: &Value| schema[key].as_array().cloned().unwrap_or_default();
    let known = of(old);
    for rule in of(new) {
        if !known.iter().any(|one| one["rule"] == rule["rule"]) {
            changes.breaks(
                path,
                format!("there is a new rule: {}", shown(&rule["rule"])),
            );
        }
    }
}

fn fields(old: &Value, new: &Value, path: &str, changes: &mut Changes) {
    let of = |schema: &Value| {
        schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    let (before, after) = (of(old), of(new));
    for (name, field) in &before {
        let path = format!("{path}.{name}");
        match after.get(name) {
            Some(wanted) => schemas(field, wanted, &path, changes),
            None if new[ANY] == true => {}
            None => changes.breaks(&path, "the field goes".to_owned()),
        }
    }
    let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    let known = required(old);
    for name in required(new).iter().filter(|name| !known.contains(name)) {
        let name = name.as_str().unwrap_or_default();
        // With a default it is never missing.
        if after
            .get(name)
            .is_none_or(|field| field["default"].is_null())
        {
            changes.breaks(&format!("{path}.{name}"), "it is required now".to_owned());
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    }
}

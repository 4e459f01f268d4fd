//! What a schema of a list must say so that its items can be told apart.

use super::path::{child, key};
use super::schema::Schema;
use windlass_apimachinery::field::{self, Cause};

pub(super) fn not_among(at: &str, value: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    if !allowed.contains(&value) {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
        causes.push(field::not_supported(at, &value.into(), &allowed));
    }
}

/// Items of a set are told apart as a whole.
pub(super) fn set_items(schema: &Schema, at: &str, causes: &mut Vec<Cause>) {
    let Some(items) = schema.item() else { return };
    let shown = items
        .list_type
        .as_deref()
        .map_or(serde_json::Value::Null, Into::into);
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let part = match items.ty.as_str() {
        "array" if !matches!(items.list_type.as_deref(), None | Some("atomic")) => {
            "x-kubernetes-list-type"
        }
        "object" if items.map_type.as_deref() != Some("atomic") => "x-kubernetes-map-type",
        _ => return,
    };
    let at = child(&child(at, "items"), part);
    causes.push(field::invalid(at, &shown, why));
}

/// Items of a keyed list have their keys.
pub(super) fn map_items(schema: &Schema, at: &str, causes: &mut Vec<Cause>) {
    let at_keys = child(at, "x-kubernetes-list-map-keys");
    let keys = &schema.list_map_keys;
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        causes.push(field::required(&at_keys, why));
    }
    if schema.items.is_none() {
        let why = "must have a schema if x-kubernetes-list-type is map";
        causes.push(field::required(child(at, "items"), why));
    }
    let Some(items) = schema.item() else { return };
    if items.ty != "object" {
        causes.push(field::invalid(
            child(at, "items.type"),
            &items.ty.as_str().into(),
            "must be object if parent array's x-kubernetes-list-type is map",
        ));
        return;
    }
    let shown = serde_json::json!(keys);
    for (number, name) in keys.iter().enumerate() {
        match items.properties.get(name) {
            Some(property) if matches!(property.ty.as_str(), "array" | "object") => {
                let at = child(&key(&child(at, "items.properties"), name), "type");
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                causes.push(field::invalid(at, &items.ty.as_str().into(), why));
            }
            Some(_) => {}
            None => {
                let why = "entries must all be names of item properties";
                causes.push(field::invalid(&at_keys, &shown, why));
            }
        }
        if keys[..number].contains(name) {
            let why = "must not contain duplicate entries";
            causes.push(field::invalid(&at_keys, &shown, why));
        }
    }
}

/// Items are there, and so are their keys.
pub(super) fn keys_of_items(schema: &Schema, at: &str, causes: &mut Vec<Cause>) {
    let Some(items) = schema.item() else { return };
    let list_type = schema.list_type.as_deref().unwrap_or_default();
    if items.nullable {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        causes.push(field::forbidden(child(at, "items.nullable"), &why));
    }
    if list_type != "map" {
        return;
    }
    for name in &schema.list_map_keys {
        let Some(property) = items.properties.get(name) else {
            continue;
        };
        let at = key(&child(at, "items.properties"), name);
        if !items.required.contains(name) && property.default.is_none() {
            causes.push(field::required(
                child(&at, "default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ));
        }
        if property.nullable {
            causes.push(field::forbidden(
                child(&at, "nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
    }
}

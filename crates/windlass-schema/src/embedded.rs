//! Objects inside of objects: what their type and metadata must be.

use serde_json::Value;

use super::path::child;
use super::schema::Schema;
use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::place::Place;
use windlass_apimachinery::steps::step;
use windlass_apimachinery::{names, object_meta};

/// What is wrong with the embedded objects of a value.
pub(super) fn check(value: &Value, schema: &Schema, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(value, schema, &Place::At(at), &mut causes);
    causes
}

fn visit(value: &Value, schema: &Schema, at: &Place<'_>, causes: &mut Vec<Cause>) {
    step();
    match value {
        Value::Object(map) => {
            if schema.embedded {
                check_one(value, &at.path(), causes);
            }
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    visit(value, property, &Place::Field(at, name), causes);
                } else if let Some(values) = schema.values() {
                    visit(value, values, &Place::Key(at, name), causes);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for (place, item) in items.iter().enumerate() {
                    visit(item, schema, &Place::Item(at, place), causes);
                }
            }
        }
        _ => {}
    }
}

fn check_one(object: &Value, at: &str, causes: &mut Vec<Cause>) {
    for part in ["apiVersion", "kind"] {
        if object.get(part).is_none() {
            causes.push(field::required(child(at, part), ""));
        }
    }
    let mut wrong = |part: &str, why: &str| {
        causes.push(field::invalid(child(at, part), &object[part], why));
    };
    match object.get("apiVersion").map(Value::as_str) {
        Some(None) => wrong("apiVersion", "must be a string"),
        Some(Some("")) => wrong("apiVersion", "must not be empty"),
        Some(Some(version)) if version.matches('/').count() > 1 => {
            let why = format!("unexpected GroupVersion string: {version}");
            wrong("apiVersion", &why);
        }
        None | Some(Some(_)) => {}
    }
    match object.get("kind").map(Value::as_str) {
        None => {}
        Some(None) => wrong("kind", "must be a string"),
        Some(Some("")) => wrong("kind", "must not be empty"),
        Some(Some(kind)) => {
            let errors = names::label_1035_errors(&kind.to_lowercase());
            if !errors.is_empty() {
                let why = format!(
                    "may have mixed case, but should otherwise match: {}",
                    errors.join(",")
                );
                wrong("kind", &why);
            }
        }
    }
    if object["metadata"].is_object() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        for why in names::segment_errors(name) {
            let at = child(at, "metadata.name");
            causes.push(field::invalid(at, &name.into(), &why));
        }
        for mut cause in object_meta::common_causes(object) {
            cause.field = child(at, &cause.field);
            causes.push(cause);
        }
    }
}

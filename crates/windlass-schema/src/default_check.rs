//! Whether the defaults of a schema fit it: they have no unknown fields and are valid themselves.

use serde_json::Value;

use super::object::ReadMetadata;
use super::path::{child, key};
use super::rules::Rules;
use super::schema::{META_FIELDS, Schema};
use super::{embedded, validate};
use windlass_apimachinery::field::{self, Cause};

/// What is wrong with the defaults of a schema, which is structural.
pub(super) fn check(schema: &Schema, read: ReadMetadata, at: &str, causes: &mut Vec<Cause>) {
    visit(schema, read, true, false, at, causes);
}

fn visit(
    schema: &Schema,
    read: ReadMetadata,
    is_resource: bool,
    in_metadata: bool,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let is_resource = is_resource || schema.embedded;
    if let Some(default) = &schema.default {
        let at = child(at, "default");
        if !in_metadata {
            let mut pruned = default.clone();
            if !schema.prune(&mut pruned, schema.embedded).is_empty() {
                causes.push(field::invalid(&at, default, "must not have unknown fields"));
            }
        }
        value(schema, read, default, &at, causes);
    }
    if let Some(items) = schema.item() {
        visit(items, read, false, in_metadata, &child(at, "items"), causes);
    }
    for (name, property) in &schema.properties {
        let in_metadata = in_metadata || (is_resource && META_FIELDS.contains(&name.as_str()));
        let at = key(&child(at, "properties"), name);
        visit(property, read, false, in_metadata, &at, causes);
    }
}

fn value(schema: &Schema, read: ReadMetadata, default: &Value, at: &str, causes: &mut Vec<Cause>) {
    if let Err(why) = schema.read_embedded(&mut default.clone(), read) {
        causes.push(field::invalid(at, default, &why.to_string()));
        return;
    }
    let mut found = embedded::check(default, schema, at);
    if found.is_empty() {
        found = validate::check(default, schema, at, None);
    }
    if found.is_empty()
        && let Some(rules) = Rules::of(schema, schema.embedded)
    {
        let (wrong, _) = rules.check(default, Some(default), schema, at, false);
        found = wrong;
        if found.is_empty() {
            (found, _) = rules.check(default, None, schema, at, false);
        }
    }
    causes.append(&mut found);
}

//! Whether a schema is structural: whether it says of every field, once and outside of any logic,
//! what it is.
//!
//! What stands inside `allOf`, `anyOf`, `oneOf` and `not` may only restrict values that are
//! specified outside of them.

use super::path::{child, index, key};
use super::schema::{AdditionalProperties, Items, Schema};
use windlass_apimachinery::field::{self, Cause};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why a schema cannot be looked at as a structural one at all.
pub(super) fn unreadable(schema: &Schema) -> Option<&'static str> {
    let own = if !schema.id.is_empty() {
        Some("OpenAPIV3Schema 'id' is not supported")
    } else if schema.reference.is_some() {
        Some("OpenAPIV3Schema '$ref' is not supported")
    } else if !schema.pattern_properties.is_empty() {
        Some("OpenAPIV3Schema 'patternProperties' is not supported")
    } else if !schema.definitions.is_empty() {
        Some("OpenAPIV3Schema 'definitions' is not supported")
    } else if schema.dependencies.is_some() {
        Some("OpenAPIV3Schema 'dependencies' is not supported")
    } else if schema.additional_items.is_some() {
        Some("OpenAPIV3Schema 'additionalItems' is not supported")
    } else if matches!(&schema.items, Some(Items::Each(schemas)) if !schemas.is_empty()) {
        Some("OpenAPIV3Schema 'items' must be a schema, but is an array")
    } else {
        None
    };
    own.or_else(|| schema.children().into_iter().find_map(unreadable))
}

/// Everything in which a schema is not structural, in the order of the sentences.
pub(super) fn check(schema: &Schema, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    invariants(schema, Level::Root, at, &mut causes);
    completeness(schema, Some(schema), at, at, &mut causes);
    causes.sort_by_cached_key(|cause| format!("{}: {}", cause.field, cause.message));
    causes
}

fn invariants(schema: &Schema, level: Level, at: &str, causes: &mut Vec<Cause>) {
    if schema.ty == "array" && schema.items.is_none() {
        causes.push(field::required(child(at, "items"), "must be specified"));
    }
    if let Some(items) = schema.item() {
        invariants(items, Level::Item, &child(at, "items"), causes);
    }
    for (name, property) in &schema.properties {
        let at = key(&child(at, "properties"), name);
        invariants(property, Level::Field, &at, causes);
    }
    if let Some(additional) = &schema.additional_properties {
        let at = child(at, "additionalProperties");
        if level == Level::Root {
            causes.push(field::forbidden(&at, "must not be used at the root"));
        }
        if let AdditionalProperties::Of(values) = additional {
            invariants(values, Level::Field, &at, causes);
        }
    }
    extensions(schema, at, causes);
    let (skip_any, skip_first_all) = int_or_string_patterns(schema);
    value_validation(schema, skip_any, skip_first_all, at, causes);
    types(schema, level, at, causes);
    let is_resource = level == Level::Root || schema.embedded;
    for part in ["kind", "apiVersion"] {
        if let Some(property) = schema.properties.get(part)
            && is_resource
            && property.ty != "string"
        {
            let at = child(&key(&child(at, "properties"), part), "type");
            let ty = property.ty.as_str().into();
            causes.push(field::invalid(at, &ty, "must be string"));
        }
    }
    if let Some(metadata) = schema.properties.get("metadata") {
        let at = key(&child(at, "properties"), "metadata");
        if is_resource && metadata.ty != "object" {
            let ty = metadata.ty.as_str().into();
            causes.push(field::invalid(child(&at, "type"), &ty, "must be object"));
        }
        if level == Level::Root && !says_names_only(metadata) {
            causes.push(field::forbidden(
                at,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }
    if schema.embedded && !schema.keeps_unknown() && schema.properties.is_empty() {
        causes.push(field::required(
            child(at, "properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn extensions(schema: &Schema, at: &str, causes: &mut Vec<Cause>) {
    if !schema.int_or_string {
        return;
    }
    let why = "must be false if x-kubernetes-int-or-string is true";
    if schema.keeps_unknown() {
        let at = child(at, "x-kubernetes-preserve-unknown-fields");
        causes.push(field::invalid(at, &true.into(), why));
    }
    if schema.embedded {
        let at = child(at, "x-kubernetes-embedded-resource");
        causes.push(field::invalid(at, &true.into(), why));
    }
}

fn types(schema: &Schema, level: Level, at: &str, causes: &mut Vec<Cause>) {
    let ty = schema.ty.as_str();
    let at_type = child(at, "type");
    if schema.embedded && ty != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(if ty.is_empty() {
            field::required(&at_type, why)
        } else {
            field::invalid(&at_type, &ty.into(), why)
        });
    } else if ty.is_empty() && !schema.int_or_string && !schema.keeps_unknown() {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(field::required(&at_type, why));
    }
    if schema.embedded && schema.additional_properties.is_some() {
        causes.push(field::forbidden(
            child(at, "additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !ty.is_empty() && ty != "object" {
        let why = "must be object at the root";
        causes.push(field::invalid(at_type, &ty.into(), why));
    }
}

/// Whether the schema of metadata restricts the names at most.
fn says_names_only(schema: &Schema) -> bool {
    let names_only = schema
        .properties
        .keys()
        .all(|name| name == "name" || name == "generateName");
    let has_validation = !schema.allowed.is_empty()
        || !schema.format.is_empty()
        || !schema.pattern.is_empty()
        || !schema.required.is_empty()
        || schema.minimum.is_some()
        || schema.maximum.is_some()
        || schema.multiple_of.is_some()
        || schema.min_length.is_some()
        || schema.max_length.is_some()
        || schema.min_items.is_some()
        || schema.max_items.is_some()
        || schema.min_properties.is_some()
        || schema.max_properties.is_some()
        || !schema.all_of.is_empty()
        || !schema.any_of.is_empty()
        || !schema.one_of.is_empty()
        || schema.not.is_some();
    names_only
        && !has_validation
        && schema.items.is_none()
        && schema.additional_properties.is_none()
        && schema.description.is_empty()
        && schema.title.is_empty()
        && !schema.nullable
        && !schema.keeps_unknown()
        && !schema.embedded
        && !schema.int_or_string
        && schema.list_map_keys.is_empty()
        && schema.list_type.is_none()
        && schema.map_type.is_none()
        && schema.rules.is_empty()
}

/// The two ways of saying integer or text that may repeat the types: under `anyOf`, and under the
/// first of `allOf`.
fn int_or_string_patterns(schema: &Schema) -> (bool, bool) {
    let is_pair = |schemas: &[Schema]| match schemas {
        [first, second] => {
            first.ty == "integer"
                && second.ty == "string"
                && is_type_only(first)
                && is_type_only(second)
        }
        _ => false,
    };
    (
        is_pair(&schema.any_of),
        schema
            .all_of
            .first()
            .is_some_and(|first| is_pair(&first.any_of)),
    )
}

fn is_type_only(schema: &Schema) -> bool {
    schema.properties.is_empty() && says_names_only(schema) && schema.default.is_none()
}

fn value_validation(
    schema: &Schema,
    skip_any: bool,
    skip_first_all: bool,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    if !skip_any {
        for (place, inner) in schema.any_of.iter().enumerate() {
            nested(inner, false, &index(&child(at, "anyOf"), place), causes);
        }
    }
    for (place, inner) in schema.all_of.iter().enumerate() {
        let skip = skip_first_all && place == 0;
        nested(inner, skip, &index(&child(at, "allOf"), place), causes);
    }
    for (place, inner) in schema.one_of.iter().enumerate() {
        nested(inner, false, &index(&child(at, "oneOf"), place), causes);
    }
    if let Some(inner) = &schema.not {
        nested(inner, false, &child(at, "not"), causes);
    }
    if !schema.pattern.is_empty()
        && let Err(why) = windlass_regexp::compile(&schema.pattern)
    {
        causes.push(field::invalid(
            child(at, "pattern"),
            &schema.pattern.as_str().into(),
            &format!("must be a valid regular expression, but isn't: {why}"),
        ));
    }
}

/// What may not be said inside of logic.
fn nested(schema: &Schema, skip_any: bool, at: &str, causes: &mut Vec<Cause>) {
    value_validation(schema, skip_any, false, at, causes);
    if let Some(items) = schema.item() {
        nested(items, false, &child(at, "items"), causes);
    }
    for (name, property) in &schema.properties {
        nested(
            property,
            false,
            &key(&child(at, "properties"), name),
            causes,
        );
    }
    let mut forbid = |is_there: bool, part: &str, why: &str| {
        if is_there {
            causes.push(field::forbidden(child(at, part), why));
        }
    };
    let (empty, undefined, no) = (
        "must be empty to be structural",
        "must be undefined to be structural",
        "must be false to be structural",
    );
    forbid(!schema.ty.is_empty(), "type", empty);
    forbid(
        schema.additional_properties.is_some(),
        "additionalProperties",
        undefined,
    );
    forbid(schema.default.is_some(), "default", undefined);
    forbid(!schema.title.is_empty(), "title", empty);
    forbid(!schema.description.is_empty(), "description", empty);
    forbid(schema.nullable, "nullable", no);
    forbid(
        schema.keeps_unknown(),
        "x-kubernetes-preserve-unknown-fields",
        no,
    );
    forbid(schema.embedded, "x-kubernetes-embedded-resource", no);
    forbid(schema.int_or_string, "x-kubernetes-int-or-string", no);
    forbid(
        !schema.list_map_keys.is_empty(),
        "x-kubernetes-list-map-keys",
        empty,
    );
    forbid(
        schema.list_type.is_some(),
        "x-kubernetes-list-type",
        undefined,
    );
    forbid(
        schema.map_type.is_some(),
        "x-kubernetes-map-type",
        undefined,
    );
    forbid(!schema.rules.is_empty(), "x-kubernetes-validations", empty);
    if schema.properties.contains_key("metadata") {
        causes.push(field::forbidden(
            key(&child(at, "properties"), "metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// Everything that is restricted inside of logic must be specified outside of it.
fn completeness(
    logic: &Schema,
    outside: Option<&Schema>,
    at: &str,
    logic_at: &str,
    causes: &mut Vec<Cause>,
) {
    if let Some(inner) = &logic.not {
        nested_completeness(inner, outside, at, &child(logic_at, "not"), causes);
    }
    for (part, schemas) in [
        ("allOf", &logic.all_of),
        ("anyOf", &logic.any_of),
        ("oneOf", &logic.one_of),
    ] {
        for (place, inner) in schemas.iter().enumerate() {
            let logic_at = index(&child(logic_at, part), place);
            nested_completeness(inner, outside, at, &logic_at, causes);
        }
    }
}

fn nested_completeness(
    logic: &Schema,
    outside: Option<&Schema>,
    at: &str,
    logic_at: &str,
    causes: &mut Vec<Cause>,
) {
    let Some(outside) = outside else {
        causes.push(field::required(
            at,
            &format!("because it is defined in {logic_at}"),
        ));
        return;
    };
    completeness(logic, Some(outside), at, logic_at, causes);
    if let Some(items) = logic.item() {
        nested_completeness(
            items,
            outside.item(),
            &child(at, "items"),
            &child(logic_at, "items"),
            causes,
        );
    }
    for (name, property) in &logic.properties {
        let at = key(&child(at, "properties"), name);
        let logic_at = key(&child(logic_at, "properties"), name);
        nested_completeness(
            property,
            outside.properties.get(name),
            &at,
            &logic_at,
            causes,
        );
    }
}

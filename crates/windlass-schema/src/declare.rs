//! What a schema tells CEL: types, and how long things can get.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::schema::Schema;
use windlass_cel::{Declared, Object, Type, escape};

/// The most bytes of a request.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;
/// The least and the most letters of a time, a date and a duration in JSON.
const TIME: (u64, u64) = (21, 32);
const DATE: u64 = 12;
const DURATION: (u64, u64) = (3, 32);

/// What is known of values of a schema; nothing, if rules may not look at them. The root of a
/// resource has its names, whatever the schema says.
pub(super) fn declare(schema: &Schema, is_resource: bool) -> Option<Arc<Declared>> {
    let simple = |ty: Type, max: u64, min_bytes: u64| {
        Some(Arc::new(Declared {
            ty,
            max,
            min_bytes,
            item: None,
        }))
    };
    let letters = schema
        .max_length
        .map(|max| u64::try_from(max).unwrap_or(0).saturating_mul(4));
    let any_letters = MAX_REQUEST - 2;
    if schema.int_or_string {
        return simple(Type::Dyn, letters.unwrap_or(any_letters), 1);
    }
    match (schema.ty.as_str(), schema.format.as_str()) {
        ("boolean", _) => simple(Type::Bool, 0, 4),
        ("integer", _) => simple(Type::Int, 0, 1),
        ("number", _) => simple(Type::Double, 0, 1),
        ("string", "byte") => {
            let max = schema.max_length.map(|max| u64::try_from(max).unwrap_or(0));
            simple(Type::Bytes, max.unwrap_or(any_letters), 2)
        }
        ("string", "duration") => simple(Type::Duration, DURATION.1, DURATION.0),
        ("string", "date") => simple(Type::Timestamp, DATE, DATE),
        ("string", "date-time") => simple(Type::Timestamp, TIME.1, TIME.0),
        ("string", _) => {
            let listed = schema.allowed.iter().filter_map(|value| value.as_str());
            let longest = listed.map(|text| text.len() as u64).max();
            simple(Type::String, letters.or(longest).unwrap_or(any_letters), 2)
        }
        ("array", _) => {
            let items = schema.item()?;
            let item = declare(items, items.embedded)?;
            let most = schema.max_items.map_or_else(
                || (MAX_REQUEST - 2) / (item.min_bytes + 1),
                |max| u64::try_from(max).unwrap_or(0),
            );
            Some(Arc::new(Declared {
                ty: Type::List(Box::new(item.ty.clone())),
                max: most,
                min_bytes: 2,
                item: Some(item),
            }))
        }
        ("object", _) => object(schema, is_resource),
        _ => None,
    }
}

fn object(schema: &Schema, is_resource: bool) -> Option<Arc<Declared>> {
    if let Some(values) = schema.values() {
        let value = declare(values, values.embedded)?;
        let most = schema.max_properties.map_or_else(
            || (MAX_REQUEST - 2) / (value.min_bytes + 6),
            |max| u64::try_from(max).unwrap_or(0),
        );
        return Some(Arc::new(Declared {
            ty: Type::Map(Box::new(Type::String), Box::new(value.ty.clone())),
            max: most,
            min_bytes: 2,
            item: Some(value),
        }));
    }
    let mut fields = BTreeMap::new();
    let mut min_bytes = 2_u64;
    for (name, property) in &schema.properties {
        let Some(declared) = declare(property, property.embedded) else {
            continue;
        };
        if schema.required.contains(name) && property.default.is_none() {
            min_bytes += name.len() as u64 + declared.min_bytes + 4;
        }
        if let Some(name) = escape(name) {
            fields.insert(name, declared);
        }
    }
    if is_resource {
        add_type_and_names(&mut fields);
    }
    Some(Arc::new(Declared {
        ty: Type::Object(Arc::new(Object { fields })),
        max: 0,
        min_bytes,
        item: None,
    }))
}

fn add_type_and_names(fields: &mut BTreeMap<String, Arc<Declared>>) {
    let text = || {
        Arc::new(Declared {
            ty: Type::String,
            max: MAX_REQUEST - 2,
            min_bytes: 2,
            item: None,
        })
    };
    let is_complete = ["kind", "apiVersion"]
        .iter()
        .all(|name| fields.contains_key(*name))
        && fields
            .get("metadata")
            .is_some_and(|metadata| match &metadata.ty {
                Type::Object(object) => ["name", "generateName"]
                    .iter()
                    .all(|name| object.fields.contains_key(*name)),
                _ => false,
            });
    if is_complete {
        return;
    }
    let names = ["name", "generateName"]
        .into_iter()
        .map(|name| (name.to_owned(), text()))
        .collect();
    for name in ["kind", "apiVersion"] {
        fields.insert(name.into(), text());
    }
    fields.insert(
        "metadata".into(),
        Arc::new(Declared {
            ty: Type::Object(Arc::new(Object { fields: names })),
            max: 0,
            min_bytes: 2,
            item: None,
        }),
    );
}

/// How often something of this size fits into a request.
pub(super) fn cardinality(declared: &Declared) -> u64 {
    MAX_REQUEST / (declared.min_bytes + 1)
}

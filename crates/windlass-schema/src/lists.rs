//! Sets and keyed lists hold each item once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::schema::Schema;
use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::place::Place;
use windlass_apimachinery::steps::step;

/// The items that stand in a set or keyed list a second time.
pub(super) fn check(value: &Value, schema: &Schema, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(value, schema, &Place::At(at), &mut causes);
    causes
}

fn visit(value: &Value, schema: &Schema, at: &Place<'_>, causes: &mut Vec<Cause>) {
    step();
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    visit(value, property, &Place::Field(at, name), causes);
                } else if let Some(values) = schema.values() {
                    visit(value, values, &Place::Key(at, name), causes);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type.as_deref() {
                Some("set") => twice(items.iter().map(Cow::Borrowed), at, causes),
                Some("map") => keyed(items, schema, at, causes),
                _ => {}
            }
            if let Some(schema) = schema.item() {
                for (place, item) in items.iter().enumerate() {
                    visit(item, schema, &Place::Item(at, place), causes);
                }
            }
        }
        _ => {}
    }
}

fn keyed(items: &[Value], schema: &Schema, at: &Place<'_>, causes: &mut Vec<Cause>) {
    let strange = items
        .iter()
        .enumerate()
        .find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((place, item)) = strange {
        let why = "must be an object for an array of list-type map";
        causes.push(field::invalid(Place::Item(at, place), item, why));
        return;
    }
    let keys_of = |item: &Value| {
        let keys = schema.list_map_keys.iter();
        let found = keys.filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Cow::Owned(Value::Object(found.collect::<Map<_, _>>()))
    };
    twice(items.iter().map(keys_of), at, causes);
}

/// Tells the second of equals, and no further ones.
fn twice<'v>(
    values: impl Iterator<Item = Cow<'v, Value>>,
    at: &Place<'_>,
    causes: &mut Vec<Cause>,
) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (place, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            causes.push(field::duplicate(Place::Item(at, place), &value));
        }
    }
}

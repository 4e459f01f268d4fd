//! core/v1 and events.k8s.io/v1 events: one store, two spellings. They are kept in core's.

use serde_json::{Map, Value};

/// Fields that only their names differ in: core's, then events.k8s.io's.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Turns an events.k8s.io/v1 event into the stored form.
pub(crate) fn to_core(event: &mut Value) {
    rename(event, "v1", |(core, new)| (new, core));
}

/// Turns a stored event into an events.k8s.io/v1 one.
pub(crate) fn from_core(event: &mut Value) {
    rename(event, "events.k8s.io/v1", |(core, new)| (core, new));
}

/// The stored path of a field of an events.k8s.io/v1 event.
pub(crate) fn stored_field(field: &str) -> String {
    let (first, rest) = field.split_once('.').unwrap_or((field, ""));
    let stored = NAMES
        .iter()
        .find(|(_, new)| *new == first)
        .map_or(first, |(core, _)| *core);
    if rest.is_empty() {
        stored.to_owned()
    } else {
        format!("{stored}.{rest}")
    }
}

fn rename(
    event: &mut Value,
    api_version: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(map): Option<&mut Map<String, Value>> = event.as_object_mut() else {
        return;
    };
    for pair in NAMES {
        let (from, to) = direction(*pair);
        if let Some(value) = map.remove(from) {
            map.insert(to.into(), value);
        }
    }
    map.insert("apiVersion".into(), api_version.into());
}

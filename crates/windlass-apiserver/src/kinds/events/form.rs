//! core/v1 and events.k8s.io/v1 events: one store, two spellings. They are kept in core's.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::store::Stored;

/// How long an event is kept unless the server is told otherwise.
pub(crate) const TTL: Duration = Duration::from_hours(1);

/// Forgets an event some time after it was written last; watches see it go.
pub(crate) fn expire_later(server: &ApiServer, resource: &Resource, stored: &Stored) {
    // Outside of a runtime there is no time that could pass.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let (key, revision) = (stored.key.clone(), stored.revision);
    let (table, selectable) = (resource.table.clone(), resource.selectable.clone());
    let (ttl, server) = (server.event_ttl(), server.downgrade());
    runtime.spawn(async move {
        tokio::time::sleep(ttl).await;
        let Some(server) = server.upgrade() else {
            return;
        };
        let found = server.store().get(&table, &key);
        if let Some(found) = found.filter(|found| found.revision == revision) {
            // Somebody who is quicker has written or deleted it: then this is not its time.
            let _ = server
                .store()
                .delete(&table, key, revision, found.value(), &selectable);
        }
    });
}

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

/// Who tells of it: core says so even when nobody does.
const REPORTER: &[&str] = &["reportingController", "reportingInstance"];

/// Turns an events.k8s.io/v1 event into the stored form.
pub(crate) fn to_core(event: &mut Value) {
    rename(event, "v1", |(core, new)| (new, core));
    if let Some(map) = event.as_object_mut() {
        for field in ["reportingComponent", "reportingInstance"] {
            map.entry(field).or_insert_with(|| "".into());
        }
    }
}

/// Turns a stored event into an events.k8s.io/v1 one.
pub(crate) fn from_core(event: &mut Value) {
    rename(event, "events.k8s.io/v1", |(core, new)| (core, new));
    if let Some(map) = event.as_object_mut() {
        for field in REPORTER {
            if map.get(*field).is_some_and(|value| value == "") {
                map.remove(*field);
            }
        }
    }
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

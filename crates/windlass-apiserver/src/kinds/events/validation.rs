//! Events, in the form of core. What is checked depends on the group they are written through.

use serde_json::Value;

use crate::names;
use crate::status::field;
use crate::validation::at::{At, Causes};
use crate::validation::internal;

/// What may not change through the newer group: the field, and the struct it is shown as.
const IMMUTABLE: &[(&str, &str)] = &[
    ("involvedObject", "core.ObjectReference"),
    ("reason", ""),
    ("message", ""),
    ("source", "core.EventSource"),
    ("firstTimestamp", ""),
    ("lastTimestamp", ""),
    ("count", ""),
    ("reason", ""),
    ("type", ""),
    ("eventTime", ""),
    ("action", ""),
    ("related", "core.ObjectReference"),
    ("reportingController", ""),
    ("reportingInstance", ""),
];

/// A field under the name that messages have for it.
fn named<'v>(event: &'v Value, name: &str) -> &'v Value {
    match name {
        "reportingController" => &event["reportingComponent"],
        name => &event[name],
    }
}

/// What both groups ask of an event.
pub(crate) fn check(event: &Value, newer: bool, causes: &mut Causes) {
    let at = At::root(event, "");
    let involved = at.child("involvedObject");
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let own = involved.text("namespace");
    let wrong = || {
        involved
            .child("namespace")
            .invalid_value(own, "does not match event.namespace")
    };
    if event["eventTime"].is_null() {
        let agrees = if own.is_empty() {
            namespace == "default"
        } else {
            own == namespace
        };
        if !agrees {
            causes.push(wrong());
        }
    } else {
        if own.is_empty() && !matches!(namespace, "default" | "kube-system") {
            causes.push(wrong());
        }
        let told = if newer {
            "reportingController"
        } else {
            "reportingComponent"
        };
        let reporter = at.text("reportingComponent");
        if reporter.is_empty() {
            causes.push(field::required(told, ""));
        }
        for why in names::qualified_errors(reporter) {
            causes.push(field::invalid(told, &reporter.into(), &why));
        }
        for name in ["reportingInstance", "action", "reason"] {
            if at.text(name).is_empty() {
                causes.push(at.child(name).required(""));
            }
            too_long(&at.child(name), 128, causes);
        }
        too_long(&at.child("message"), 1024, causes);
    }
}

fn too_long(at: &At<'_, '_>, most: usize, causes: &mut Causes) {
    if at.value.as_str().unwrap_or_default().len() > most {
        let why = format!("can have at most {most} characters");
        causes.push(at.invalid_value("", &why));
    }
}

fn series(at: &At<'_, '_>, causes: &mut Causes) {
    let Some(series) = at.get("series") else {
        return;
    };
    if series.int("count").unwrap_or_default() < 2 {
        causes.push(
            series
                .child("count")
                .invalid_value("", "should be at least 2"),
        );
    }
    if !series.has("lastObservedTime") {
        causes.push(series.child("lastObservedTime").required(""));
    }
}

/// What only the newer group asks of a new event.
pub(crate) fn check_newer(event: &Value, causes: &mut Causes) {
    let at = At::root(event, "");
    series(&at, causes);
    if event["eventTime"].is_null() {
        causes.push(at.child("eventTime").required(""));
    }
    let kind = at.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        causes.push(at.child("type").invalid_value("", &why));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let value = at.child(name).value;
        let unset = match value {
            Value::Null => true,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Object(map) => map.values().all(|part| part.is_null() || part == ""),
            _ => false,
        };
        if !unset {
            causes.push(at.child(name).invalid_value("", "needs to be unset"));
        }
    }
}

/// What may not change through the newer group.
pub(crate) fn check_newer_update(new: &Value, old: &Value, causes: &mut Causes) {
    let at = At::root(new, "");
    if new["series"] != old["series"] {
        series(&at, causes);
    }
    for (name, ty) in IMMUTABLE {
        let (now, before) = (named(new, name), named(old, name));
        if now != before {
            let shown = internal::show(now, ty);
            causes.push(field::invalid_shown(*name, &shown, "field is immutable"));
        }
    }
}

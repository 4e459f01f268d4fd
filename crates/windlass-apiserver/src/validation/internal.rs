//! The structs that Kubernetes validates are not those of its API: they have the names of Go, in
//! their order, and what is not set shows. Some messages show one, or how one became another.
//!
//! `facts/internals.json` (made by `scripts/internals`) has their fields.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::difference;

/// A field: its name there, its name in the API, what it is when absent, its type if it is a
/// struct or a list of them, and whether it is left out when absent.
#[derive(Deserialize)]
struct Field(String, String, Value, String, bool);

static TYPES: LazyLock<HashMap<String, Vec<Field>>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../facts/internals.json"))
        .expect("facts/internals.json is generated and checked in: it parses")
});

/// What a pod's spec says of namespaces is part of its security context there.
const OF_SECURITY_CONTEXT: &[&str] = &[
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];

/// A value of the API on one line, as the internal struct `ty`.
pub(crate) fn show(value: &Value, ty: &str) -> String {
    let mut out = String::new();
    Writer {
        out: &mut out,
        indent: None,
    }
    .value(&prepared(value, ty), ty);
    out
}

/// How one value of `ty` became another.
pub(crate) fn diff(old: &Value, new: &Value, ty: &str) -> String {
    let text = |value: &Value| {
        let mut out = String::new();
        Writer {
            out: &mut out,
            indent: Some(0),
        }
        .value(&prepared(value, ty), ty);
        out
    };
    difference::unified(&text(old), &text(new))
}

fn prepared(value: &Value, ty: &str) -> Value {
    let mut value = value.clone();
    let spec = match ty {
        "core.PodSpec" => Some(&mut value),
        "core.PodTemplateSpec" => value.get_mut("spec"),
        _ => None,
    };
    if let Some(spec) = spec {
        for field in OF_SECURITY_CONTEXT {
            if let Some(found) = spec.get(*field).cloned() {
                if !spec["securityContext"].is_object() {
                    spec["securityContext"] = json!({});
                }
                spec["securityContext"][*field] = found;
            }
        }
    }
    value
}

struct Writer<'a> {
    out: &'a mut String,
    /// How deep it stands, when each thing has a line of its own.
    indent: Option<usize>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, ty: &str) {
        match value {
            Value::Object(_) if !ty.is_empty() => {
                let mut members = Vec::new();
                collect(value, ty, &mut members);
                self.group('{', '}', members, |writer, (name, value, ty)| {
                    writer.key(name);
                    writer.value(&value, ty);
                });
            }
            Value::Object(map) => {
                self.group('{', '}', map.iter().collect(), |writer, (name, value)| {
                    writer.key(name);
                    writer.value(value, "");
                });
            }
            Value::Array(items) => {
                self.group('[', ']', items.iter().collect(), |writer, value| {
                    writer.value(value, ty);
                });
            }
            other => {
                let _ = write!(self.out, "{other}");
            }
        }
    }

    fn key(&mut self, name: &str) {
        let gap = if self.indent.is_some() { " " } else { "" };
        let _ = write!(self.out, "{}:{gap}", Value::from(name));
    }

    fn group<T>(
        &mut self,
        open: char,
        close: char,
        members: Vec<T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.out.push(open);
        let empty = members.is_empty();
        let depth = self.indent;
        self.indent = depth.map(|depth| depth + 1);
        for (index, member) in members.into_iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.line();
            write(self, member);
        }
        self.indent = depth;
        if !empty {
            self.line();
        }
        self.out.push(close);
    }

    fn line(&mut self) {
        if let Some(depth) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', depth));
        }
    }
}

/// The fields of a value, those of embedded structs in their place.
fn collect(value: &Value, ty: &str, members: &mut Vec<(&'static str, Value, &'static str)>) {
    for Field(shown, own, zero, inner, omitted) in TYPES.get(ty).into_iter().flatten() {
        let lower;
        let own = if own.is_empty() && !shown.is_empty() {
            lower = format!("{}{}", shown[..1].to_lowercase(), &shown[1..]);
            lower.as_str()
        } else {
            own.as_str()
        };
        let found = if own.is_empty() {
            Some(value)
        } else {
            value.get(own)
        };
        let found = found.filter(|found| !found.is_null());
        if shown.is_empty() {
            collect(found.unwrap_or(&Value::Null), inner, members);
            continue;
        }
        match found {
            None if *omitted => {}
            Some(found) if *omitted && is_zero(found) => {}
            Some(found) => members.push((shown, found.clone(), inner)),
            None => members.push((shown, zero.clone(), inner)),
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_shown_with_what_is_not_set() {
        let toleration = json!({"key": "b", "operator": "Exists"});
        assert_eq!(
            show(&toleration, "core.Toleration"),
            r#"{"Key":"b","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#
        );
        let selector = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchLabels": {"x": "y"}});
        assert_eq!(
            show(&selector, "v1.LabelSelector"),
            r#"{"matchLabels":{"x":"y"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#
        );
    }

    #[test]
    fn a_difference_is_told_by_lines() {
        let spec = |priority: i32| json!({"priority": priority, "hostNetwork": true});
        let told = diff(&spec(0), &spec(7), "core.PodSpec");
        assert!(
            told.contains("\n- \"Priority\": 0,\n+ \"Priority\": 7,\n"),
            "{told}"
        );
        assert!(
            show(&spec(0), "core.PodSpec").contains(r#""SecurityContext":{"HostNetwork":true,"#)
        );
    }
}

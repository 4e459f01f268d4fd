//! Stored answers, and how two runs of a case differ.

use std::path::Path;

use serde_json::Value;

use crate::normalise::{Normal, ORDER};

/// How one step's answer differs, as lines for a person.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) step: String,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn read(path: &Path) -> Vec<Normal> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| {
        panic!(
            "reading {}: {error}; `make record` writes it",
            path.display()
        )
    });
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, answers: &[Normal]) {
    let mut text = serde_json::to_string_pretty(answers).expect("answers are JSON");
    text.push('\n');
    std::fs::write(path, text)
        .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

/// The steps on which the two differ.
pub(crate) fn compare(expected: &[Normal], found: &[Normal]) -> Vec<Difference> {
    let steps = |answers: &[Normal]| {
        answers
            .iter()
            .map(|answer| answer.step.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        steps(expected),
        steps(found),
        "the case has changed since it was recorded: run `make record`"
    );
    let mut differences = Vec::new();
    for (expected, found) in expected.iter().zip(found) {
        let mut lines = Vec::new();
        let facts = |answer: &Normal| {
            let Normal {
                status,
                content_type,
                warnings,
                ..
            } = answer;
            serde_json::json!({"status": status, "contentType": content_type, "warnings": warnings})
        };
        walk("", &facts(expected), &facts(found), &mut lines);
        if expected.step == ORDER {
            // A version that only one of them made shows in its own step.
            let both = |own: &Value, other: &Value| -> Value {
                let shared = |name: &&Value| other.as_array().is_some_and(|o| o.contains(name));
                own.as_array()
                    .into_iter()
                    .flatten()
                    .filter(shared)
                    .cloned()
                    .collect()
            };
            let (real, ours) = (&expected.body, &found.body);
            walk("body", &both(real, ours), &both(ours, real), &mut lines);
        } else {
            walk("body", &expected.body, &found.body, &mut lines);
        }
        if !lines.is_empty() {
            differences.push(Difference {
                step: expected.step.clone(),
                lines,
            });
        }
    }
    differences
}

fn walk(path: &str, expected: &Value, found: &Value, lines: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let mut keys: Vec<_> = expected.keys().chain(found.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}/{key}");
                match (expected.get(key), found.get(key)) {
                    (Some(expected), Some(found)) => walk(&path, expected, found, lines),
                    (Some(expected), None) => {
                        lines.push(format!("{path}: missing, real has {}", short(expected)));
                    }
                    (None, Some(found)) => {
                        lines.push(format!("{path}: only ours has it: {}", short(found)));
                    }
                    (None, None) => {}
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            for (at, pair) in expected.iter().zip(found).enumerate() {
                walk(&format!("{path}/{at}"), pair.0, pair.1, lines);
            }
            for (at, expected) in expected.iter().enumerate().skip(found.len()) {
                lines.push(format!(
                    "{path}/{at}: missing, real has {}",
                    short(expected)
                ));
            }
            for (at, found) in found.iter().enumerate().skip(expected.len()) {
                lines.push(format!("{path}/{at}: only ours has it: {}", short(found)));
            }
        }
        _ if expected == found => {}
        _ => lines.push(format!(
            "{path}: real {}, ours {}",
            short(expected),
            short(found)
        )),
    }
}

/// A value on one line, cut where it would bury the rest.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 300 {
        text
    } else {
        text.chars().take(300).chain("…".chars()).collect()
    }
}

#[test]
fn a_difference_is_found_and_named() {
    let answer = |body: Value| Normal {
        step: "get".into(),
        status: 200,
        content_type: Some("application/json".into()),
        warnings: Vec::new(),
        body,
    };
    let real = [answer(serde_json::json!({"a": [1, {"b": "x"}], "c": true}))];
    assert!(compare(&real, &real).is_empty());
    let ours = [answer(
        serde_json::json!({"a": [1, {"b": "y"}, 3], "d": null}),
    )];
    let differences = compare(&real, &ours);
    assert_eq!(
        differences[0].lines,
        [
            r#"body/a/1/b: real "x", ours "y""#,
            "body/a/2: only ours has it: 3",
            "body/c: missing, real has true",
            "body/d: only ours has it: null",
        ]
    );
}

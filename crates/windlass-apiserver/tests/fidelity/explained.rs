//! Differences that are meant, with their reasons: what of an answer is not compared.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::normalise::Normal;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Why the two may differ here.
    why: String,
    /// The answers meant: a pattern for their message, on either side.
    message: String,
    /// What replaces the message, with its captures; the details are not compared.
    #[serde(default)]
    becomes: String,
}

pub(crate) struct Explained(Vec<(Entry, Regex, AtomicUsize)>);

impl Explained {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        let entries: Vec<Entry> = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()));
        let compiled = |entry: Entry| {
            let pattern =
                Regex::new(&entry.message).unwrap_or_else(|error| panic!("{}: {error}", entry.why));
            (entry, pattern, AtomicUsize::new(0))
        };
        Self(entries.into_iter().map(compiled).collect())
    }

    /// Takes out of answers what is not compared.
    pub(crate) fn strip(&self, answers: &mut [Normal]) {
        for answer in answers {
            let Some(message) = answer
                .body
                .get("message")
                .and_then(Value::as_str)
                .map(str::to_owned)
            else {
                continue;
            };
            for (entry, pattern, used) in &self.0 {
                if pattern.is_match(&message) {
                    used.fetch_add(1, Ordering::Relaxed);
                    answer.body["message"] = pattern
                        .replace(&message, entry.becomes.as_str())
                        .into_owned()
                        .into();
                    answer.body["details"] = Value::Null;
                }
            }
        }
    }

    pub(crate) fn used(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0
            .iter()
            .map(|(entry, _, used)| (entry.why.as_str(), used.load(Ordering::Relaxed)))
    }
}

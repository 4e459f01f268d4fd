//! Label and field selectors, in the text form of queries.

use std::collections::BTreeMap;

use crate::http::Query;
use crate::resource::Resource;
use crate::status::{ApiError, Result};
use crate::store::Stored;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Which objects a list or watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Field, value, and whether it must be equal (or must not).
    fields: Vec<(String, String, bool)>,
}

impl Selector {
    pub(crate) fn from_query(query: &Query, resource: &Resource) -> Result<Self> {
        let labels = match query.get("labelSelector") {
            None => Vec::new(),
            Some(text) => parse_labels(text).map_err(|error| {
                ApiError::bad_request(format!("unable to parse requirement: {error}"))
            })?,
        };
        let fields = match query.get("fieldSelector") {
            None => Vec::new(),
            Some(text) => parse_fields(text)?,
        };
        for (field, ..) in &fields {
            let known = matches!(field.as_str(), "metadata.name")
                || (field == "metadata.namespace" && resource.namespaced);
            if !known
                && !resource
                    .selectable
                    .iter()
                    .any(|selectable| selectable == field)
            {
                return Err(ApiError::bad_request(if resource.is_custom() {
                    format!("field label not supported: {field}")
                } else {
                    format!(
                        "field label \"{field}\" not supported for {}",
                        resource.kind
                    )
                }));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        labels_match(&self.labels, &object.labels)
            && self.fields.iter().all(|(field, wanted, equal)| {
                let found = match field.as_str() {
                    "metadata.name" => object.key.name(),
                    "metadata.namespace" => object.key.namespace(),
                    _ => object
                        .fields
                        .iter()
                        .find(|(known, _)| **known == **field)
                        .map_or("", |(_, value)| value),
                };
                (found == wanted) == *equal
            })
    }
}

fn labels_match(requirements: &[Requirement], labels: &BTreeMap<String, String>) -> bool {
    requirements.iter().all(|requirement| match requirement {
        Requirement::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
        Requirement::NotIn(key, values) => {
            labels.get(key).is_none_or(|value| !values.contains(value))
        }
        Requirement::Exists(key) => labels.contains_key(key),
        Requirement::Absent(key) => !labels.contains_key(key),
    })
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let mut requirements = Vec::new();
    for clause in split_outside_parentheses(text) {
        let clause = clause.trim();
        if clause.is_empty() {
            return Err(format!("found '{text}', expected: identifier"));
        }
        requirements.push(parse_clause(clause)?);
    }
    Ok(requirements)
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_clause(clause: &str) -> Result<Requirement, String> {
    if let Some(key) = clause.strip_prefix('!') {
        return key_of(key).map(Requirement::Absent);
    }
    if let Some(values) = clause.strip_suffix(')') {
        let (head, values) = values
            .split_once('(')
            .ok_or_else(|| format!("found '{clause}', expected: '('"))?;
        let (key, operator) = head
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(|| format!("found '{clause}', expected: in, notin"))?;
        let values = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        return match operator {
            "in" => Ok(Requirement::In(key_of(key)?, values)),
            "notin" => Ok(Requirement::NotIn(key_of(key)?, values)),
            other => Err(format!("found '{other}', expected: in, notin")),
        };
    }
    if let Some((key, value)) = clause.split_once("!=") {
        return Ok(Requirement::NotIn(
            key_of(key)?,
            vec![value.trim().to_owned()],
        ));
    }
    if let Some((key, value)) = clause.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Ok(Requirement::In(key_of(key)?, vec![value.trim().to_owned()]));
    }
    key_of(clause).map(Requirement::Exists)
}

fn key_of(text: &str) -> Result<String, String> {
    let key = text.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if key.is_empty() || !key.chars().all(allowed) {
        return Err(format!("found '{key}', expected: identifier"));
    }
    Ok(key.to_owned())
}

fn parse_fields(text: &str) -> Result<Vec<(String, String, bool)>> {
    text.split(',')
        .filter(|clause| !clause.is_empty())
        .map(|clause| {
            let (field, value, equal) = if let Some((field, value)) = clause.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = clause.split_once('=') {
                (field, value.strip_prefix('=').unwrap_or(value), true)
            } else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{clause}'; can't understand '{clause}'"
                )));
            };
            Ok((field.to_owned(), value.to_owned(), equal))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        labels_match(&parse_labels(selector).unwrap(), &labels)
    }

    #[test]
    fn every_form_of_label_selector() {
        let labels = [("app", "web"), ("tier", "a")];
        for yes in [
            "app=web",
            "app==web",
            "app!=db",
            "app in (web, db)",
            "app notin (db),tier",
            "!gone",
            "app,tier=a",
        ] {
            assert!(matches(yes, &labels), "{yes}");
        }
        for no in ["app=db", "app in (x)", "!app", "gone", "app notin (web)"] {
            assert!(!matches(no, &labels), "{no}");
        }
        assert!(parse_labels("a=b,,").is_err());
    }

    proptest! {
        #[test]
        fn no_selector_panics(text in ".{0,60}") {
            let _ = parse_labels(&text);
            let _ = parse_fields(&text);
        }
    }
}

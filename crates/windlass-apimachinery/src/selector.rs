//! Label and field selectors, in the text form of queries.

use serde_json::Value;

use crate::labels::Labelled;
use crate::names;

/// Why a text is no selector, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Which labels an object must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Reads the text form of queries.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse_labels(text).map(Self).map_err(SelectorError)
    }

    /// Reads a `LabelSelector` object; a requirement it states in an unknown way matches nothing.
    pub fn from_object(selector: &Value) -> Self {
        let mut labels = Vec::new();
        let equal = selector["matchLabels"].as_object().into_iter().flatten();
        for (key, value) in equal {
            let value = value.as_str().unwrap_or_default().to_owned();
            labels.push(Requirement::In(key.clone(), vec![value]));
        }
        let expressions = selector["matchExpressions"].as_array();
        for expression in expressions.into_iter().flatten() {
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(|value| value.as_str().map(str::to_owned));
            labels.push(match expression["operator"].as_str() {
                Some("In") => Requirement::In(key, values.collect()),
                Some("NotIn") => Requirement::NotIn(key, values.collect()),
                Some("Exists") => Requirement::Exists(key),
                Some("DoesNotExist") => Requirement::Absent(key),
                _ => Requirement::In(key, Vec::new()),
            });
        }
        Self(labels)
    }

    /// Whether every object has such labels.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels are as this asks.
    pub fn matches(&self, labels: &impl Labelled) -> bool {
        labels_match(&self.0, labels)
    }
}

/// What a field selector asks of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field, such as `status.phase`.
    pub field: String,
    /// The value it is compared with.
    pub value: String,
    /// Whether it must have that value, or must not.
    pub equal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    /// The label is a number above (or below) this one.
    Number(String, bool, i64),
}

fn labels_match(requirements: &[Requirement], labels: &impl Labelled) -> bool {
    let is_one = |values: &[String], value: &str| values.iter().any(|one| one == value);
    requirements.iter().all(|requirement| match requirement {
        Requirement::In(key, values) => {
            labels.label(key).is_some_and(|value| is_one(values, value))
        }
        Requirement::NotIn(key, values) => {
            labels.label(key).is_none_or(|value| !is_one(values, value))
        }
        Requirement::Exists(key) => labels.label(key).is_some(),
        Requirement::Absent(key) => labels.label(key).is_none(),
        Requirement::Number(key, above, bound) => labels
            .label(key)
            .and_then(|value| value.parse::<i64>().ok())
            .is_some_and(|number| {
                if *above {
                    number > *bound
                } else {
                    number < *bound
                }
            }),
    })
}

/// A token of a label selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Symbol(text) => text,
            Token::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if is_symbol(first) {
            // `==` and `!=` are one symbol; everything else is a single character.
            if rest.starts_with("==") || rest.starts_with("!=") {
                2
            } else {
                1
            }
        } else {
            rest.find(|c: char| is_symbol(c) || c.is_whitespace())
                .unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        tokens.push(if is_symbol(first) {
            Token::Symbol(token)
        } else {
            Token::Word(token)
        });
        rest = after.trim_start();
    }
    tokens
}

/// Reads requirements off tokens, left to right.
struct Parser<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token<'a>>>,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        self.tokens.next().unwrap_or(Token::End)
    }

    fn peek(&mut self) -> Token<'a> {
        self.tokens.peek().copied().unwrap_or(Token::End)
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                Token::End => return Ok(requirements),
                Token::Symbol(other) => {
                    return Err(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let requirement = self
                .requirement()
                .map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match (self.next(), self.peek()) {
                (Token::End, _) => return Ok(requirements),
                (Token::Symbol(","), Token::Word(_) | Token::Symbol("!")) => {}
                (Token::Symbol(","), other) => {
                    return Err(format!(
                        "found '{}', expected: identifier after ','",
                        other.text()
                    ));
                }
                (other, _) => {
                    return Err(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.peek() == Token::Symbol("!") {
            self.next();
            return self.key().map(Requirement::Absent);
        }
        let key = self.key()?;
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement::Exists(key));
        }
        match self.next() {
            Token::Word("in") => Ok(Requirement::In(key, self.values()?)),
            Token::Word("notin") => Ok(Requirement::NotIn(key, self.values()?)),
            Token::Symbol("=" | "==") => Ok(Requirement::In(key, vec![self.value()?])),
            Token::Symbol("!=") => Ok(Requirement::NotIn(key, vec![self.value()?])),
            Token::Symbol(sign @ (">" | "<")) => {
                let bound = self.value()?;
                let number = bound.parse().map_err(|_| {
                    format!("values[0]: Invalid value: {bound:?}: for 'Gt', 'Lt' operators, the value must be an integer")
                })?;
                Ok(Requirement::Number(key, sign == ">", number))
            }
            other => Err(format!(
                "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                other.text()
            )),
        }
    }

    fn key(&mut self) -> Result<String, String> {
        let Token::Word(key) = self.peek() else {
            return Err(format!(
                "found '{}', expected: identifier",
                self.next().text()
            ));
        };
        self.next();
        match names::qualified_errors(key).first() {
            None => Ok(key.to_owned()),
            Some(why) => Err(format!("<nil>: Invalid value: {key:?}: {why}")),
        }
    }

    /// The values of a set: `(a,b)`.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Token::Word(value) => {
                    self.next();
                    value
                }
                // Nothing between two commas is the empty value.
                Token::Symbol("," | ")") => "",
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        other.text()
                    ));
                }
            };
            values.push(checked_value(value)?);
            match self.next() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }

    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(value) => {
                self.next();
                checked_value(value)
            }
            Token::Symbol(other) => Err(format!("found '{other}', expected: identifier")),
        }
    }
}

fn checked_value(value: &str) -> Result<String, String> {
    match names::label_value_errors(value).first() {
        None => Ok(value.to_owned()),
        Some(why) => Err(format!("values[0]: Invalid value: {value:?}: {why}")),
    }
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let tokens = tokens(text).into_iter().peekable();
    Parser { tokens }.requirements()
}

/// Reads the text form of a field selector.
pub fn parse_fields(text: &str) -> Result<Vec<FieldRequirement>, SelectorError> {
    let mut clauses: Vec<&str> = text
        .split(',')
        .filter(|clause| !clause.is_empty())
        .collect();
    // In this order Kubernetes reads them, and complains about the first it cannot read.
    clauses.sort_unstable();
    let mut parsed: Vec<FieldRequirement> = clauses
        .into_iter()
        .map(|clause| {
            let (field, value, equal) = if let Some((field, value)) = clause.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = clause.split_once('=') {
                (field, value.strip_prefix('=').unwrap_or(value), true)
            } else {
                return Err(SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{clause}'"
                )));
            };
            Ok(FieldRequirement {
                field: field.to_owned(),
                value: value.to_owned(),
                equal,
            })
        })
        .collect::<Result<_, _>>()?;
    // What asks nothing of nothing is not asked.
    parsed.retain(|one| !one.field.is_empty() || !one.value.is_empty());
    Ok(parsed)
}

/// The one name that a field selector leaves possible, if it is one that an object can have.
pub fn exact_name(fields: &str) -> Option<String> {
    let mut fields = parse_fields(fields).ok()?.into_iter();
    let found = fields.find(|one| one.field == "metadata.name" && one.equal)?;
    names::segment_errors(&found.value)
        .is_empty()
        .then_some(found.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect::<std::collections::BTreeMap<_, _>>();
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
        assert!(matches("n>3,n<5", &[("n", "4")]));
        assert_eq!(
            parse_labels("tier in front").unwrap_err(),
            "unable to parse requirement: found 'front' expected: '('"
        );
    }

    proptest! {
        #[test]
        fn no_selector_panics(text in ".{0,60}") {
            let _ = parse_labels(&text);
            let _ = parse_fields(&text);
        }
    }
}

//! What is wrong with a value, in the words that Helm prints.

use serde_json::Value;

use super::Path;
use crate::number;

/// What is wrong with a value, and why.
pub(super) struct Problem {
    pub(super) at: String,
    pub(super) message: String,
    pub(super) causes: Vec<Problem>,
    pub(super) group: bool,
    pub(super) reference: bool,
}

impl Problem {
    pub(super) fn show(&self, indent: usize, out: &mut String) {
        let mut deeper = indent;
        if !(self.reference && self.causes.len() == 1) {
            out.push('\n');
            out.push_str(&"  ".repeat(indent - 1));
            out.push_str(&format!("- at {}: {}", quote(&self.at), self.message));
            deeper += 1;
        }
        for cause in &self.causes {
            cause.show(deeper, out);
        }
    }
}

pub(super) fn problem(path: &Path, message: impl Into<String>) -> Problem {
    Problem {
        at: pointer(path),
        message: message.into(),
        causes: Vec::new(),
        group: false,
        reference: false,
    }
}

pub(super) fn because(path: &Path, message: &str, causes: Vec<Problem>) -> Problem {
    Problem {
        causes,
        ..problem(path, message)
    }
}

pub(super) fn quote(text: &str) -> String {
    let quoted = crate::quote::quote(text.as_bytes());
    let inner = &quoted[1..quoted.len() - 1];
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}

pub(super) fn joined<'t>(names: impl IntoIterator<Item = &'t str>) -> String {
    names.into_iter().map(quote).collect::<Vec<_>>().join(", ")
}

fn pointer(path: &Path) -> String {
    path.iter()
        .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
        .collect()
}

/// A number as it is printed for people: in groups of three digits.
pub(super) fn grouped(value: f64) -> String {
    let text = number::format_f(value, None);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if fraction.is_empty() {
        format!("{sign}{out}")
    } else {
        format!("{sign}{out}.{fraction}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(super) fn count(count: usize) -> String {
    grouped(count as f64)
}

pub(super) fn display(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Null => "<nil>".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
    }
}

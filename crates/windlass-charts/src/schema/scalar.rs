//! Types, constants, texts and numbers.

use serde_json::{Map, Value};

use super::problem::{Problem, count, display, grouped, problem, quote};
use super::{Path, Validator, size, texts};

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        other => crate::json::kind(other),
    }
}

pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

impl Validator<'_> {
    pub(super) fn string(
        &mut self,
        schema: &Map<String, Value>,
        text: &str,
        path: &Path,
        errors: &mut Vec<Problem>,
    ) {
        let length = text.chars().count();
        for (name, is_wrong) in [("minLength", false), ("maxLength", true)] {
            if let Some(limit) = size(schema, name)
                && if is_wrong {
                    length > limit
                } else {
                    length < limit
                }
            {
                let message = format!("{name}: got {}, want {}", count(length), count(limit));
                errors.push(problem(path, message));
            }
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            match windlass_regexp::compile(pattern) {
                Ok(regex) if !regex.is_match(text) => {
                    let message =
                        format!("{} does not match pattern {}", quote(text), quote(pattern));
                    errors.push(problem(path, message));
                }
                Ok(_) => {}
                Err(why) => {
                    self.refused.get_or_insert(why.to_string());
                }
            }
        }
    }
}

/// What is wrong with a value so that nothing else is looked at.
pub(super) fn simple(
    schema: &Map<String, Value>,
    value: &Value,
    path: &Path,
    draft: u32,
) -> Option<Problem> {
    let types = texts(schema.get("type"));
    if !types.is_empty() {
        let found = kind(value);
        let is_int = value.as_f64().is_some_and(|float| float.fract() == 0.0);
        let matches = types
            .iter()
            .any(|wanted| *wanted == found || (*wanted == "integer" && is_int));
        if !matches {
            return Some(problem(
                path,
                format!("got {found}, want {}", types.join(" or ")),
            ));
        }
    }
    if let Some(wanted) = schema.get("const").filter(|_| draft > 4)
        && !equal(value, wanted)
    {
        let message = match wanted {
            Value::Array(_) | Value::Object(_) => "'const' failed".to_owned(),
            wanted => format!("value must be {}", display(wanted)),
        };
        return Some(problem(path, message));
    }
    if let Some(Value::Array(wanted)) = schema.get("enum")
        && !wanted.iter().any(|one| equal(one, value))
    {
        let message = if wanted.iter().any(|one| one.is_array() || one.is_object()) {
            "'enum' failed".to_owned()
        } else {
            let shown: Vec<String> = wanted.iter().map(display).collect();
            match shown.as_slice() {
                [one] => format!("value must be {one}"),
                all => format!("value must be one of {}", all.join(", ")),
            }
        };
        return Some(problem(path, message));
    }
    None
}

pub(super) fn numeric(
    schema: &Map<String, Value>,
    value: f64,
    path: &Path,
    errors: &mut Vec<Problem>,
) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let pair = |plain: &str, exclusive: &str| {
        if flag(exclusive) {
            (None, limit(plain))
        } else {
            (limit(plain), limit(exclusive))
        }
    };
    let (least, above) = pair("minimum", "exclusiveMinimum");
    let (most, below) = pair("maximum", "exclusiveMaximum");
    let mut check = |name: &str, limit: Option<f64>, is_wrong: fn(f64, f64) -> bool| {
        if let Some(limit) = limit
            && is_wrong(value, limit)
        {
            let message = format!("{name}: got {}, want {}", grouped(value), grouped(limit));
            errors.push(problem(path, message));
        }
    };
    check("minimum", least, |value, limit| value < limit);
    check("maximum", most, |value, limit| value > limit);
    check("exclusiveMinimum", above, |value, limit| value <= limit);
    check("exclusiveMaximum", below, |value, limit| value >= limit);
    check("multipleOf", limit("multipleOf"), |value, limit| {
        let quotient = value / limit;
        (quotient - quotient.round()).abs() > 1e-9
    });
}

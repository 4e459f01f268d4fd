//! A number, or a share of all: `1`, `25%`.

use serde_json::Value;

use super::at::{At, Causes};

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than a number has mean more than all.
    whole.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// What it comes to, whichever it is.
pub(crate) fn of(value: &Value) -> i64 {
    percent(value).or(value.as_i64()).unwrap_or_else(|| {
        value
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    })
}

/// It is not below zero, and if it is a share, it is one.
pub(crate) fn check(at: &At<'_, '_>, causes: &mut Causes) {
    match at.value {
        Value::String(_) if percent(at.value).is_none() => causes.push(at.invalid(PERCENT)),
        Value::String(_) => {}
        _ => at.nonnegative(causes),
    }
}

/// It is no more than all.
pub(crate) fn at_most_all(at: &At<'_, '_>, causes: &mut Causes) {
    if percent(at.value).is_some_and(|percent| percent > 100) {
        causes.push(at.invalid("must not be greater than 100%"));
    }
}

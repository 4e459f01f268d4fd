//! Values without parts, as Go keeps them: numbers, times, bytes and quantities.

use base64::Engine as _;
use serde_json::Value;

use super::error::{DecodeError, QuantityError};
use crate::quantity::{self, Quantity};
use crate::steps::step;
use crate::timestamp::{self, Precision};

/// Without a type, a number that is whole is shown as such, however it was written.
pub(crate) fn whole_numbers(value: &mut Value) {
    step();
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| {
                number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0
            });
            if let Some(whole) = whole {
                #[allow(clippy::cast_possible_truncation, reason = "whole, and within 53 bits")]
                let whole = whole as i64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// A time is kept in UTC, as precise as its type is.
pub(super) fn read_time(value: &mut Value, precision: Precision) -> Result<(), DecodeError> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => {
            *text = timestamp::canonical(text, precision)?;
            Ok(())
        }
        other => Err(DecodeError::value(other, "string")),
    }
}

/// Base64 as Go reads it: line breaks and the last bits do not count.
const LENIENT: base64::engine::GeneralPurpose = base64::engine::GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Bytes are kept as Go would write them.
pub(super) fn read_bytes(value: &mut Value) -> Result<(), DecodeError> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => {
            let plain = text.replace(['\n', '\r'], "");
            match LENIENT.decode(plain.as_bytes()) {
                Ok(bytes) => {
                    *text = LENIENT.encode(bytes);
                    Ok(())
                }
                Err(error) => {
                    let at = match error {
                        base64::DecodeError::InvalidByte(at, _)
                        | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                        // The group of four that is not whole.
                        base64::DecodeError::InvalidLength(_)
                        | base64::DecodeError::InvalidPadding => plain.len() - plain.len() % 4,
                    };
                    Err(DecodeError::Base64(at))
                }
            }
        }
        other => Err(DecodeError::value(other, "[]uint8")),
    }
}

/// A quantity is kept in its canonical form.
pub(super) fn read_quantity(value: &mut Value) -> Result<(), DecodeError> {
    let text = match value {
        Value::Null => return Ok(()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(QuantityError(quantity::MALFORMED).into()),
    };
    *value = canonical_quantity(&text)?.into();
    Ok(())
}

/// A quantity in its canonical form.
pub(super) fn canonical_quantity(text: &str) -> Result<String, QuantityError> {
    let read = Quantity::parse(text).ok_or_else(|| QuantityError(quantity::problem(text)))?;
    Ok(read.to_string())
}

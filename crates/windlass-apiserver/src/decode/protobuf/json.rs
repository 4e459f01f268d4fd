//! From a message that was read to the JSON that Go would write of it.
//!
//! A field that is not set is left out where Go leaves it out, and is zero where it does not: `""`,
//! `0`, `null`, or the JSON of a struct in which nothing is set.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::facts::{self, Field, Form, Kind, Many, Shown};
use super::message::{Parsed, Slot};
use super::wire::WireError;
use crate::decode::scalar::canonical_quantity;
use crate::json;

/// How many values one body may stand for: two bytes can mean a struct of many fields.
const MOST_VALUES: usize = 500_000;

/// When Go's zero time is, in seconds.
const ZERO_TIME: i64 = -62_135_596_800;

/// Writes messages, counting what it writes.
#[derive(Default)]
pub(super) struct Writer {
    values: usize,
}

impl Writer {
    pub(super) fn message(&mut self, parsed: &Parsed<'_>) -> Result<Value, WireError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(WireError::TooMany);
        }
        match parsed.message.form {
            Form::Struct => {
                let mut map = Map::new();
                self.fields(parsed, &mut map)?;
                Ok(Value::Object(map))
            }
            Form::Time => time(parsed, false),
            Form::MicroTime => time(parsed, true),
            Form::Quantity => match parsed.slot(0) {
                Some(Slot::Plain(Value::String(text))) => Ok(canonical_quantity(text)?.into()),
                _ => Ok("0".into()),
            },
            Form::IntOrString => int_or_string(parsed),
            Form::Json => match parsed.slot(0) {
                Some(Slot::Bytes(raw)) if !raw.is_empty() => match json::from_json(raw) {
                    Ok(document) => Ok(document.value),
                    Err(error) => Err(WireError::Meaning(json::go_error(&error, raw))),
                },
                _ => Ok(Value::Null),
            },
            Form::Strings => match parsed.slot(0) {
                Some(slot) => self.slot(slot),
                None => Ok(Value::Array(Vec::new())),
            },
            Form::SchemaOrBool => match parsed.slot(1) {
                Some(_) => self.first_of(parsed, &[1]),
                None => Ok(parsed.slot(0).is_some_and(is_true).into()),
            },
            Form::SchemaOrArray | Form::SchemaOrStrings => self.first_of(parsed, &[1, 0]),
        }
    }

    /// The first of these fields that is set.
    fn first_of(&mut self, parsed: &Parsed<'_>, places: &[usize]) -> Result<Value, WireError> {
        for place in places {
            if let Some(slot) = parsed.slot(*place) {
                return self.slot(slot);
            }
        }
        Ok(Value::Null)
    }

    fn fields(
        &mut self,
        parsed: &Parsed<'_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        for (place, field) in parsed.message.fields.iter().enumerate() {
            let slot = parsed.slot(place);
            if field.shown == Shown::Inline {
                match (slot, field.kind) {
                    (Some(Slot::Message(inner)), _) => self.fields(inner, out)?,
                    (None, Kind::Message(id)) if !field.pointer => {
                        if let Some(message) = facts::get().message(id) {
                            self.fields(&Parsed::empty(message), out)?;
                        }
                    }
                    _ => {}
                }
                continue;
            }
            let value = match slot {
                Some(slot) => self.slot(slot)?,
                None => match self.unset(field)? {
                    Some(zero) => zero,
                    None => continue,
                },
            };
            if !is_omitted(field, &value) {
                out.insert(field.json.clone(), value);
            }
        }
        Ok(())
    }

    /// What a field that is not set looks like; nothing where that is left out.
    fn unset(&mut self, field: &Field) -> Result<Option<Value>, WireError> {
        let by_value = field.many == Many::One && !field.pointer;
        match field.kind {
            Kind::Message(id) if by_value => match facts::get().message(id) {
                Some(message) => self.message(&Parsed::empty(message)).map(Some),
                None => Ok(None),
            },
            _ if field.shown != Shown::Always => Ok(None),
            _ if !by_value => Ok(Some(Value::Null)),
            Kind::String => Ok(Some("".into())),
            Kind::Bool => Ok(Some(false.into())),
            Kind::Int32 | Kind::Int64 | Kind::Double => Ok(Some(0.into())),
            Kind::Bytes | Kind::Message(_) => Ok(Some(Value::Null)),
        }
    }

    fn slot(&mut self, slot: &Slot<'_>) -> Result<Value, WireError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(WireError::TooMany);
        }
        match slot {
            Slot::Plain(value) => Ok(value.clone()),
            Slot::Bytes(bytes) => Ok(STANDARD.encode(bytes).into()),
            Slot::Message(inner) => self.message(inner),
            Slot::List(items) => items.iter().map(|item| self.slot(item)).collect(),
            Slot::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.clone(), self.slot(value)?);
                }
                Ok(Value::Object(map))
            }
        }
    }
}

/// Whether Go leaves a value out.
fn is_omitted(field: &Field, value: &Value) -> bool {
    if field.pointer || field.shown == Shown::Always {
        return false;
    }
    if field.shown == Shown::UnlessZero && value.is_null() {
        return true;
    }
    let is_struct = field.many == Many::One
        && match field.kind {
            Kind::Message(id) => facts::get()
                .message(id)
                .is_some_and(|message| message.form != Form::Strings),
            _ => false,
        };
    !is_struct
        && match value {
            Value::Null | Value::Bool(false) => true,
            Value::Bool(true) => false,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
        }
}

fn is_true(slot: &Slot<'_>) -> bool {
    matches!(slot, Slot::Plain(Value::Bool(true)))
}

fn number(parsed: &Parsed<'_>, place: usize) -> i64 {
    match parsed.slot(place) {
        Some(Slot::Plain(value)) => value.as_i64().unwrap_or_default(),
        _ => 0,
    }
}

fn int_or_string(parsed: &Parsed<'_>) -> Result<Value, WireError> {
    match number(parsed, 0) {
        0 => Ok(number(parsed, 1).into()),
        1 => Ok(match parsed.slot(2) {
            Some(Slot::Plain(text)) => text.clone(),
            _ => "".into(),
        }),
        _ => Err(WireError::Meaning("impossible IntOrString.Type".to_owned())),
    }
}

/// A timestamp; a message without any byte is no time at all.
fn time(parsed: &Parsed<'_>, micros: bool) -> Result<Value, WireError> {
    if !parsed.was_sent() {
        return Ok(Value::Null);
    }
    let seconds = number(parsed, 0);
    let nanos = if micros {
        number(parsed, 1) / 1000 * 1000
    } else {
        0
    };
    if seconds == ZERO_TIME && nanos == 0 {
        return Ok(Value::Null);
    }
    let beyond = |_| WireError::Meaning(format!("{seconds} seconds are beyond all calendars"));
    let nanos = i32::try_from(nanos).unwrap_or_default();
    let at = jiff::Timestamp::from_second(seconds)
        .and_then(|at| at.checked_add(jiff::SignedDuration::from_nanos(nanos.into())))
        .map_err(beyond)?;
    let places = if micros {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(at.strftime(places).to_string().into())
}

/// A number that Go would write; whole ones are written without a point.
pub(super) fn double(value: f64) -> Result<Value, WireError> {
    #[allow(clippy::cast_precision_loss, reason = "the limit itself is exact")]
    let limit = i64::MAX as f64;
    if value.fract() == 0.0 && value.abs() < limit && !(value == 0.0 && value.is_sign_negative()) {
        #[allow(clippy::cast_possible_truncation, reason = "it is whole and fits")]
        return Ok((value as i64).into());
    }
    serde_json::Number::from_f64(value)
        .map(Value::Number)
        .ok_or_else(|| WireError::Meaning(format!("json: unsupported value: {value}")))
}

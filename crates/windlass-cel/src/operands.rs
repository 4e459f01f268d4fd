//! What operators and functions do with single values, and what that costs.

use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::LiteralValue;
use kube_cel::cel::objects::{Key, OptionalValue};

use super::authorizer::CHECK_COST;
use super::cost::share;
use super::error::Failure;
use super::evaluate::Result;
use super::interpreter::shown;
use super::values::optional;

/// Types as values are texts that no object can hold.
const TYPE_PREFIX: &str = "\u{0}type:";

pub(super) fn is_operator(name: &str) -> bool {
    matches!(
        name,
        "_==_"
            | "_!=_"
            | "_<_"
            | "_<=_"
            | "_>_"
            | "_>=_"
            | "_+_"
            | "_-_"
            | "_*_"
            | "_/_"
            | "_%_"
            | "@in"
            | "_[_]"
            | "_[?_]"
            | "_?._"
    )
}

/// What a call costs, told from what it is given.
pub(super) fn before_call(name: &str, all: &[&Value]) -> u64 {
    let size = |at: usize| all.get(at).map_or(0, |value| length(value));
    let walk = |size: u64| share(size, 0.1);
    match name {
        "matches" | "find" | "findAll" => walk(size(0).saturating_add(1))
            .saturating_mul(share(size(1), 0.25))
            .max(1),
        "contains" => walk(size(0)).saturating_mul(walk(size(1))).max(1),
        // What is put in may be put in between all letters.
        "replace" => {
            walk(size(0).saturating_add(size(0).saturating_add(1).saturating_mul(size(2)))).max(1)
        }
        "join" => {
            let texts = all.first().map_or(0, |list| weight(list));
            walk(texts.saturating_add(size(0).saturating_mul(size(1)))).max(1)
        }
        "format" => walk(size(0).saturating_add(all.get(1).map_or(0, |list| weight(list)))).max(1),
        "check" => CHECK_COST,
        "lists.range" => match all.first() {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0).max(1),
            _ => 1,
        },
        "sets.contains" | "sets.equivalent" | "sets.intersects" | "distinct" => {
            let other = size(usize::from(name != "distinct"));
            size(0).saturating_mul(other).max(1)
        }
        "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" | "sort" | "reverse"
        | "slice" | "flatten" => all.first().map_or(1, |list| weight(list)).max(1),
        "split" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "url" | "isURL"
        | "quantity" | "isQuantity" | "ip" | "cidr" | "isIP" | "isCIDR" | "semver" | "isSemver"
        | "bytes" | "string" | "startsWith" | "endsWith" | "validate" | "strings.quote" => {
            walk(size(0)).max(1)
        }
        _ => 1,
    }
}

/// Items, entries or letters.
pub(super) fn length(value: &Value) -> u64 {
    let length = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        _ => 1,
    };
    length as u64
}

/// All there is in a value.
pub(super) fn weight(value: &Value) -> u64 {
    match value {
        Value::List(items) => items
            .iter()
            .fold(0, |sum: u64, item| sum.saturating_add(weight(item).max(1))),
        Value::Map(map) => map
            .map
            .values()
            .fold(0, |sum: u64, item| sum.saturating_add(weight(item).max(1))),
        other => length(other),
    }
}

pub(super) fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Value::Bytes(Arc::new(value.inner().to_vec())),
        LiteralValue::Double(value) => Value::Float(*value.inner()),
        LiteralValue::Int(value) => Value::Int(*value.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(value) => Value::String(Arc::new(value.inner().to_owned())),
        LiteralValue::UInt(value) => Value::UInt(*value.inner()),
    }
}

pub(super) fn type_value(name: &str) -> Value {
    Value::String(Arc::new(format!("{TYPE_PREFIX}{name}")))
}

pub(super) fn type_name(value: &Value) -> &str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(text) if text.starts_with(TYPE_PREFIX) => "type",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Null => "null_type",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Opaque(_) | Value::Function(..) => "opaque",
    }
}

/// A value that may be an optional one.
pub(super) enum Optional {
    /// It is none.
    Plain,
    /// It is one, with nothing in it.
    None,
    Some(Value),
}

/// What is in an optional value, if it is one.
pub(super) fn as_optional(value: &Value) -> Optional {
    match <&OptionalValue>::try_from(value) {
        Err(_) => Optional::Plain,
        Ok(found) => found
            .value()
            .map_or(Optional::None, |inner| Optional::Some(inner.clone())),
    }
}

pub(super) fn as_key(value: &Value) -> Option<Key> {
    Some(match value {
        Value::Int(number) => Key::Int(*number),
        Value::UInt(number) => Key::Uint(*number),
        Value::Bool(value) => Key::Bool(*value),
        Value::String(text) => Key::String(text.clone()),
        _ => return None,
    })
}

pub(super) fn has(value: &Value, field: &str) -> bool {
    match as_optional(value) {
        Optional::Some(inner) => has(&inner, field),
        Optional::None => false,
        Optional::Plain => select_field(value, field).is_ok(),
    }
}

pub(super) fn select_field(value: &Value, field: &str) -> Result {
    match as_optional(value) {
        Optional::Plain => {}
        Optional::None => return Ok(optional(None)),
        Optional::Some(inner) => return Ok(optional(select_field(&inner, field).ok())),
    }
    match value {
        Value::Map(map) => {
            let key = Key::String(Arc::new(field.to_owned()));
            let found = map.map.get(&key).cloned();
            found.ok_or_else(|| Failure::said(format!("no such key: {field}")))
        }
        Value::Null => Err(Failure::said(format!("no such key: {field}"))),
        _ => Err(Failure::NoSuchOverload),
    }
}

pub(super) fn index(value: &Value, at: &Value) -> Result {
    match as_optional(value) {
        Optional::Plain => {}
        Optional::None => return Ok(optional(None)),
        Optional::Some(inner) => return Ok(optional(index(&inner, at).ok())),
    }
    match (value, at) {
        (Value::List(items), Value::Int(place)) => {
            let found = usize::try_from(*place).ok().and_then(|at| items.get(at));
            found
                .cloned()
                .ok_or_else(|| Failure::said(format!("index out of bounds: {place}")))
        }
        (Value::Map(map), key) => {
            let found = as_key(key).and_then(|key| map.map.get(&key).cloned());
            found.ok_or_else(|| Failure::said(format!("no such key: {}", shown(key))))
        }
        _ => Err(Failure::NoSuchOverload),
    }
}

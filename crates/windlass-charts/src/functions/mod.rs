//! The functions of templates: Go's own, those of sprig, and Helm's.
//!
//! | module | what |
//! | --- | --- |
//! | `builtin` | Go's: comparison, `index`, `printf` |
//! | `strings`, `encode`, `math`, `lists`, `dicts`, `reflect` | sprig's, of texts and values |
//! | `dates`, `regex`, `urls`, `versions`, `crypto`, `random` | sprig's, of things of their own |
//! | `environment` | sprig's, of the environment; charts do not have them |
//! | `helm` | Helm's: `include`, `tpl`, `toYaml`, `lookup` and others |

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;

use crate::template::env::Env;
use crate::template::error::Error;
use crate::template::exec::Templates;
use crate::template::object::Object;
use crate::template::value::{ListType, MapType, Value};

mod bignum;
mod builtin;
mod cases;
mod certificates;
mod crypto;
mod dates;
mod dicts;
mod encode;
mod environment;
pub(crate) mod helm;
mod keys;
mod lists;
mod math;
mod random;
mod reflect;
mod regex;
mod strings;
mod urls;
mod versions;

/// What a function is called in.
pub(crate) struct Context<'a> {
    pub(crate) env: &'a Env,
    pub(crate) templates: &'a Rc<Templates>,
}

/// The functions of a table by their names.
fn by_name(tables: &[&[Row]]) -> HashMap<&'static str, Function> {
    let rows = tables.iter().flat_map(|rows| rows.iter());
    rows.map(|(name, params, variadic, run)| {
        let function = Function {
            params,
            variadic: *variadic,
            run: *run,
        };
        (*name, function)
    })
    .collect()
}

pub(crate) type Result = std::result::Result<Value, Error>;
pub(crate) type Run = fn(&Context<'_>, &[Value]) -> Result;

/// A function and what it takes.
pub(crate) struct Function {
    pub(crate) params: &'static [Type],
    /// What may follow, as often as wanted.
    pub(crate) variadic: Option<Type>,
    pub(crate) run: Run,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    Any,
    /// Any value, or none: what Go's own functions take.
    Value,
    Str,
    Int,
    Uint32,
    Bool,
    Float,
    List,
    Map,
    Time,
    Duration,
    Certificate,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Value => "reflect.Value",
            Self::Str => "string",
            Self::Int => "int",
            Self::Uint32 => "uint32",
            Self::Bool => "bool",
            Self::Float => "float64",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
            Self::Time => "time.Time",
            Self::Duration => "time.Duration",
            Self::Certificate => "sprig.certificate",
        }
    }

    pub(crate) fn can_be_nil(self) -> bool {
        matches!(self, Self::Any | Self::Value | Self::List | Self::Map)
    }

    pub(crate) fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Value, _)
            | (Self::Str, Value::Str(_))
            | (Self::Int, Value::Int(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Float, Value::Float(_))
            | (Self::Time, Value::Time(_))
            | (Self::Duration, Value::Duration(_)) => true,
            (Self::List, Value::List(list)) => list.of == ListType::Any,
            (Self::Map, Value::Map(map)) => matches!(map.of, MapType::Any | MapType::Values),
            (Self::Certificate, Value::Object(object)) => {
                matches!(**object, Object::Certificate { .. })
            }
            _ => false,
        }
    }
}

/// A row of a table of functions: name, parameters, and what it does.
pub(crate) type Row = (&'static str, &'static [Type], Option<Type>, Run);

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    table().get(name)
}

/// The function of a name, also of those that see the environment, which charts do not have.
pub(crate) fn find_with_environment(name: &str) -> Option<&'static Function> {
    find(name).or_else(|| environment::find(name))
}

/// The names of all functions, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = table().keys().copied().collect();
    names.sort_unstable();
    names
}

fn table() -> &'static HashMap<&'static str, Function> {
    static TABLE: OnceLock<HashMap<&'static str, Function>> = OnceLock::new();
    TABLE.get_or_init(|| {
        by_name(&[
            builtin::TABLE,
            strings::TABLE,
            encode::TABLE,
            math::TABLE,
            lists::TABLE,
            dicts::TABLE,
            reflect::TABLE,
            dates::TABLE,
            regex::TABLE,
            urls::TABLE,
            versions::TABLE,
            crypto::TABLE,
            random::TABLE,
            helm::TABLE,
        ])
    })
}

/// The integer that an argument of type int is.
fn int(value: &Value) -> i64 {
    match value {
        Value::Int(int) | Value::Int64(int) => *int,
        Value::Byte(byte) => i64::from(*byte),
        _ => 0,
    }
}

/// A length as an integer.
fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The entries of a map, of which nil has none.
fn entries(value: &Value) -> Vec<(Rc<str>, Value)> {
    match value {
        Value::Map(map) => map.snapshot(),
        _ => Vec::new(),
    }
}

fn fail<T>(message: impl Into<String>) -> std::result::Result<T, Error> {
    Err(Error::plain(message))
}

/// What paths are made of.
pub(crate) mod paths {
    pub(crate) use super::encode::{base, clean};
}

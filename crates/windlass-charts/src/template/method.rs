//! Methods of values: what a field with arguments calls.
//!
//! A method is a function whose first argument is what it is a method of.

use std::rc::Rc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};

use super::error::Error;
use super::value::{ListType, MapType, Value};
use crate::functions::{Context, Function, Type};
use crate::{files, layout, yaml};

type Result = std::result::Result<Value, Error>;

macro_rules! method {
    ($params:expr, $run:expr) => {{
        const METHOD: Function = Function {
            params: $params,
            variadic: None,
            run: $run,
        };
        Some(&METHOD)
    }};
}

/// The method of a name, if the value has one.
pub(crate) fn find(value: &Value, name: &str) -> Option<&'static Function> {
    match value {
        Value::Map(map) if map.of == MapType::Files => match name {
            "Get" => method!(&[Type::Str], |_, args| Ok(Value::Str(files::get(args)))),
            "GetBytes" => method!(&[Type::Str], |_, args| Ok(Value::Bytes(files::get(args)))),
            "Glob" => method!(&[Type::Str], |_, args| files::glob(args)),
            "AsConfig" => method!(&[], |_, args| Ok(files::as_config(&args[0], false))),
            "AsSecrets" => method!(&[], |_, args| Ok(files::as_config(&args[0], true))),
            "Lines" => method!(&[Type::Str], |_, args| Ok(files::lines(args))),
            _ => None,
        },
        Value::Map(map) if map.of == MapType::Values => match name {
            "AsMap" => method!(&[], |_, args| match &args[0] {
                Value::Map(map) => Ok(map.as_type(MapType::Any)),
                other => Ok(other.clone()),
            }),
            "YAML" => method!(&[], |_, args| {
                let value = crate::json::to_yaml(&args[0]).map_err(Error::plain)?;
                Ok(Value::str(yaml::emit(&value, yaml::Dialect::Plain)))
            }),
            "Table" => method!(&[Type::Str], table),
            "PathValue" => method!(&[Type::Str], path_value),
            _ => None,
        },
        Value::List(list) if list.of == ListType::VersionSet => match name {
            "Has" => method!(&[Type::Str], |_, args| {
                let items = args[0].items().unwrap_or_default();
                Ok(Value::Bool(
                    items.iter().any(|item| item.bytes() == args[1].bytes()),
                ))
            }),
            _ => None,
        },
        Value::Time(_) => time(name),
        Value::Duration(_) => match name {
            "String" => method!(&[], |_, args| Ok(Value::str(super::print::shown(&args[0])))),
            "Seconds" => method!(&[], |_, args| Ok(Value::Float(nanos(&args[0]) / 1e9))),
            "Minutes" => method!(&[], |_, args| Ok(Value::Float(nanos(&args[0]) / 6e10))),
            "Hours" => method!(&[], |_, args| Ok(Value::Float(nanos(&args[0]) / 3.6e12))),
            "Milliseconds" => method!(&[], |_, args| Ok(Value::Int64(int(&args[0]) / 1_000_000))),
            "Microseconds" => method!(&[], |_, args| Ok(Value::Int64(int(&args[0]) / 1_000))),
            "Nanoseconds" => method!(&[], |_, args| Ok(Value::Int64(int(&args[0])))),
            _ => None,
        },
        _ => None,
    }
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Duration(nanos) => *nanos,
        _ => 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration in a larger unit")]
fn nanos(value: &Value) -> f64 {
    int(value) as f64
}

fn table(_: &Context<'_>, args: &[Value]) -> Result {
    let mut value = args[0].clone();
    for name in args[1].text().split('.') {
        let next = match &value {
            Value::Map(map) => map.get(name),
            _ => None,
        };
        value = match next {
            Some(next @ Value::Map(_)) => next,
            _ => {
                let name = crate::quote::quote(name.as_bytes());
                return Err(Error::plain(format!("{name} is not a table")));
            }
        };
    }
    Ok(value)
}

fn path_value(context: &Context<'_>, args: &[Value]) -> Result {
    let path = args[1].text().into_owned();
    if path.is_empty() {
        return Err(Error::plain("YAML path cannot be empty"));
    }
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let missing = || {
        let name = crate::quote::quote(name.as_bytes());
        Error::plain(format!("{name} is not a value"))
    };
    let within = if parent.is_empty() {
        args[0].clone()
    } else {
        table(context, &[args[0].clone(), Value::str(parent)]).map_err(|_| missing())?
    };
    match within {
        Value::Map(map) => match map.get(name) {
            Some(Value::Map(_)) | None => Err(missing()),
            Some(value) => Ok(value),
        },
        _ => Err(missing()),
    }
}

fn with(args: &[Value], read: impl Fn(&Zoned) -> Value) -> Result {
    match &args[0] {
        Value::Time(time) => Ok(read(time)),
        _ => Ok(Value::Nil),
    }
}

fn time(name: &str) -> Option<&'static Function> {
    match name {
        "Format" => method!(&[Type::Str], |_, args| with(args, |time| {
            Value::str(layout::format(&args[1].text(), time))
        })),
        "String" => method!(&[], |_, args| with(args, |time| {
            Value::str(layout::format(layout::GO, time))
        })),
        "Unix" => method!(&[], |_, args| with(args, |time| {
            Value::Int64(time.timestamp().as_second())
        })),
        "UnixMilli" => method!(&[], |_, args| with(args, |time| {
            Value::Int64(time.timestamp().as_millisecond())
        })),
        "UnixNano" => method!(&[], |_, args| with(args, |time| {
            Value::Int64(i64::try_from(time.timestamp().as_nanosecond()).unwrap_or(0))
        })),
        "Year" => method!(&[], |_, args| with(args, |time| Value::Int(
            time.year().into()
        ))),
        "Month" => method!(&[], |_, args| with(args, |time| {
            Value::str(layout::format("January", time))
        })),
        "Weekday" => method!(&[], |_, args| with(args, |time| {
            Value::str(layout::format("Monday", time))
        })),
        "Day" => method!(&[], |_, args| with(args, |time| Value::Int(
            time.day().into()
        ))),
        "YearDay" => method!(&[], |_, args| with(args, |time| {
            Value::Int(time.day_of_year().into())
        })),
        "Hour" => method!(&[], |_, args| with(args, |time| Value::Int(
            time.hour().into()
        ))),
        "Minute" => method!(&[], |_, args| with(args, |time| Value::Int(
            time.minute().into()
        ))),
        "Second" => method!(&[], |_, args| with(args, |time| Value::Int(
            time.second().into()
        ))),
        "Nanosecond" => method!(&[], |_, args| with(args, |time| {
            Value::Int(time.subsec_nanosecond().into())
        })),
        "UTC" => method!(&[], |_, args| with(args, |time| {
            Value::Time(Rc::new(time.with_time_zone(TimeZone::UTC)))
        })),
        "Local" => method!(&[], |context, args| with(args, |time| {
            let zone = context.env.now.time_zone().clone();
            Value::Time(Rc::new(time.with_time_zone(zone)))
        })),
        "IsZero" => method!(&[], |_, args| with(args, |time| {
            Value::Bool(layout::format(layout::RFC3339_NANO, time) == "0001-01-01T00:00:00Z")
        })),
        "Add" => method!(&[Type::Duration], |_, args| with(args, |time| {
            let later = time.checked_add(SignedDuration::from_nanos(int(&args[1])));
            Value::Time(Rc::new(later.unwrap_or_else(|_| time.clone())))
        })),
        "AddDate" => method!(&[Type::Int, Type::Int, Type::Int], |_, args| {
            with(args, |time| {
                let count = |index: usize| match &args[index] {
                    Value::Int(count) => *count,
                    _ => 0,
                };
                let span = jiff::Span::new()
                    .try_years(count(1))
                    .and_then(|span| span.try_months(count(2)))
                    .and_then(|span| span.try_days(count(3)));
                let later = span.and_then(|span| time.checked_add(span));
                Value::Time(Rc::new(later.unwrap_or_else(|_| time.clone())))
            })
        }),
        "Before" => method!(&[Type::Time], |_, args| compare(args, |a, b| a < b)),
        "After" => method!(&[Type::Time], |_, args| compare(args, |a, b| a > b)),
        "Equal" => method!(&[Type::Time], |_, args| compare(args, |a, b| a == b)),
        "Sub" => method!(&[Type::Time], |_, args| match (&args[0], &args[1]) {
            (Value::Time(a), Value::Time(b)) => {
                let nanos = a.timestamp().as_nanosecond() - b.timestamp().as_nanosecond();
                Ok(Value::Duration(i64::try_from(nanos).unwrap_or(i64::MAX)))
            }
            _ => Ok(Value::Nil),
        }),
        _ => None,
    }
}

fn compare(args: &[Value], holds: fn(&jiff::Timestamp, &jiff::Timestamp) -> bool) -> Result {
    match (&args[0], &args[1]) {
        (Value::Time(a), Value::Time(b)) => Ok(Value::Bool(holds(&a.timestamp(), &b.timestamp()))),
        _ => Ok(Value::Bool(false)),
    }
}

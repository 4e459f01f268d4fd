//! Dates, times and durations.

use std::rc::Rc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::{Context, Result, Row, Type, fail};
use crate::template::error::Error;
use crate::template::print;
use crate::template::value::Value;
use crate::{layout, number};

const A: Type = Type::Any;
const S: Type = Type::Str;
const T: Type = Type::Time;

pub(super) const TABLE: &[Row] = &[
    ("now", &[], None, |context, _| {
        Ok(time(context.env.now.clone()))
    }),
    ("date", &[S, A], None, |context, args| {
        Ok(format(context, &args[0].text(), &args[1], "Local"))
    }),
    ("dateInZone", &[S, A, S], None, in_zone),
    ("date_in_zone", &[S, A, S], None, in_zone),
    ("htmlDate", &[A], None, |context, args| {
        Ok(format(context, "2006-01-02", &args[0], "Local"))
    }),
    ("htmlDateInZone", &[A, S], None, |context, args| {
        Ok(format(context, "2006-01-02", &args[0], &args[1].text()))
    }),
    ("dateModify", &[S, T], None, |_, args| {
        Ok(modify(args).unwrap_or_else(|_| args[1].clone()))
    }),
    ("date_modify", &[S, T], None, |_, args| {
        Ok(modify(args).unwrap_or_else(|_| args[1].clone()))
    }),
    ("mustDateModify", &[S, T], None, |_, args| modify(args)),
    ("must_date_modify", &[S, T], None, |_, args| modify(args)),
    ("toDate", &[S, S], None, |context, args| {
        let parsed = layout::parse(
            &args[0].text(),
            &args[1].text(),
            context.env.now.time_zone(),
        );
        Ok(time(parsed.unwrap_or_else(|_| zero())))
    }),
    ("mustToDate", &[S, S], None, |context, args| {
        layout::parse(
            &args[0].text(),
            &args[1].text(),
            context.env.now.time_zone(),
        )
        .map(time)
        .map_err(Error::plain)
    }),
    ("unixEpoch", &[T], None, |_, args| match &args[0] {
        Value::Time(time) => Ok(Value::str(time.timestamp().as_second().to_string())),
        _ => Ok(Value::str("")),
    }),
    ("ago", &[A], None, |context, args| {
        let then = moment(context, &args[0]);
        let nanos = context.env.now.timestamp().as_nanosecond() - then.timestamp().as_nanosecond();
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Ok(Value::str(print::duration(rounded(nanos, 1_000_000_000))))
    }),
    ("duration", &[A], None, |_, args| {
        let seconds = match &args[0] {
            Value::Str(bytes) => {
                number::parse_int(&String::from_utf8_lossy(bytes), 10).unwrap_or(0)
            }
            Value::Int64(seconds) => *seconds,
            _ => 0,
        };
        Ok(Value::str(print::duration(
            seconds.wrapping_mul(1_000_000_000),
        )))
    }),
    ("durationRound", &[A], None, |context, args| {
        Ok(Value::str(coarse(context, &args[0])))
    }),
    ("mustToDuration", &[A], None, |_, args| {
        as_duration(&args[0])
            .map(Value::Duration)
            .map_err(Error::plain)
    }),
    ("durationSeconds", &[A], None, |_, args| {
        Ok(Value::Float(in_units(&args[0], 1e9)))
    }),
    ("durationMinutes", &[A], None, |_, args| {
        Ok(Value::Float(in_units(&args[0], 60e9)))
    }),
    ("durationHours", &[A], None, |_, args| {
        Ok(Value::Float(in_units(&args[0], 3600e9)))
    }),
    ("durationDays", &[A], None, |_, args| {
        Ok(Value::Float(in_units(&args[0], 3600e9) / 24.0))
    }),
    ("durationWeeks", &[A], None, |_, args| {
        Ok(Value::Float(in_units(&args[0], 3600e9) / 24.0 / 7.0))
    }),
    ("durationMilliseconds", &[A], None, |_, args| {
        Ok(whole_units(&args[0], 1_000_000))
    }),
    ("durationMicroseconds", &[A], None, |_, args| {
        Ok(whole_units(&args[0], 1_000))
    }),
    ("durationNanoseconds", &[A], None, |_, args| {
        Ok(whole_units(&args[0], 1))
    }),
    ("durationRoundTo", &[A, A], None, |_, args| {
        Ok(to_multiple(args, rounded))
    }),
    ("durationTruncateTo", &[A, A], None, |_, args| {
        Ok(to_multiple(args, |nanos, unit| {
            if unit <= 0 {
                nanos
            } else {
                nanos - nanos % unit
            }
        }))
    }),
];

fn time(zoned: Zoned) -> Value {
    Value::Time(Rc::new(zoned))
}

/// The first second of the year 1.
fn zero() -> Zoned {
    Timestamp::from_second(-62_135_596_800)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(TimeZone::UTC)
}

fn from_unix(seconds: i64, zone: TimeZone) -> Zoned {
    Timestamp::from_second(seconds)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(zone)
}

/// The time that a value stands for; what is none stands for now.
fn moment(context: &Context<'_>, value: &Value) -> Zoned {
    let now = &context.env.now;
    match value {
        Value::Time(time) => (**time).clone(),
        Value::Int(seconds) | Value::Int64(seconds) => from_unix(*seconds, now.time_zone().clone()),
        _ => now.clone(),
    }
}

fn format(context: &Context<'_>, layout: &str, value: &Value, zone: &str) -> Value {
    let zone = match zone {
        "Local" => context.env.now.time_zone().clone(),
        "" | "UTC" => TimeZone::UTC,
        name => TimeZone::get(name).unwrap_or(TimeZone::UTC),
    };
    let moment = moment(context, value).with_time_zone(zone);
    Value::str(layout::format(layout, &moment))
}

fn in_zone(context: &Context<'_>, args: &[Value]) -> Result {
    Ok(format(context, &args[0].text(), &args[1], &args[2].text()))
}

fn modify(args: &[Value]) -> Result {
    let nanos = parse_duration(&args[0].text()).map_err(Error::plain)?;
    let Value::Time(zoned) = &args[1] else {
        return fail("not a time");
    };
    match zoned.checked_add(SignedDuration::from_nanos(nanos)) {
        Ok(later) => Ok(time(later)),
        Err(_) => fail("time out of range"),
    }
}

/// Reads `1h2m3.5s`.
pub(crate) fn parse_duration(text: &str) -> std::result::Result<i64, String> {
    let quoted = || crate::quote::quote(text.as_bytes());
    let invalid = || format!("time: invalid duration {}", quoted());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number = &rest[..digits];
        rest = &rest[digits..];
        let unit_length = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (unit, after) = rest.split_at(unit_length);
        rest = after;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let scale: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(format!("time: missing unit in duration {}", quoted())),
            other => {
                let other = crate::quote::quote(other.as_bytes());
                return Err(format!(
                    "time: unknown unit {other} in duration {}",
                    quoted()
                ));
            }
        };
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| invalid())?
        };
        let mut part = whole.checked_mul(scale).ok_or_else(invalid)?;
        let mut unit_left = scale;
        for digit in fraction.bytes().take(18) {
            // Digits below a nanosecond are lost.
            unit_left /= 10;
            part = part
                .checked_add(u64::from(digit - b'0') * unit_left)
                .ok_or_else(invalid)?;
        }
        total = total.checked_add(part).ok_or_else(invalid)?;
    }
    match (i64::try_from(total), negative) {
        (Ok(nanos), true) => Ok(-nanos),
        (Ok(nanos), false) => Ok(nanos),
        (Err(_), true) if total == 1 << 63 => Ok(i64::MIN),
        _ => Err(invalid()),
    }
}

fn from_seconds(seconds: f64) -> std::result::Result<i64, String> {
    let shown = number::format_g(seconds);
    if !seconds.is_finite() {
        return Err(format!("invalid duration seconds: {shown}"));
    }
    let nanos = seconds * 1e9;
    if nanos.abs() > 9.223_372_036_854_775e18 {
        return Err(format!("duration seconds overflow: {shown}"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    Ok(nanos as i64)
}

fn as_duration(value: &Value) -> std::result::Result<i64, String> {
    match value {
        Value::Duration(nanos) => Ok(*nanos),
        Value::Str(bytes) => {
            let original = String::from_utf8_lossy(bytes);
            let text = original.trim();
            if text.is_empty() {
                return Err("empty duration".to_owned());
            }
            if let Ok(nanos) = parse_duration(text) {
                return Ok(nanos);
            }
            match number::parse_float(text) {
                Some(seconds) => from_seconds(seconds),
                None => Err(format!(
                    "could not parse duration {}",
                    crate::quote::quote(bytes)
                )),
            }
        }
        value if value.is_nil() => Err("invalid duration".to_owned()),
        Value::Int(seconds) | Value::Int64(seconds) => seconds
            .checked_mul(1_000_000_000)
            .ok_or_else(|| format!("duration seconds overflow: {seconds}")),
        Value::Byte(seconds) => Ok(i64::from(*seconds) * 1_000_000_000),
        Value::Float(seconds) => from_seconds(*seconds),
        other => Err(format!("unsupported duration type {}", other.type_name())),
    }
}

/// A duration in units, whole ones and the rest apart, as precise as Go is.
fn in_units(value: &Value, unit: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number of nanoseconds"
    )]
    let unit = unit as i64;
    let nanos = as_duration(value).unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "as Go does")]
    {
        (nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64
    }
}

fn whole_units(value: &Value, unit: i64) -> Value {
    Value::Int64(as_duration(value).unwrap_or(0) / unit)
}

fn to_multiple(args: &[Value], change: fn(i64, i64) -> i64) -> Value {
    Value::Duration(match (as_duration(&args[0]), as_duration(&args[1])) {
        (Err(_), _) => 0,
        (Ok(nanos), Err(_)) => nanos,
        (Ok(nanos), Ok(unit)) => change(nanos, unit),
    })
}

/// The nearest multiple, halves away from zero.
fn rounded(nanos: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return nanos;
    }
    let rest = nanos.unsigned_abs() % unit.unsigned_abs();
    let sign = if nanos < 0 { -1 } else { 1 };
    let down = nanos.wrapping_sub(sign * i64::try_from(rest).unwrap_or(0));
    if rest.saturating_mul(2) < unit.unsigned_abs() {
        down
    } else {
        down.checked_add(sign * unit)
            .unwrap_or(if sign < 0 { i64::MIN } else { i64::MAX })
    }
}

fn coarse(context: &Context<'_>, value: &Value) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    let nanos = match value {
        Value::Str(bytes) => parse_duration(&String::from_utf8_lossy(bytes)).unwrap_or(0),
        Value::Int64(nanos) => *nanos,
        Value::Time(time) => {
            let now = context.env.now.timestamp().as_nanosecond();
            i64::try_from(now - time.timestamp().as_nanosecond()).unwrap_or(i64::MAX)
        }
        _ => 0,
    }
    .unsigned_abs();
    for (unit, name) in [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
    ] {
        if nanos > unit {
            return format!("{}{name}", nanos / unit);
        }
    }
    "0s".to_owned()
}

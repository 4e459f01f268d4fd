//! Numbers.

use std::str::FromStr as _;

use super::bignum::Decimal;
use super::{Context, Result, Row, Type, fail, int};
use crate::number;
use crate::template::error::Error;
use crate::template::print;
use crate::template::value::{ListType, Value};

const A: Type = Type::Any;
const I: Type = Type::Int;

pub(super) const TABLE: &[Row] = &[
    ("atoi", &[Type::Str], None, |_, args| {
        Ok(Value::Int(
            number::parse_int(&args[0].text(), 10).unwrap_or(0),
        ))
    }),
    ("int", &[A], None, |_, args| {
        Ok(Value::Int(to_int(&args[0])))
    }),
    ("int64", &[A], None, |_, args| {
        Ok(Value::Int64(to_int(&args[0])))
    }),
    ("float64", &[A], None, |_, args| {
        Ok(Value::Float(to_float(&args[0])))
    }),
    ("toDecimal", &[A], None, |_, args| {
        Ok(Value::Int64(
            number::parse_int(&print::shown(&args[0]), 8).unwrap_or(0),
        ))
    }),
    ("add1", &[A], None, |_, args| {
        Ok(Value::Int64(to_int(&args[0]).wrapping_add(1)))
    }),
    ("add", &[], Some(A), |_, args| {
        Ok(Value::Int64(
            args.iter()
                .fold(0, |sum, arg| sum.wrapping_add(to_int(arg))),
        ))
    }),
    ("sub", &[A, A], None, |_, args| {
        Ok(Value::Int64(
            to_int(&args[0]).wrapping_sub(to_int(&args[1])),
        ))
    }),
    ("div", &[A, A], None, |_, args| {
        divide(args, i64::wrapping_div)
    }),
    ("mod", &[A, A], None, |_, args| {
        divide(args, i64::wrapping_rem)
    }),
    ("mul", &[A], Some(A), |_, args| {
        Ok(Value::Int64(
            args.iter()
                .fold(1, |product, arg| product.wrapping_mul(to_int(arg))),
        ))
    }),
    ("add1f", &[A], None, |_, args| {
        decimals(&[args[0].clone(), Value::Int(1)], |a, b| Some(a.add(b)))
    }),
    ("addf", &[], Some(A), |_, args| {
        let all: Vec<Value> = std::iter::once(Value::Int(0))
            .chain(args.iter().cloned())
            .collect();
        decimals(&all, |a, b| Some(a.add(b)))
    }),
    ("subf", &[A], Some(A), |_, args| {
        decimals(args, |a, b| Some(a.sub(b)))
    }),
    ("mulf", &[A], Some(A), |_, args| {
        decimals(args, |a, b| Some(a.mul(b)))
    }),
    ("divf", &[A], Some(A), |_, args| {
        decimals(args, Decimal::div)
    }),
    ("max", &[A], Some(A), |_, args| {
        Ok(extreme(args, |a, b| a > b))
    }),
    ("biggest", &[A], Some(A), |_, args| {
        Ok(extreme(args, |a, b| a > b))
    }),
    ("min", &[A], Some(A), |_, args| {
        Ok(extreme(args, |a, b| a < b))
    }),
    ("maxf", &[A], Some(A), |_, args| {
        Ok(Value::Float(fold(args, f64::max)))
    }),
    ("minf", &[A], Some(A), |_, args| {
        Ok(Value::Float(fold(args, f64::min)))
    }),
    ("ceil", &[A], None, |_, args| {
        Ok(Value::Float(to_float(&args[0]).ceil()))
    }),
    ("floor", &[A], None, |_, args| {
        Ok(Value::Float(to_float(&args[0]).floor()))
    }),
    ("round", &[A, I], Some(Type::Float), |_, args| {
        let on = match args.get(2) {
            Some(Value::Float(on)) => *on,
            _ => 0.5,
        };
        Ok(Value::Float(round(to_float(&args[0]), int(&args[1]), on)))
    }),
    ("until", &[I], None, |context, args| {
        let count = int(&args[0]);
        range(context, 0, count, if count < 0 { -1 } else { 1 }).map(ints)
    }),
    ("untilStep", &[I, I, I], None, |context, args| {
        range(context, int(&args[0]), int(&args[1]), int(&args[2])).map(ints)
    }),
    ("seq", &[], Some(I), seq),
];

/// The text without a fraction of zeros.
fn without_zero_fraction(text: &str) -> &str {
    let zeros = text.trim_end_matches('0');
    match zeros.strip_suffix('.') {
        Some(whole) if zeros.len() < text.len() => whole,
        _ => text,
    }
}

/// What is no number is 0.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(int) | Value::Int64(int) => *int,
        Value::Byte(byte) => i64::from(*byte),
        #[expect(clippy::cast_possible_truncation, reason = "a float is cut off")]
        Value::Float(float) if float.abs() < 9.3e18 => *float as i64,
        Value::Float(_) => i64::MIN,
        Value::Bool(flag) => i64::from(*flag),
        Value::Str(bytes) => {
            number::parse_int(without_zero_fraction(&String::from_utf8_lossy(bytes)), 0)
                .unwrap_or(0)
        }
        _ => 0,
    }
}

/// What is no number is 0.
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "as asked for")]
        Value::Int(int) | Value::Int64(int) => *int as f64,
        Value::Byte(byte) => f64::from(*byte),
        Value::Float(float) => *float,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Str(bytes) => number::parse_float(&String::from_utf8_lossy(bytes)).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn divide(args: &[Value], operation: fn(i64, i64) -> i64) -> Result {
    let by = to_int(&args[1]);
    if by == 0 {
        return fail("runtime error: integer divide by zero");
    }
    Ok(Value::Int64(operation(to_int(&args[0]), by)))
}

fn decimals(args: &[Value], operation: fn(&Decimal, &Decimal) -> Option<Decimal>) -> Result {
    let decimal = |value: &Value| {
        let float = to_float(value);
        if !float.is_finite() {
            return fail(format!(
                "Cannot create a Decimal from {}",
                number::format_g(float)
            ));
        }
        Decimal::parse(&format!("{float:e}")).ok_or_else(|| Error::plain("decimal out of range"))
    };
    let mut result = decimal(&args[0])?;
    for arg in &args[1..] {
        result = operation(&result, &decimal(arg)?)
            .ok_or_else(|| Error::plain("decimal division by 0"))?;
    }
    Ok(Value::Float(f64::from_str(&result.text()).unwrap_or(0.0)))
}

fn extreme(args: &[Value], better: fn(i64, i64) -> bool) -> Value {
    let mut best = to_int(&args[0]);
    for arg in &args[1..] {
        let other = to_int(arg);
        if better(other, best) {
            best = other;
        }
    }
    Value::Int64(best)
}

fn fold(args: &[Value], pick: fn(f64, f64) -> f64) -> f64 {
    args[1..]
        .iter()
        .fold(to_float(&args[0]), |best, arg| pick(best, to_float(arg)))
}

fn round(value: f64, places: i64, on: f64) -> f64 {
    let pow = 10_f64.powi(i32::try_from(places).unwrap_or(i32::MAX));
    let digit = pow * value;
    let rounded = if digit.fract() >= on {
        digit.ceil()
    } else {
        digit.floor()
    };
    rounded / pow
}

fn range(
    context: &Context<'_>,
    start: i64,
    stop: i64,
    step: i64,
) -> std::result::Result<Vec<i64>, Error> {
    let ascends = stop >= start;
    if (ascends && step <= 0) || (!ascends && step >= 0) {
        return Ok(Vec::new());
    }
    let distance = start.abs_diff(stop);
    let count = usize::try_from(distance / step.unsigned_abs()).unwrap_or(usize::MAX);
    context.env.fits(count.saturating_mul(8))?;
    context.env.step(count)?;
    let mut all = Vec::new();
    let mut at = start;
    while (ascends && at < stop) || (!ascends && at > stop) {
        all.push(at);
        let Some(next) = at.checked_add(step) else {
            break;
        };
        at = next;
    }
    Ok(all)
}

fn ints(all: Vec<i64>) -> Value {
    Value::typed_list(all.into_iter().map(Value::Int).collect(), ListType::Ints)
}

fn seq(context: &Context<'_>, args: &[Value]) -> Result {
    let (start, step, end) = match args {
        [end] => (1, None, int(end)),
        [start, end] => (int(start), None, int(end)),
        [start, step, end] => (int(start), Some(int(step)), int(end)),
        _ => return Ok(Value::str("")),
    };
    let direction = if end < start { -1 } else { 1 };
    if direction < 0 && step.is_some_and(|step| step > 0) {
        return Ok(Value::str(""));
    }
    let stop = end.saturating_add(direction);
    let all = range(context, start, stop, step.unwrap_or(direction))?;
    let digits: Vec<String> = all.iter().map(i64::to_string).collect();
    Ok(Value::str(digits.join(" ")))
}

//! Lists.

use std::borrow::Cow;

use super::math::to_int;
use super::{Result, Row, Type, fail, int};
use crate::template::error::Error;
use crate::template::value::{ListType, Value};

const A: Type = Type::Any;

pub(super) const TABLE: &[Row] = &[
    ("list", &[], Some(A), |_, args| {
        Ok(Value::list(args.to_vec()))
    }),
    ("tuple", &[], Some(A), |_, args| {
        Ok(Value::list(args.to_vec()))
    }),
    ("append", &[A, A], None, |_, args| push(args)),
    ("push", &[A, A], None, |_, args| push(args)),
    ("mustAppend", &[A, A], None, |_, args| push(args)),
    ("mustPush", &[A, A], None, |_, args| push(args)),
    ("prepend", &[A, A], None, |_, args| prepend(args)),
    ("mustPrepend", &[A, A], None, |_, args| prepend(args)),
    ("first", &[A], None, |_, args| first(args)),
    ("mustFirst", &[A], None, |_, args| first(args)),
    ("last", &[A], None, |_, args| last(args)),
    ("mustLast", &[A], None, |_, args| last(args)),
    ("rest", &[A], None, |_, args| rest(args)),
    ("mustRest", &[A], None, |_, args| rest(args)),
    ("initial", &[A], None, |_, args| initial(args)),
    ("mustInitial", &[A], None, |_, args| initial(args)),
    ("reverse", &[A], None, |_, args| reverse(args)),
    ("mustReverse", &[A], None, |_, args| reverse(args)),
    ("uniq", &[A], None, uniq),
    ("mustUniq", &[A], None, uniq),
    ("without", &[A], Some(A), without),
    ("mustWithout", &[A], Some(A), without),
    ("has", &[A, A], None, |_, args| has(args)),
    ("mustHas", &[A, A], None, |_, args| has(args)),
    ("compact", &[A], None, |_, args| compact(args)),
    ("mustCompact", &[A], None, |_, args| compact(args)),
    ("slice", &[A], Some(A), |_, args| slice(args)),
    ("mustSlice", &[A], Some(A), |_, args| slice(args)),
    ("concat", &[], Some(A), |_, args| {
        let mut all = Vec::new();
        for arg in args {
            match arg.items() {
                Some(items) => all.extend_from_slice(&items),
                None if arg.is_nil() => return nil(),
                None => return fail(format!("Cannot concat type {} as list", arg.kind())),
            }
        }
        Ok(Value::list(all))
    }),
    ("chunk", &[Type::Int, A], None, |_, args| chunk(args)),
    ("mustChunk", &[Type::Int, A], None, |_, args| chunk(args)),
];

/// What Go says of the type of nil.
fn nil<T>() -> std::result::Result<T, Error> {
    fail("runtime error: invalid memory address or nil pointer dereference")
}

fn items<'a>(value: &'a Value, verb: &str) -> std::result::Result<Cow<'a, [Value]>, Error> {
    match value.items() {
        Some(items) => Ok(items),
        None if value.is_nil() => nil(),
        None => fail(format!("Cannot {verb} type {}", value.kind())),
    }
}

fn push(args: &[Value]) -> Result {
    let mut all = items(&args[0], "push on")?.into_owned();
    all.push(args[1].clone());
    Ok(Value::list(all))
}

fn prepend(args: &[Value]) -> Result {
    let all = items(&args[0], "prepend on")?;
    Ok(Value::list(
        std::iter::once(args[1].clone())
            .chain(all.iter().cloned())
            .collect(),
    ))
}

fn first(args: &[Value]) -> Result {
    let all = items(&args[0], "find first on")?;
    Ok(all.first().cloned().unwrap_or(Value::Nil))
}

fn last(args: &[Value]) -> Result {
    let all = items(&args[0], "find last on")?;
    Ok(all.last().cloned().unwrap_or(Value::Nil))
}

fn rest(args: &[Value]) -> Result {
    let all = items(&args[0], "find rest on")?;
    Ok(Value::list(all.iter().skip(1).cloned().collect()))
}

fn initial(args: &[Value]) -> Result {
    let all = items(&args[0], "find initial on")?;
    Ok(Value::list(all[..all.len().saturating_sub(1)].to_vec()))
}

fn reverse(args: &[Value]) -> Result {
    let all = items(&args[0], "find reverse on")?;
    Ok(Value::list(all.iter().rev().cloned().collect()))
}

fn uniq(context: &super::Context<'_>, args: &[Value]) -> Result {
    let mut kept: Vec<Value> = Vec::new();
    for item in items(&args[0], "find uniq on")?.iter() {
        context.env.step(1 + kept.len() / 8)?;
        if !kept.iter().any(|other| other.deep_equal(item)) {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn without(context: &super::Context<'_>, args: &[Value]) -> Result {
    let all = items(&args[0], "find without on")?;
    context.env.step(all.len().saturating_mul(args.len()) / 8)?;
    let is_kept = |item: &&Value| !args[1..].iter().any(|other| other.deep_equal(item));
    Ok(Value::list(all.iter().filter(is_kept).cloned().collect()))
}

fn has(args: &[Value]) -> Result {
    if args[1].is_nil() {
        return Ok(Value::Bool(false));
    }
    let all = items(&args[1], "find has on")?;
    Ok(Value::Bool(
        all.iter().any(|item| item.deep_equal(&args[0])),
    ))
}

fn compact(args: &[Value]) -> Result {
    let all = items(&args[0], "compact on")?;
    Ok(Value::list(
        all.iter().filter(|item| item.truth()).cloned().collect(),
    ))
}

fn slice(args: &[Value]) -> Result {
    let all = match args[0].items() {
        Some(all) => all,
        None if args[0].is_nil() => return nil(),
        None => {
            return fail(format!(
                "list should be type of slice or array but {}",
                args[0].kind()
            ));
        }
    };
    if all.is_empty() {
        return Ok(Value::Nil);
    }
    let from = args.get(1).map_or(0, to_int);
    let to = args.get(2).map_or(super::length(all.len()), to_int);
    let bounds = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    match bounds.and_then(|(from, to)| all.get(from..to)) {
        Some(part) => {
            let of = match &args[0] {
                Value::List(list) => list.of,
                _ => ListType::Any,
            };
            Ok(Value::typed_list(part.to_vec(), of))
        }
        None => fail("reflect.Value.Slice: slice index out of bounds"),
    }
}

fn chunk(args: &[Value]) -> Result {
    let all = items(&args[1], "chunk")?;
    let size = match usize::try_from(int(&args[0])) {
        Ok(size) if size > 0 => size,
        _ => return fail("runtime error: makeslice: len out of range"),
    };
    let chunks: Vec<Value> = all
        .chunks(size)
        .map(|part| Value::list(part.to_vec()))
        .collect();
    Ok(Value::typed_list(chunks, ListType::Lists))
}

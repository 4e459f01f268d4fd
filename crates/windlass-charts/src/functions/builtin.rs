//! Go's own functions.

use std::cmp::Ordering;

use super::{Result, Row, Type, fail, int, length};
use crate::template::error::Error;
use crate::template::print;
use crate::template::value::Value;

const V: Type = Type::Value;
const A: Type = Type::Any;

pub(super) const TABLE: &[Row] = &[
    // `and` and `or` are evaluated where they stand.
    ("and", &[V], Some(V), |_, _| Ok(Value::Nil)),
    ("or", &[V], Some(V), |_, _| Ok(Value::Nil)),
    ("not", &[V], None, |_, args| {
        Ok(Value::Bool(!args[0].truth()))
    }),
    ("len", &[V], None, |_, args| len(&args[0])),
    ("index", &[V], Some(V), |_, args| index(args)),
    ("slice", &[V], Some(V), |_, args| slice(args)),
    ("print", &[], Some(A), |_, args| {
        Ok(Value::str(print::sprint(args)))
    }),
    ("println", &[], Some(A), |_, args| {
        Ok(Value::str(print::sprintln(args)))
    }),
    ("printf", &[Type::Str], Some(A), |_, args| {
        Ok(Value::str(print::sprintf(args[0].bytes(), &args[1..])))
    }),
    ("html", &[], Some(A), |_, args| {
        Ok(Value::str(html(&joined(args))))
    }),
    ("js", &[], Some(A), |_, args| {
        Ok(Value::str(js(&joined(args))))
    }),
    ("urlquery", &[], Some(A), |_, args| {
        Ok(Value::str(super::urls::escape_query(&joined(args))))
    }),
    ("call", &[V], Some(V), |_, args| match &args[0] {
        value if value.is_nil() => fail("call of nil"),
        value => fail(format!("non-function of type {}", value.type_name())),
    }),
    ("eq", &[V], Some(V), |_, args| eq(args).map(Value::Bool)),
    ("ne", &[V, V], None, |_, args| Ok(Value::Bool(!eq(args)?))),
    ("lt", &[V, V], None, |_, args| Ok(Value::Bool(less(args)?))),
    ("le", &[V, V], None, |_, args| {
        Ok(Value::Bool(less(args)? || eq(args)?))
    }),
    ("gt", &[V, V], None, |_, args| {
        Ok(Value::Bool(!(less(args)? || eq(args)?)))
    }),
    ("ge", &[V, V], None, |_, args| Ok(Value::Bool(!less(args)?))),
];

fn joined(args: &[Value]) -> Vec<u8> {
    match args {
        [Value::Str(bytes)] => bytes.to_vec(),
        _ => {
            let shown: Vec<Value> = args
                .iter()
                .map(|arg| match arg {
                    arg if arg.is_nil() => Value::str("<no value>"),
                    arg => arg.clone(),
                })
                .collect();
            print::sprint(&shown)
        }
    }
}

fn html(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for byte in bytes {
        let escaped: &[u8] = match byte {
            0 => "\u{fffd}".as_bytes(),
            b'"' => b"&#34;",
            b'\'' => b"&#39;",
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            other => {
                out.push(*other);
                continue;
            }
        };
        out.extend_from_slice(escaped);
    }
    out
}

fn js(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' | '\0'..='\x1f' => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c if c.is_ascii() || crate::quote::is_print(c) => out.push(c),
            c => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    out
}

fn len(value: &Value) -> Result {
    let count = match value {
        Value::Str(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.borrow().len(),
        Value::Nil => return fail("len of nil pointer"),
        // Go panics on no value at all, and says so.
        Value::Invalid => return fail("reflect: call of reflect.Value.Type on zero Value"),
        other => return fail(format!("len of type {}", other.type_name())),
    };
    Ok(Value::Int(length(count)))
}

/// An index into something of a length.
fn position(index: &Value, most: usize) -> std::result::Result<usize, Error> {
    let at = match index {
        Value::Int(_) | Value::Int64(_) | Value::Byte(_) => int(index),
        index if index.is_nil() => return fail("cannot index slice/array with nil"),
        other => {
            return fail(format!(
                "cannot index slice/array with type {}",
                other.type_name()
            ));
        }
    };
    match usize::try_from(at) {
        Ok(position) if position <= most => Ok(position),
        _ => fail(format!("index out of range: {at}")),
    }
}

fn index(args: &[Value]) -> Result {
    let mut item = args[0].clone();
    if item.is_nil() {
        return fail("index of untyped nil");
    }
    for index in &args[1..] {
        item = match &item {
            value if value.is_nil() => return fail("index of nil pointer"),
            Value::Str(bytes) | Value::Bytes(bytes) => {
                let at = position(index, bytes.len())?;
                match bytes.get(at) {
                    Some(byte) => Value::Byte(*byte),
                    None => return fail("reflect: string index out of range"),
                }
            }
            Value::List(list) => {
                let at = position(index, list.items.len())?;
                match list.items.get(at) {
                    Some(item) => item.clone(),
                    None => return fail("reflect: slice index out of range"),
                }
            }
            Value::Map(map) => {
                let Value::Str(key) = index else {
                    return fail(if index.is_nil() {
                        "value is nil; should be of type string".to_owned()
                    } else {
                        format!("value has type {}; should be string", index.type_name())
                    });
                };
                map.get(&String::from_utf8_lossy(key))
                    .unwrap_or_else(|| map.zero())
            }
            other => return fail(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(item)
}

fn slice(args: &[Value]) -> Result {
    let (item, indexes) = (&args[0], &args[1..]);
    if item.is_nil() {
        return fail("slice of untyped nil");
    }
    if indexes.len() > 3 {
        return fail(format!("too many slice indexes: {}", indexes.len()));
    }
    let most = match item {
        Value::Str(_) if indexes.len() == 3 => return fail("cannot 3-index slice a string"),
        Value::Str(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len(),
        other => return fail(format!("can't slice item of type {}", other.type_name())),
    };
    let mut bounds = [0, most, most];
    for (slot, index) in bounds.iter_mut().zip(indexes) {
        *slot = position(index, most)?;
    }
    let [from, to, cap] = bounds;
    if from > to {
        return fail(format!("invalid slice index: {from} > {to}"));
    }
    if indexes.len() == 3 && to > cap {
        return fail(format!("invalid slice index: {to} > {cap}"));
    }
    Ok(match item {
        Value::Str(bytes) => Value::str(&bytes[from..to]),
        Value::Bytes(bytes) => Value::Bytes(bytes[from..to].into()),
        Value::List(list) => Value::typed_list(list.items[from..to].to_vec(), list.of),
        _ => Value::Nil,
    })
}

/// How a value is compared.
#[derive(Clone, Copy, PartialEq)]
enum Basic {
    Other,
    Bool,
    Int,
    Uint,
    Float,
    Str,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(_) | Value::Int64(_) | Value::Duration(_) => Basic::Int,
        Value::Byte(_) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Str(_) => Basic::Str,
        _ => Basic::Other,
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Duration(nanos) => *nanos,
        other => int(other),
    }
}

fn incompatible<T>(a: &Value, b: &Value) -> std::result::Result<T, Error> {
    fail(format!(
        "incompatible types for comparison: {} and {}",
        a.type_name(),
        b.type_name()
    ))
}

fn eq(args: &[Value]) -> std::result::Result<bool, Error> {
    let first = &args[0];
    if args.len() < 2 {
        return fail("missing argument for comparison");
    }
    for other in &args[1..] {
        let truth = match (basic(first), basic(other)) {
            (Basic::Int, Basic::Uint) | (Basic::Uint, Basic::Int) => number(first) == number(other),
            (a, b) if a != b => {
                if !first.is_nil() && !other.is_nil() {
                    return incompatible(first, other);
                }
                false
            }
            (Basic::Other, _) => equal_others(first, other)?,
            _ => {
                first.deep_equal(other)
                    || (basic(first) == Basic::Int && number(first) == number(other))
            }
        };
        if truth {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal_others(a: &Value, b: &Value) -> std::result::Result<bool, Error> {
    if a.is_nil() || b.is_nil() {
        return Ok(a.is_nil() && b.is_nil());
    }
    if a.kind() != b.kind() {
        return fail(format!(
            "non-comparable types {}: {}, {}: {}",
            print::shown(a),
            a.type_name(),
            b.type_name(),
            print::shown(b)
        ));
    }
    match b {
        Value::Map(_) | Value::List(_) | Value::Bytes(_) => {
            let shown = print::sprintf(b"%s", std::slice::from_ref(b));
            fail(format!(
                "non-comparable type {}: {}",
                String::from_utf8_lossy(&shown),
                b.type_name()
            ))
        }
        _ => Ok(a.deep_equal(b)),
    }
}

fn less(args: &[Value]) -> std::result::Result<bool, Error> {
    let (a, b) = (&args[0], &args[1]);
    match (basic(a), basic(b)) {
        (Basic::Other, _) | (_, Basic::Other) | (Basic::Bool, Basic::Bool) => {
            fail("invalid type for comparison")
        }
        (Basic::Int | Basic::Uint, Basic::Int | Basic::Uint) => Ok(number(a) < number(b)),
        (Basic::Float, Basic::Float) => match (a, b) {
            (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b) == Some(Ordering::Less)),
            _ => Ok(false),
        },
        (Basic::Str, Basic::Str) => Ok(a.bytes() < b.bytes()),
        _ => incompatible(a, b),
    }
}

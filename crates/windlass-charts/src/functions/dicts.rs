//! Maps.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::strings::to_bytes;
use super::{Result, Row, Type, entries, fail};
use crate::template::error::Error;
use crate::template::value::{MAX_DEPTH, Map, MapType, Value};

const A: Type = Type::Any;
const M: Type = Type::Map;
const S: Type = Type::Str;

pub(super) const TABLE: &[Row] = &[
    ("dict", &[], Some(A), |_, args| {
        let mut map = BTreeMap::new();
        for pair in args.chunks(2) {
            let key = String::from_utf8_lossy(&to_bytes(&pair[0])).into_owned();
            let value = pair.get(1).cloned().unwrap_or_else(|| Value::str(""));
            map.insert(Rc::from(key), value);
        }
        Ok(Value::map(map))
    }),
    ("get", &[M, S], None, |_, args| {
        Ok(lookup(&args[0], &args[1].text()).unwrap_or_else(|| Value::str("")))
    }),
    ("set", &[M, S, A], None, |_, args| {
        let Value::Map(map) = &args[0] else {
            return fail("assignment to entry in nil map");
        };
        map.entries
            .borrow_mut()
            .insert(Rc::from(&*args[1].text()), args[2].clone());
        Ok(plain(&args[0]))
    }),
    ("unset", &[M, S], None, |_, args| {
        if let Value::Map(map) = &args[0] {
            map.entries.borrow_mut().remove(&*args[1].text());
        }
        Ok(plain(&args[0]))
    }),
    ("hasKey", &[M, S], None, |_, args| {
        Ok(Value::Bool(lookup(&args[0], &args[1].text()).is_some()))
    }),
    ("pluck", &[S], Some(M), |_, args| {
        let key = args[0].text();
        Ok(Value::list(
            args[1..]
                .iter()
                .filter_map(|map| lookup(map, &key))
                .collect(),
        ))
    }),
    ("keys", &[], Some(M), |_, args| {
        Ok(Value::strings(
            args.iter()
                .flat_map(entries)
                .map(|(key, _)| key.as_bytes().to_vec()),
        ))
    }),
    ("values", &[M], None, |_, args| {
        Ok(Value::list(
            entries(&args[0])
                .into_iter()
                .map(|(_, value)| value)
                .collect(),
        ))
    }),
    ("pick", &[M], Some(S), |_, args| {
        let wanted: Vec<_> = args[1..].iter().map(Value::text).collect();
        Ok(filtered(&args[0], |key| {
            wanted.iter().any(|name| name == key)
        }))
    }),
    ("omit", &[M], Some(S), |_, args| {
        let unwanted: Vec<_> = args[1..].iter().map(Value::text).collect();
        Ok(filtered(&args[0], |key| {
            !unwanted.iter().any(|name| name == key)
        }))
    }),
    ("merge", &[M], Some(M), |context, args| {
        merge_all(context, args, false)
    }),
    ("mustMerge", &[M], Some(M), |context, args| {
        merge_all(context, args, false)
    }),
    ("mergeOverwrite", &[M], Some(M), |context, args| {
        merge_all(context, args, true)
    }),
    ("mustMergeOverwrite", &[M], Some(M), |context, args| {
        merge_all(context, args, true)
    }),
    ("deepCopy", &[A], None, |_, args| copy(&args[0])),
    ("mustDeepCopy", &[A], None, |_, args| copy(&args[0])),
    ("dig", &[], Some(A), |_, args| dig(args)),
];

fn lookup(map: &Value, key: &str) -> Option<Value> {
    match map {
        Value::Map(map) => map.get(key),
        _ => None,
    }
}

/// A function that gives a map gives one without a name.
fn plain(map: &Value) -> Value {
    match map {
        Value::Map(map) => map.as_type(MapType::Any),
        other => other.clone(),
    }
}

fn filtered(map: &Value, is_kept: impl Fn(&str) -> bool) -> Value {
    Value::map(
        entries(map)
            .into_iter()
            .filter(|(key, _)| is_kept(key))
            .collect(),
    )
}

fn copy(value: &Value) -> Result {
    match value.deep_copy(0) {
        Some(copy) => Ok(copy),
        None => fail("values are nested too deeply"),
    }
}

fn merge_all(context: &super::Context<'_>, args: &[Value], overwrite: bool) -> Result {
    let target = match &args[0] {
        Value::Map(map) => Rc::clone(map),
        _ => Rc::new(Map {
            entries: Rc::default(),
            of: MapType::Any,
        }),
    };
    for source in &args[1..] {
        if let Value::Map(source) = source {
            merge(context, &target, source, overwrite, 0)?;
        }
    }
    Ok(target.as_type(MapType::Any))
}

/// Merges what a map does not have yet into it, or everything if it is overwritten.
fn merge(
    context: &super::Context<'_>,
    target: &Rc<Map>,
    source: &Rc<Map>,
    overwrite: bool,
    depth: usize,
) -> std::result::Result<(), Error> {
    if depth > MAX_DEPTH {
        return fail("values are nested too deeply");
    }
    if Rc::ptr_eq(&target.entries, &source.entries) {
        return Ok(());
    }
    for (key, value) in source.snapshot() {
        context.env.step(1)?;
        let old = target.get(&key);
        if value.is_nil() {
            if overwrite {
                target.entries.borrow_mut().insert(key, Value::Nil);
            }
            continue;
        }
        if let (Some(Value::Map(old)), Value::Map(new)) = (&old, &value) {
            merge(context, old, new, overwrite, depth + 1)?;
        }
        let is_list = value.items().is_some();
        let stays = match &old {
            Some(old) if old.truth() => {
                (is_list && !overwrite)
                    || (matches!(old, Value::Map(_)) && matches!(value, Value::Map(_)))
            }
            _ => false,
        };
        let is_open = overwrite || old.as_ref().is_none_or(|old| !old.truth());
        if !stays && is_open {
            target.entries.borrow_mut().insert(key, value);
        }
    }
    Ok(())
}

fn dig(args: &[Value]) -> Result {
    let [keys @ .., default, map] = args else {
        return fail("dig needs at least three arguments");
    };
    if keys.is_empty() {
        return fail("dig needs at least three arguments");
    }
    let mut value = map.clone();
    for key in keys {
        let Value::Map(map) = &value else {
            return fail(conversion(&value, "map[string]interface {}"));
        };
        if map.of != MapType::Any {
            return fail(conversion(&value, "map[string]interface {}"));
        }
        let Value::Str(key) = key else {
            return fail(conversion(key, "string"));
        };
        let Some(next) = map.get(&String::from_utf8_lossy(key)) else {
            return Ok(default.clone());
        };
        value = next;
    }
    Ok(value)
}

fn conversion(value: &Value, wanted: &str) -> String {
    let found = if value.is_nil() {
        "nil".into()
    } else {
        value.type_name()
    };
    format!("interface conversion: interface {{}} is {found}, not {wanted}")
}

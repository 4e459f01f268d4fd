//! Types, and what is empty.

use super::{Row, Type};
use crate::template::value::Value;

const A: Type = Type::Any;

pub(super) const TABLE: &[Row] = &[
    ("default", &[A], Some(A), |_, args| {
        Ok(match args.get(1) {
            Some(given) if given.truth() => given.clone(),
            _ => args[0].clone(),
        })
    }),
    ("empty", &[A], None, |_, args| {
        Ok(Value::Bool(!args[0].truth()))
    }),
    ("coalesce", &[], Some(A), |_, args| {
        Ok(args
            .iter()
            .find(|arg| arg.truth())
            .cloned()
            .unwrap_or(Value::Nil))
    }),
    ("all", &[], Some(A), |_, args| {
        Ok(Value::Bool(args.iter().all(Value::truth)))
    }),
    ("any", &[], Some(A), |_, args| {
        Ok(Value::Bool(args.iter().any(Value::truth)))
    }),
    ("ternary", &[A, A, Type::Bool], None, |_, args| {
        Ok(args[usize::from(!args[2].truth())].clone())
    }),
    ("typeOf", &[A], None, |_, args| {
        Ok(Value::str(&*type_of(&args[0])))
    }),
    ("typeIs", &[Type::Str, A], None, |_, args| {
        Ok(Value::Bool(*args[0].text() == *type_of(&args[1])))
    }),
    ("typeIsLike", &[Type::Str, A], None, |_, args| {
        let (target, found) = (args[0].text(), type_of(&args[1]));
        Ok(Value::Bool(
            *target == *found || format!("*{target}") == *found,
        ))
    }),
    ("kindOf", &[A], None, |_, args| {
        Ok(Value::str(args[0].kind()))
    }),
    ("kindIs", &[Type::Str, A], None, |_, args| {
        Ok(Value::Bool(*args[0].text() == *args[1].kind()))
    }),
    ("deepEqual", &[A, A], None, |_, args| {
        Ok(Value::Bool(args[0].deep_equal(&args[1])))
    }),
];

fn type_of(value: &Value) -> std::borrow::Cow<'static, str> {
    value.clone().concrete().type_name()
}

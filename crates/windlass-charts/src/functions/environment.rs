//! Variables of the environment. Charts do not see them; other templates may.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Context, Function, Result, Row, Type, by_name};
use crate::template::value::Value;

const TABLE: &[Row] = &[("env", &[Type::Str], None, env)];

pub(super) fn find(name: &str) -> Option<&'static Function> {
    static FUNCTIONS: OnceLock<HashMap<&'static str, Function>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| by_name(&[TABLE])).get(name)
}

fn env(context: &Context<'_>, args: &[Value]) -> Result {
    let variables = context.env.environment.as_ref();
    let found = variables.and_then(|variables| variables.get(&*args[0].text()));
    Ok(Value::str(found.map_or("", String::as_str)))
}

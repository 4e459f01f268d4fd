//! Templates and documents that are not part of a chart.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Zoned;

use crate::functions::{self, helm};
use crate::limits::Limits;
use crate::template::env::Env;
use crate::template::exec::{self, Templates};
use crate::template::parse;
use crate::template::value::Value;
use crate::yaml;

/// Executes a text as a template without values, which may read variables of the environment with
/// `env`.
pub fn expand(text: &str, environment: &BTreeMap<String, String>) -> Result<String, String> {
    const NAME: &str = "value";
    if !text.contains("{{") {
        return Ok(text.to_owned());
    }
    let is_function = |name: &str| functions::find_with_environment(name).is_some();
    let mut templates = Templates::new();
    helm::add(&mut templates, parse::parse(NAME, text, &is_function)?);
    let now = Zoned::now();
    let mut env = Env::new(false, now, [0; 32], None, Limits::default());
    env.environment = Some(environment.clone());
    let bytes = exec::execute(&env, &Rc::new(templates), NAME, Value::Nil)
        .map_err(|error| error.message())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a YAML document as Helm reads it.
pub fn from_yaml(text: &[u8]) -> Result<serde_json::Value, String> {
    yaml::read(text).and_then(yaml::to_json)
}

/// Reads an object as it is sent to a cluster: as [`from_yaml`], but whole numbers stay whole.
pub fn object_from_yaml(text: &[u8]) -> Result<serde_json::Value, String> {
    yaml::read(text).and_then(yaml::to_object)
}

/// Writes a value as YAML, as `toYaml` does.
pub fn to_yaml(value: &serde_json::Value) -> String {
    let value = crate::json::to_yaml(&Value::from(value));
    value.map_or_else(
        |_| String::new(),
        |value| yaml::emit(&value, yaml::Dialect::Plain),
    )
}

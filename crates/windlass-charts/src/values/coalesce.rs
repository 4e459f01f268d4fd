//! Values of a chart and those it depends on, one over the other.

use serde_json::Value;

use super::Values;
use crate::Error;
use crate::chart::Chart;

const GLOBAL: &str = "global";

/// What a null does.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Nulls {
    /// It takes the key away.
    Remove,
    /// It stays, for a later round.
    Keep,
}

/// The values of a chart with those given over them.
pub(crate) fn coalesce(chart: &Chart, mut values: Values, nulls: Nulls) -> Result<Values, Error> {
    chart_and_dependencies(chart, &mut values, nulls)?;
    Ok(values)
}

fn chart_and_dependencies(chart: &Chart, values: &mut Values, nulls: Nulls) -> Result<(), Error> {
    own(chart, values, nulls);
    for dependency in &chart.dependencies {
        let name = dependency.name().to_owned();
        // The values of the dependency are taken out, so that the globals beside them can be read.
        let mut inner = match values.remove(&name) {
            None => Values::new(),
            Some(Value::Object(inner)) => inner,
            Some(other) => {
                return Err(Error::Values(format!(
                    "type mismatch on {name}: {}",
                    mismatch(&other)
                )));
            }
        };
        globals(&mut inner, values);
        let done = chart_and_dependencies(dependency, &mut inner, nulls);
        values.insert(name, Value::Object(inner));
        done?;
    }
    Ok(())
}

/// How `%t` prints what is no boolean.
fn mismatch(value: &Value) -> String {
    use crate::template::print;
    let value = crate::template::value::Value::from(value);
    String::from_utf8_lossy(&print::sprintf(b"%t", &[value])).into_owned()
}

/// The globals of a chart go down to those it depends on.
fn globals(inner: &mut Values, outer: &Values) {
    let mut down = match inner.get(GLOBAL) {
        None => Values::new(),
        Some(Value::Object(found)) => found.clone(),
        Some(_) => return,
    };
    match outer.get(GLOBAL) {
        None => {}
        Some(Value::Object(up)) => {
            for (key, value) in up {
                match (value, down.get(key)) {
                    (Value::Object(table), Some(Value::Object(old))) => {
                        let mut merged = table.clone();
                        tables(&mut merged, old.clone(), Nulls::Keep);
                        down.insert(key.clone(), Value::Object(merged));
                    }
                    // A table does not go over what is none, nor the other way round.
                    (Value::Object(_), Some(_)) | (_, Some(Value::Object(_))) => {}
                    _ => {
                        down.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        Some(_) => return,
    }
    inner.insert(GLOBAL.to_owned(), Value::Object(down));
}

/// The values of the chart itself.
fn own(chart: &Chart, values: &mut Values, nulls: Nulls) {
    for (key, value) in &chart.values {
        match values.get_mut(key) {
            Some(Value::Null) if nulls == Nulls::Remove => {
                values.remove(key);
            }
            Some(Value::Object(given)) => {
                if let Value::Object(default) = value {
                    let mut default = default.clone();
                    // Nulls for a dependency are for its own round.
                    let is_dependency = chart.dependencies.iter().any(|inner| inner.name() == key);
                    let nulls = if is_dependency { Nulls::Keep } else { nulls };
                    if nulls == Nulls::Remove {
                        without_nulls(&mut default);
                    }
                    tables(given, default, nulls);
                }
            }
            Some(_) => {}
            None => {
                let mut value = value.clone();
                if nulls == Nulls::Remove {
                    if value.is_null() {
                        continue;
                    }
                    if let Value::Object(inner) = &mut value {
                        without_nulls(inner);
                    }
                }
                values.insert(key.clone(), value);
            }
        }
    }
}

/// Adds what a table lacks; a null in it takes away what would be added.
pub(crate) fn tables(into: &mut Values, from: Values, nulls: Nulls) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Null), value) if nulls == Nulls::Remove && !value.is_null() => {
                into.remove(&key);
            }
            (Some(Value::Object(old)), Value::Object(new)) => tables(old, new, nulls),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn without_nulls(values: &mut Values) {
    values.retain(|_, value| !value.is_null());
    for value in values.values_mut() {
        if let Value::Object(inner) = value {
            without_nulls(inner);
        }
    }
}

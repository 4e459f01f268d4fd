//! Which dependencies a chart uses, and what it takes over from them.

use serde_json::Value;

use super::coalesce::{Nulls, coalesce, tables};
use super::{Values, path, table};
use crate::Error;
use crate::chart::{Chart, Dependency};
use crate::semver;

/// Leaves out the dependencies that are switched off, and takes over values of the others.
pub(crate) fn process(chart: &mut Chart, values: &Values) -> Result<(), Error> {
    enabled(chart, values, "")
        .and_then(|()| import(chart))
        .map_err(|error| Error::Values(format!("chart dependencies processing failed: {error}")))
}

/// The chart that a dependency asks for, under its alias.
fn named(charts: &[Chart], dependency: &Dependency) -> Option<Chart> {
    let found = charts.iter().find(|chart| fits(chart, dependency))?;
    let mut chart = found.clone();
    if !dependency.alias.is_empty() {
        chart.metadata.name.clone_from(&dependency.alias);
    }
    Some(chart)
}

fn fits(chart: &Chart, dependency: &Dependency) -> bool {
    chart.name() == dependency.name
        && semver::is_compatible(&dependency.version, &chart.metadata.version)
}

fn enabled(chart: &mut Chart, values: &Values, prefix: &str) -> Result<(), Error> {
    let Some(mut wanted) = chart.metadata.dependencies.take() else {
        return Ok(());
    };
    let present = std::mem::take(&mut chart.dependencies);
    let mut charts: Vec<Chart> = present
        .iter()
        .filter(|chart| !wanted.iter().any(|dependency| fits(chart, dependency)))
        .cloned()
        .collect();
    for dependency in &mut wanted {
        charts.extend(named(&present, dependency));
        if !dependency.alias.is_empty() {
            dependency.name.clone_from(&dependency.alias);
        }
        dependency.enabled = true;
    }
    chart.dependencies = charts;
    let values = coalesce(chart, values.clone(), Nulls::Remove)?;
    by_tags(&mut wanted, &values);
    by_conditions(&mut wanted, &values, prefix);
    let is_off = |name: &str| {
        wanted
            .iter()
            .any(|dependency| !dependency.enabled && dependency.name == name)
    };
    chart.dependencies.retain(|chart| !is_off(chart.name()));
    let kept: Vec<Dependency> = wanted
        .iter()
        .filter(|dependency| !is_off(&dependency.name))
        .cloned()
        .collect();
    for inner in &mut chart.dependencies {
        let prefix = format!("{prefix}{}.", inner.name());
        enabled(inner, &values, &prefix)?;
    }
    // A list without anything in it is none.
    chart.metadata.dependencies = (!kept.is_empty()).then_some(kept);
    Ok(())
}

fn by_tags(wanted: &mut [Dependency], values: &Values) {
    let Some(tags) = table(values, "tags") else {
        return;
    };
    for dependency in wanted {
        let set = |flag: bool| {
            dependency
                .tags
                .iter()
                .any(|tag| tags.get(tag) == Some(&Value::Bool(flag)))
        };
        dependency.enabled = set(true) || !set(false);
    }
}

fn by_conditions(wanted: &mut [Dependency], values: &Values, prefix: &str) {
    for dependency in wanted {
        let found = dependency
            .condition
            .trim()
            .split(',')
            .filter(|condition| !condition.is_empty())
            .find_map(
                |condition| match path(values, &format!("{prefix}{condition}")) {
                    Some(Value::Bool(flag)) => Some(*flag),
                    _ => None,
                },
            );
        if let Some(flag) = found {
            dependency.enabled = flag;
        }
    }
}

/// A table under a path with dots.
fn nested(path: &str, values: Values) -> Values {
    if path == "." {
        return values;
    }
    path.split('.').rev().fold(values, |inner, name| {
        Values::from_iter([(name.to_owned(), Value::Object(inner))])
    })
}

fn import(chart: &mut Chart) -> Result<(), Error> {
    for dependency in &mut chart.dependencies {
        import(dependency)?;
    }
    let Some(mut wanted) = chart.metadata.dependencies.take() else {
        return Ok(());
    };
    let mut values = coalesce(chart, Values::new(), Nulls::Keep)?;
    let mut imported = Values::new();
    for dependency in &mut wanted {
        let mut done = Vec::new();
        for one in &dependency.import_values {
            let (child, parent) = match one {
                Value::Object(pair) => {
                    let text = |name: &str| match pair.get(name) {
                        Some(Value::String(text)) => text.clone(),
                        Some(other) => crate::template::print::shown(
                            &crate::template::value::Value::from(other),
                        ),
                        None => "<nil>".to_owned(),
                    };
                    (text("child"), text("parent"))
                }
                Value::String(name) => (format!("exports.{name}"), ".".to_owned()),
                _ => continue,
            };
            if let Some(found) = table(&values, &format!("{}.{child}", dependency.name)) {
                tables(&mut imported, nested(&parent, found.clone()), Nulls::Keep);
            }
            done.push(Value::Object(Values::from_iter([
                ("child".to_owned(), Value::String(child)),
                ("parent".to_owned(), Value::String(parent)),
            ])));
        }
        dependency.import_values = done;
    }
    tables(&mut values, imported, Nulls::Keep);
    chart.values = values;
    chart.metadata.dependencies = Some(wanted);
    Ok(())
}

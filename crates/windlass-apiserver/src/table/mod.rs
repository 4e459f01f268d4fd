//! The Table form: rows and columns for people.
//!
//! Columns come from the facts (or the CRD), and what they show from the kind; `cell` has what
//! several kinds show.

pub(crate) mod cell;
pub(crate) mod text;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::resource::Resource;

/// How a Table is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) whole_objects: bool,
    pub(crate) no_objects: bool,
    pub(crate) now: Timestamp,
}

/// The Table of some objects of one resource.
pub(crate) fn of(
    resource: &Resource,
    objects: &[Value],
    metadata: &Value,
    options: Options,
) -> Value {
    let columns: Vec<Value> = resource
        .columns
        .iter()
        .map(|column| {
            json!({"name": column.name, "type": column.ty, "format": column.format, "description": "", "priority": column.priority})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells = cells(resource, object, options.now);
            let mut row = json!({"cells": cells, "object": null});
            if let Some(conditions) = resource.strategy.row_conditions(object) {
                row["conditions"] = conditions;
            }
            if options.whole_objects {
                row["object"] = object.clone();
            } else if !options.no_objects {
                let mut metadata = object["metadata"].clone();
                crate::defaults::drop_template_generation(&mut metadata);
                row["object"] = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
            }
            row
        })
        .collect();
    // What prints kinds that have no columns of their own starts with no list at all.
    let plain = resource
        .columns
        .iter()
        .any(|column| column.name == "Created At");
    let rows = (!rows.is_empty() || !plain).then_some(rows);
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": rows})
}

/// The cells of one object.
fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    if let Some(custom) = &resource.custom {
        let columns = custom.cells.iter().zip(resource.columns.iter().skip(1));
        let cells = columns.map(|(path, column)| custom_cell(path.find(object), &column.ty, now));
        return std::iter::once(object["metadata"]["name"].clone())
            .chain(cells)
            .collect();
    }
    let columns = resource.columns.iter();
    let mut cells: Vec<Value> = columns
        .map(|column| {
            let name = column.name.as_str();
            let own = resource.strategy.cell(object, name, now);
            own.unwrap_or_else(|| cell::of_any_kind(object, name, now))
        })
        .collect();
    cells.extend(resource.strategy.extra_cells(object, now));
    cells
}

fn custom_cell(value: Option<&Value>, ty: &str, now: Timestamp) -> Value {
    match (value, ty) {
        (Some(Value::Null), "string") => "<no value>".into(),
        (Some(Value::String(text)), "date") if text.parse::<Timestamp>().is_err() => {
            "<invalid>".into()
        }
        (Some(Value::String(text)), "date") => age(text, now).into(),
        (Some(Value::Number(number)), "integer") if number.is_f64() => {
            #[allow(clippy::cast_possible_truncation, reason = "as Go does it")]
            let whole = number.as_f64().unwrap_or_default() as i64;
            whole.into()
        }
        (Some(value @ Value::Number(_)), "integer" | "number")
        | (Some(value @ Value::Bool(_)), "boolean") => value.clone(),
        (Some(Value::String(text)), "string") => text.as_str().into(),
        (Some(other), "string") => other.to_string().into(),
        // A cell of another type than its column is empty.
        _ => Value::Null,
    }
}

/// How long ago, as kubectl says it: `5s`, `3m20s`, `2h`, `4d`.
pub(crate) fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    duration(now.as_second() - since.as_second())
}

/// A number of seconds, as kubectl says it.
pub(crate) fn duration(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 == 0 => format!("{}m", seconds / 60),
        120..600 => format!("{}m{}s", seconds / 60, seconds % 60),
        600..10_800 => format!("{}m", seconds / 60),
        10_800..28_800 if seconds / 60 % 60 == 0 => format!("{}h", seconds / 3600),
        10_800..28_800 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        28_800..172_800 => format!("{}h", seconds / 3600),
        172_800..691_200 if seconds / 3600 % 24 == 0 => format!("{}d", seconds / 86_400),
        172_800..691_200 => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
        691_200..63_072_000 => format!("{}d", seconds / 86_400),
        63_072_000..252_288_000 if seconds / 86_400 % 365 == 0 => {
            format!("{}y", seconds / 31_536_000)
        }
        63_072_000..252_288_000 => {
            format!("{}y{}d", seconds / 31_536_000, seconds / 86_400 % 365)
        }
        _ => format!("{}y", seconds / 31_536_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let now: Timestamp = "2030-01-10T00:00:00Z".parse().unwrap();
        for (since, shown) in [
            ("2030-01-09T23:59:55Z", "5s"),
            ("2030-01-09T23:56:40Z", "3m20s"),
            ("2030-01-09T23:30:00Z", "30m"),
            ("2030-01-09T20:00:00Z", "4h"),
            ("2030-01-07T00:00:00Z", "3d"),
            ("2029-12-01T00:00:00Z", "40d"),
            ("nonsense", "<unknown>"),
        ] {
            assert_eq!(age(since, now), shown, "{since}");
        }
    }
}

//! A result: the rows of a report as CSV and JSON, in a `ConfigMap`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};

use crate::account::Row;

/// Where numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Requests,
    RequestsAndUse,
}

impl Source {
    /// As a report says it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestsAndUse => "requests and use",
        }
    }
}

/// A column: its name, its value, and how many of its units are one.
type Column = (&'static str, fn(&Row) -> u128, u128);

const REQUESTS: [Column; 4] = [
    ("cpu_request_core_seconds", |row| row.cpu, 1_000_000),
    ("memory_request_byte_seconds", |row| row.memory, 1000),
    ("volume_request_byte_seconds", |row| row.volume, 1000),
    ("estimated_seconds", |row| row.estimated, 1000),
];

const USE: [Column; 2] = [
    ("cpu_use_core_seconds", |row| row.used_cpu, 1_000_000),
    ("memory_use_byte_seconds", |row| row.used_memory, 1000),
];

/// A result.
pub(crate) struct Result<'a> {
    pub(crate) report: &'a str,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) source: Source,
    pub(crate) rows: &'a BTreeMap<String, Row>,
}

impl Result<'_> {
    fn columns(&self) -> impl Iterator<Item = Column> {
        let used = (self.source == Source::RequestsAndUse).then_some(USE);
        REQUESTS.into_iter().chain(used.into_iter().flatten())
    }

    /// The name of its `ConfigMap`.
    pub(crate) fn name(&self) -> String {
        name_of(self.report, self.start)
    }

    fn csv(&self) -> String {
        let mut text = "period_start,period_end,row".to_owned();
        for (name, ..) in self.columns() {
            let _ = write!(text, ",{name}");
        }
        text.push('\n');
        for (name, row) in self.rows {
            let _ = write!(text, "{},{},{}", self.start, self.end, field(name));
            for (_, value, one) in self.columns() {
                let _ = write!(text, ",{}", decimal(value(row), one));
            }
            text.push('\n');
        }
        text
    }

    fn json(&self) -> String {
        let rows = self.rows.iter().map(|(name, row)| {
            let mut object = Map::from_iter([("row".to_owned(), json!(name))]);
            for (name, value, one) in self.columns() {
                // Text: a number would be read with 53 bits.
                object.insert(name.to_owned(), json!(decimal(value(row), one)));
            }
            Value::Object(object)
        });
        let report = json!({
            "report": self.report,
            "periodStart": self.start,
            "periodEnd": self.end,
            "source": self.source.text(),
            "rows": rows.collect::<Vec<_>>(),
        });
        format!("{report:#}\n")
    }

    /// The `ConfigMap` with it.
    pub(crate) fn map(&self, namespace: &str, owner: OwnerReference) -> ConfigMap {
        let data = [("report.csv", self.csv()), ("report.json", self.json())];
        let mut map = ConfigMap::default();
        map.metadata.name = Some(self.name());
        map.metadata.namespace = Some(namespace.to_owned());
        map.metadata.owner_references = Some(vec![owner]);
        map.data = Some(data.map(|(name, text)| (name.to_owned(), text)).into());
        map
    }
}

/// The name of the `ConfigMap` with the result of a report for the time that began then.
pub(crate) fn name_of(report: &str, start: Timestamp) -> String {
    format!("{report}-{}", start.strftime("%Y%m%dt%H%M%Sz"))
}

/// A field of CSV.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A number of which `one` are one, exactly.
fn decimal(value: u128, one: u128) -> String {
    let width = one.ilog10() as usize;
    let text = format!("{}.{:0width$}", value / one, value % one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_and_short() {
        assert_eq!(decimal(0, 1000), "0");
        assert_eq!(decimal(1_500, 1000), "1.5");
        assert_eq!(decimal(360_000_000, 1_000_000), "360");
        assert_eq!(decimal(1, 1_000_000), "0.000001");
        assert_eq!(
            decimal(u128::from(u64::MAX) * 1000, 1000),
            u64::MAX.to_string()
        );
    }

    #[test]
    fn name_with_a_comma_is_one_field() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}

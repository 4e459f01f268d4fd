//! Which cells (operation × kind × status code) the sequences have reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use crate::case::Step;
use crate::empty::Cell;
use crate::normalise::Normal;

/// How often each status code was answered, by kind and operation.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<(String, String), BTreeMap<u16, usize>>);

impl Coverage {
    pub(crate) fn add(&mut self, steps: &[Step], answers: &[Normal]) {
        for (step, answer) in steps.iter().zip(answers) {
            let mut words = step.name.split(' ').skip(1);
            let (Some(operation), Some(plural)) = (words.next(), words.next()) else {
                continue;
            };
            // What ends a watch is no operation of the sequence.
            if operation == "end" {
                continue;
            }
            let operation = match (
                operation,
                step.content_type.as_deref(),
                step.method.as_str(),
            ) {
                ("status" | "scale", Some(patch), _) => format!("{operation} {}", short(patch)),
                ("status" | "scale", None, method) => format!("{operation} {method}"),
                _ => operation.to_owned(),
            };
            let cell = self.0.entry((operation, plural.to_owned())).or_default();
            *cell.entry(answer.status).or_default() += 1;
        }
    }
}

impl Coverage {
    /// Adds what earlier runs have reached, and writes down the sum for the next.
    pub(crate) fn accumulate(&mut self, path: &Path) {
        if let Ok(text) = std::fs::read_to_string(path) {
            let earlier: Vec<(String, String, u16, usize)> = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()));
            for (operation, kind, status, count) in earlier {
                let cell = self.0.entry((operation, kind)).or_default();
                *cell.entry(status).or_default() += count;
            }
        }
        let cells = self.0.iter().flat_map(|((operation, kind), statuses)| {
            let cell = move |(status, count)| (operation, kind, status, count);
            statuses.iter().map(cell)
        });
        let text = serde_json::to_string(&cells.collect::<Vec<_>>()).unwrap_or_default();
        std::fs::write(path, text)
            .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
    }
}

fn short(patch: &str) -> &str {
    match patch {
        "application/merge-patch+json" => "merge",
        "application/json-patch+json" => "json-patch",
        "application/apply-patch+yaml" => "apply",
        _ => "strategic",
    }
}

impl Coverage {
    /// The cells of status codes that an operation was answered with for some kinds and not for
    /// others.
    pub(crate) fn empty(&self) -> Vec<Cell> {
        let kinds: BTreeSet<&String> = self.0.keys().map(|(_, kind)| kind).collect();
        let mut seen: BTreeMap<&String, BTreeSet<u16>> = BTreeMap::new();
        for ((operation, _), statuses) in &self.0 {
            seen.entry(operation).or_default().extend(statuses.keys());
        }
        let mut empty = Vec::new();
        for (operation, statuses) in seen {
            for (kind, status) in kinds
                .iter()
                .flat_map(|kind| statuses.iter().map(move |status| (*kind, *status)))
            {
                let cell = self.0.get(&(operation.clone(), kind.clone()));
                if cell.is_none_or(|cell| !cell.contains_key(&status)) {
                    empty.push((operation.clone(), kind.clone(), status));
                }
            }
        }
        empty
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: usize = self.0.values().map(BTreeMap::len).sum();
        writeln!(
            out,
            "coverage: {cells} cells of operation x kind x status code"
        )?;
        let mut operations: BTreeMap<&str, BTreeMap<u16, (usize, usize)>> = BTreeMap::new();
        for ((operation, _), statuses) in &self.0 {
            let row = operations.entry(operation).or_default();
            for (status, count) in statuses {
                let entry = row.entry(*status).or_default();
                entry.0 += 1;
                entry.1 += count;
            }
        }
        for (operation, statuses) in operations {
            write!(out, "  {operation:<18}")?;
            for (status, (kinds, count)) in statuses {
                write!(out, "  {status}: {count} ({kinds} kinds)")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

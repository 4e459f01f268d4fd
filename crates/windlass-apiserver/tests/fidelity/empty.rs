//! Cells of the coverage that were not reached, explained by rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

/// Why some cells stay empty.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    why: String,
    /// A pattern for the operation; any when not said.
    #[serde(default)]
    operation: String,
    /// The status codes meant; any when not said.
    #[serde(default)]
    status: BTreeSet<u16>,
    /// The kinds meant; any when not said.
    #[serde(default)]
    kinds: BTreeSet<String>,
}

/// A cell: operation, kind and status code.
pub(crate) type Cell = (String, String, u16);

/// Tells how many of the empty cells each rule explains, and which none does.
pub(crate) fn explain(path: &Path, empty: &[Cell]) -> String {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    let rules: Vec<Rule> = serde_saphyr::from_str(&text)
        .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()));
    let patterns: Vec<Regex> = rules
        .iter()
        .map(|rule| Regex::new(&rule.operation).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let mut explained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rest = Vec::new();
    for cell in empty {
        let (operation, kind, status) = cell;
        let fits = |(rule, pattern): &(&Rule, &Regex)| {
            pattern.is_match(operation)
                && (rule.status.is_empty() || rule.status.contains(status))
                && (rule.kinds.is_empty() || rule.kinds.contains(kind))
        };
        match rules.iter().zip(&patterns).find(fits) {
            Some((rule, _)) => *explained.entry(&rule.why).or_default() += 1,
            None => rest.push(format!("{operation} {kind} {status}")),
        }
    }
    let mut out = format!("{} empty cells\n", empty.len());
    for (why, count) in explained {
        let _ = writeln!(out, "  {count:>4}: {why}");
    }
    let _ = write!(out, "  {:>4} unexplained: {}", rest.len(), rest.join(", "));
    out
}

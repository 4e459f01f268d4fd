//! Which recorded steps show which rule, counted.
//!
//! `rules.yaml` names for every rule of the server's design, and `admission.yaml` for every part of
//! admission, the cases, and of them the steps, that show it. The test prints
//! how many there are, fails when a rule has fewer than it must, and when a named case, step or test
//! is not there (any more). Steps that only prepare others (`setup`) are not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::case::Case;
use crate::{CASES, folder};

/// One rule and what shows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The rule, in a few words.
    about: String,
    /// How many recorded steps it must have.
    least: usize,
    #[serde(default)]
    recorded: BTreeMap<String, Steps>,
    /// Tests of what cannot be recorded, written from Kubernetes' source: `file: [tests]`.
    #[serde(default)]
    from_source: BTreeMap<String, Vec<String>>,
}

/// Which steps of a case count.
#[derive(Deserialize)]
#[serde(untagged)]
enum Steps {
    /// `all`: every step that is not set-up.
    Whole(Whole),
    /// All but the named ones, which only prepare them.
    Except {
        except: BTreeSet<String>,
    },
    These(BTreeSet<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Whole {
    All,
}

impl Steps {
    /// The steps of `case` that count.
    fn of(&self, name: &str, case: &Case) -> BTreeSet<String> {
        let known: BTreeSet<String> = case.steps.iter().map(|step| step.name.clone()).collect();
        let setup = |name: &String| {
            case.steps
                .iter()
                .any(|step| step.setup && step.name == *name)
        };
        let check = |named: &BTreeSet<String>| {
            let unknown: Vec<_> = named.difference(&known).collect();
            assert!(
                unknown.is_empty(),
                "rules.yaml: {name} has no steps {unknown:?}"
            );
        };
        match self {
            Self::Whole(Whole::All) => known.into_iter().filter(|step| !setup(step)).collect(),
            Self::Except { except } => {
                check(except);
                let counts = |step: &String| !setup(step) && !except.contains(step);
                known.into_iter().filter(counts).collect()
            }
            Self::These(these) => {
                check(these);
                these.clone()
            }
        }
    }
}

/// Counts what shows each rule of a file, prints it, and says which rules have too little.
fn count<Key: Ord + Display + DeserializeOwned>(file: &str) {
    let text = std::fs::read_to_string(folder().join(file))
        .unwrap_or_else(|error| panic!("reading {file}: {error}"));
    let rules: BTreeMap<Key, Rule> =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("parsing {file}: {error}"));
    let mut short = Vec::new();
    println!("rule  recorded  from source  about");
    for (number, rule) in &rules {
        let mut recorded = 0;
        for (name, steps) in &rule.recorded {
            assert!(
                CASES.contains(&name.as_str()),
                "{file}: there is no case {name}"
            );
            let case = Case::read(&folder().join("cases").join(format!("{name}.yaml")));
            recorded += steps.of(name, &case).len();
        }
        let mut from_source = 0;
        for (source, tests) in &rule.from_source {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
            let code = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{file}: reading {source}: {error}"));
            for test in tests {
                assert!(
                    code.contains(&format!("fn {test}(")),
                    "{file}: {source} has no test {test}"
                );
            }
            from_source += tests.len();
        }
        println!(
            "{number:>4}  {recorded:>8}  {from_source:>11}  {}",
            rule.about
        );
        if recorded < rule.least {
            short.push(format!(
                "rule {number} has {recorded} of {} recorded steps",
                rule.least
            ));
        }
    }
    assert!(short.is_empty(), "{}", short.join("\n"));
}

#[test]
fn every_rule_has_its_recorded_steps() {
    count::<u32>("rules.yaml");
}

#[test]
fn every_part_of_admission_has_its_recorded_steps() {
    count::<u32>("admission.yaml");
}

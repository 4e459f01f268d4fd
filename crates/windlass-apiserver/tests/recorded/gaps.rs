//! The known gaps: steps on which ours does not answer as the real server does yet.
//!
//! `gaps.yaml` lists reasons; per reason where in the answer it shows (parts of the path, or
//! anywhere when not said) and the steps that differ for it, by case. A difference that no reason
//! of its step explains fails the test. So does a reason that explains nothing in a step it lists:
//! the list only shrinks.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::compare::Difference;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gap {
    why: String,
    #[serde(default)]
    at: Vec<String>,
    steps: BTreeMap<String, Vec<String>>,
}

impl Gap {
    fn lists(&self, case: &str, step: &str) -> bool {
        self.steps
            .get(case)
            .is_some_and(|steps| steps.iter().any(|listed| listed == step))
    }

    fn explains(&self, line: &str) -> bool {
        let path = line.split(": ").next().unwrap_or_default();
        self.at.is_empty() || self.at.iter().any(|part| path.contains(part.as_str()))
    }
}

/// Passes when the listed gaps explain every difference, and each of them explains some.
pub(crate) fn judge(path: &Path, case: &str, differences: &[Difference]) -> Result<(), String> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    let gaps: Vec<Gap> = serde_saphyr::from_str(&text)
        .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()));
    verdict(&gaps, case, differences)
}

fn verdict(gaps: &[Gap], case: &str, differences: &[Difference]) -> Result<(), String> {
    let mut report = Vec::new();
    for Difference { step, lines } in differences {
        let known: Vec<_> = gaps.iter().filter(|gap| gap.lists(case, step)).collect();
        let mut unknown = lines
            .iter()
            .filter(|line| !known.iter().any(|gap| gap.explains(line)))
            .peekable();
        if unknown.peek().is_some() {
            report.push(format!("  {step}"));
            report.extend(unknown.map(|line| format!("    {line}")));
        }
    }
    for gap in gaps {
        for step in gap.steps.get(case).into_iter().flatten() {
            let of_step = differences.iter().filter(|found| found.step == *step);
            if !of_step
                .flat_map(|found| &found.lines)
                .any(|line| gap.explains(line))
            {
                report.push(format!(
                    "  {step}\n    take it off gaps.yaml, it agrees now: {}",
                    gap.why
                ));
            }
        }
    }
    if report.is_empty() {
        Ok(())
    } else {
        Err(report.join("\n"))
    }
}

#[test]
fn a_gap_must_be_listed_and_must_exist() {
    let differs = |line: &str| {
        [Difference {
            step: "get".into(),
            lines: vec![line.into()],
        }]
    };
    let gap = [Gap {
        why: "not there yet".into(),
        at: vec!["/spec".into()],
        steps: BTreeMap::from([("case".to_owned(), vec!["get".to_owned()])]),
    }];
    assert!(verdict(&gap, "case", &differs("body/spec/a: real 1, ours 2")).is_ok());
    assert!(verdict(&[], "case", &[]).is_ok());
    let report = |gaps: &[Gap], found: &[Difference]| verdict(gaps, "case", found).unwrap_err();
    assert!(report(&[], &differs("body/spec/a: real 1, ours 2")).contains("real 1, ours 2"));
    assert!(report(&gap, &differs("body/status: real 1, ours 2")).contains("real 1, ours 2"));
    assert!(report(&gap, &[]).contains("take it off"));
}

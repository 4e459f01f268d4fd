//! The known gaps: steps on which ours does not answer as the real server does yet.
//!
//! `gaps.yaml` maps a case to its steps, and a step to the reason. The list may only shrink: a step
//! that agrees must be taken off it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::compare::Difference;

type Gaps = BTreeMap<String, BTreeMap<String, String>>;

/// Passes when exactly the listed steps differ; otherwise says what to look at.
pub(crate) fn judge(path: &Path, case: &str, differences: &[Difference]) -> Result<(), String> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    let gaps: Gaps = serde_saphyr::from_str(&text)
        .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()));
    verdict(gaps.get(case).unwrap_or(&BTreeMap::new()), differences)
}

fn verdict(listed: &BTreeMap<String, String>, differences: &[Difference]) -> Result<(), String> {
    let mut report = Vec::new();
    for difference in differences {
        if !listed.contains_key(&difference.step) {
            report.push(format!("  {}", difference.step));
            report.extend(difference.lines.iter().map(|line| format!("    {line}")));
        }
    }
    for step in listed.keys() {
        if !differences
            .iter()
            .any(|difference| difference.step == *step)
        {
            report.push(format!(
                "  {step}\n    agrees, or is gone: take it off gaps.yaml"
            ));
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
    let differs = |step: &str| Difference {
        step: step.into(),
        lines: vec!["body/a: real 1, ours 2".into()],
    };
    let listed = BTreeMap::from([("get".to_owned(), "not there yet".to_owned())]);
    assert!(verdict(&listed, &[differs("get")]).is_ok());
    assert!(verdict(&BTreeMap::new(), &[]).is_ok());
    assert!(
        verdict(&BTreeMap::new(), &[differs("get")])
            .unwrap_err()
            .contains("real 1, ours 2")
    );
    assert!(verdict(&listed, &[]).unwrap_err().contains("take it off"));
}

//! Every operator shows that it needs each of its rights.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files in a folder and below it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_operator_shows_that_it_needs_each_of_its_rights() {
    let operators = Path::new(env!("CARGO_MANIFEST_DIR")).join("../operators");
    let mut seen = 0;
    for operator in fs::read_dir(operators).expect("operators") {
        let operator = operator.expect("an operator").path();
        let shows = sources(&operator.join("tests")).iter().any(|path| {
            let text = fs::read_to_string(path).expect("a test");
            text.contains(".every_right_is_needed(")
        });
        assert!(
            shows,
            "no test of {} calls TestCluster::every_right_is_needed",
            operator.display()
        );
        seen += 1;
    }
    assert!(seen > 0);
}

//! The recorded part: of each answer of the real server its status and a digest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::normalise::Normal;

/// One word per answer: `201:8f3a12cd`.
pub(crate) fn digests(answers: &[Normal]) -> Vec<String> {
    let digest = |answer: &Normal| {
        let text = serde_json::to_string(answer).unwrap_or_default();
        // FNV-1a: not against an adversary, only against a difference.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!(
            "{}:{:08x}",
            answer.status,
            (hash >> 32) ^ (hash & 0xffff_ffff)
        )
    };
    answers.iter().map(digest).collect()
}

pub(crate) fn write(path: &Path, found: &BTreeMap<usize, Vec<String>>) {
    let mut text = String::new();
    for (number, digests) in found {
        let _ = writeln!(text, "{number} {}", digests.join(" "));
    }
    std::fs::write(path, text)
        .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

pub(crate) fn read(path: &Path) -> BTreeMap<usize, Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| {
        panic!(
            "reading {}: {error}; `make record` writes it",
            path.display()
        )
    });
    let parse = |line: &str| {
        let (number, digests) = line.split_once(' ')?;
        Some((
            number.parse().ok()?,
            digests.split(' ').map(str::to_owned).collect(),
        ))
    };
    text.lines().filter_map(parse).collect()
}

/// The first answer that is another one than recorded.
pub(crate) fn difference(expected: &[String], answers: &[Normal]) -> Option<String> {
    let found = digests(answers);
    if found.len() != expected.len() {
        return Some(format!(
            "{} answers, {} recorded: the sequences have changed",
            found.len(),
            expected.len()
        ));
    }
    let at = (0..found.len()).find(|at| found[*at] != expected[*at])?;
    let answer = &answers[at];
    Some(format!(
        "step `{}`: recorded {}, ours {} {}",
        answer.step, expected[at], found[at], answer.body
    ))
}

/// The numbers of a file, one a line.
pub(crate) fn numbers(path: &Path) -> std::collections::BTreeSet<usize> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

//! Nothing outside of this folder asks which kind a resource is of.

use std::path::{Path, PathBuf};

/// How such a question is written.
const QUESTIONS: &[&str] = &[
    ".is(\"",
    "resource.is(",
    "plural ==",
    "plural !=",
    "plural.as_str(), \"",
    "plural.as_str() {",
    "plural.as_str())",
    "plural.ends_with(",
    "match plural",
    "resource.kind == \"",
];

/// Files that know resources by name because something else than a resource names them.
const OTHERS: &[&str] = &[
    // The rules of a webhook name resources by their text.
    "webhook/matching.rs",
];

/// How the answers to such a question are written: arms of a match on the resource.
fn answers() -> Vec<String> {
    let resources = crate::registry::facts::get().resources.iter();
    let plurals = resources.map(|resource| resource.plural.as_str());
    plurals
        .flat_map(|plural| {
            [
                format!("\"{plural}\" =>"),
                format!("\"{plural}\" | \""),
                format!("(\"{plural}\", \""),
            ]
        })
        .collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn only_kinds_ask_which_kind_a_resource_is_of() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 200, "only {} files found", files.len());
    let answers = answers();
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).expect("below the sources");
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("kinds/") || OTHERS.contains(&name.as_str()) {
            continue;
        }
        if name.starts_with("tests/") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source can be read");
        for (number, line) in text.lines().enumerate() {
            let asks = QUESTIONS.iter().any(|question| line.contains(question));
            if asks || answers.iter().any(|answer| line.contains(answer)) {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

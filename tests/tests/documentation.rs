//! What the documentation says about the code must be there.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is in the repository")
        .to_owned()
}

fn files_below(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder)
        .expect("a folder can be read")
        .flatten()
    {
        let path = entry.path();
        let hidden =
            entry.file_name().to_string_lossy().starts_with('.') || entry.file_name() == "target";
        if hidden {
            continue;
        }
        if path.is_dir() {
            found.push(format!("{}/", path.display()));
            files_below(&path, found);
        } else {
            found.push(path.display().to_string());
        }
    }
}

/// The words in backticks that name a file or a folder.
fn named_paths(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let file = Path::new(word)
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "json");
        !word.contains(' ') && (file || word.ends_with('/'))
    };
    quoted.filter(is_path).collect()
}

#[test]
fn every_file_the_architecture_page_names_exists() {
    let mut files = Vec::new();
    files_below(&root(), &mut files);
    let page =
        std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page is there");
    let named = named_paths(&page);
    assert!(
        named.len() > 30,
        "only {} names found: the page or this test has changed its form",
        named.len()
    );
    let missing: Vec<&str> = named
        .into_iter()
        .filter(|name| !files.iter().any(|file| file.ends_with(&format!("/{name}"))))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/architecture.md names what is not there: {missing:?}"
    );
}

#[test]
fn the_readme_begins_with_exactly_two_commands() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README is there");
    let block = readme.split("```").nth(1).expect("a fenced block");
    let commands: Vec<&str> = block
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        assert!(
            root().join(command).is_file(),
            "{command} is not a script of this repository"
        );
    }
}

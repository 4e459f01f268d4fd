//! The code of the guides is code that is compiled and tested elsewhere: each block occurs, line by
//! line, in one of the programs the guides are about.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the guides' code comes from.
const SOURCES: [&str; 3] = ["examples/pages", "bench/framework/src", "bench/peers"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below a folder that ends so.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|ext| ext == "rs" || ext == "go")
        {
            found.push(path);
        }
    }
}

/// The blocks of a guide in these languages.
fn blocks(guide: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in guide.lines() {
        match (&mut block, line) {
            (None, "```rust" | "```go") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some(block), line) => {
                block.push_str(line);
                block.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_code_of_the_guides_is_code_that_is_tested() {
    let mut sources = Vec::new();
    for folder in SOURCES {
        files(&root().join(folder), &mut sources);
    }
    let sources: Vec<String> = sources
        .iter()
        .map(|path| fs::read_to_string(path).expect("a source"))
        .collect();
    let mut checked = 0;
    for guide in ["docs/guide.md", "docs/coming-from.md"] {
        let text = fs::read_to_string(root().join(guide)).expect("a guide");
        for block in blocks(&text) {
            assert!(
                sources.iter().any(|source| source.contains(&block)),
                "{guide} has code that is nowhere in {SOURCES:?}:\n{block}"
            );
            checked += 1;
        }
    }
    assert!(checked > 15, "only {checked} blocks");
}

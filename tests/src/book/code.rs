//! Pieces of code, and whether they occur in what is compiled.
//!
//! A piece occurs in a source if its lines follow each other there, however far both are indented.
//! The sources are the lines of programs, and the examples in the documentation of Rust items,
//! which are compiled as tests (without their hidden lines).

use std::{fs, path::Path};

use super::root;

/// The lines of a source; an empty name stands for documentation.
pub struct Source(Vec<String>);

/// Everything that is compiled of these files and folders.
pub fn sources(paths: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for path in paths {
        collect(&root().join(path), &mut found);
    }
    found
}

fn collect(path: &Path, found: &mut Vec<Source>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder can be read");
        for entry in entries
            .flatten()
            .filter(|entry| entry.file_name() != "target")
        {
            collect(&entry.path(), found);
        }
        return;
    }
    let kind = path.extension().unwrap_or_default();
    let known = ["rs", "go", "toml", "py", "js", "java"];
    if !known.iter().any(|known| kind == *known) {
        return;
    }
    let text = fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    found.push(Source(text.lines().map(str::to_owned).collect()));
    if kind == "rs" {
        found.push(documented(&text));
    }
}

/// The examples in the documentation of a Rust file that are compiled.
fn documented(text: &str) -> Source {
    let mut lines = Vec::new();
    let mut compiled = None;
    for line in text.lines() {
        let line = line.trim_start();
        let comment = ["///", "//!"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let Some(comment) = comment else {
            compiled = None;
            continue;
        };
        let comment = comment.strip_prefix(' ').unwrap_or(comment);
        if let Some(info) = comment.strip_prefix("```") {
            compiled = match compiled {
                Some(_) => None,
                None => Some(["", "no_run", "rust"].contains(&info)),
            };
            lines.push(String::new());
            continue;
        }
        let hidden = comment.trim() == "#" || comment.trim_start().starts_with("# ");
        if compiled == Some(true) && !hidden {
            lines.push(comment.to_owned());
        }
    }
    Source(lines)
}

impl Source {
    /// Whether the piece occurs.
    pub fn contains(&self, piece: &str) -> bool {
        let lines: Vec<String> = piece.lines().map(str::to_owned).collect();
        let piece = dedented(&lines);
        let first = piece.first().map(|line| line.trim_start());
        let windows = self.0.windows(piece.len().max(1));
        windows
            .filter(|window| Some(window[0].trim_start()) == first)
            .any(|window| dedented(window) == piece)
    }

    /// Whether a word occurs.
    pub fn has_word(&self, word: &str) -> bool {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let mut lines = self.0.iter();
        lines.any(|line| line.split(|letter| !is_part(letter)).any(|one| one == word))
    }
}

/// The lines without the indentation that all of them have.
fn dedented(lines: &[String]) -> Vec<&str> {
    let indented = lines.iter().filter(|line| !line.trim().is_empty());
    let least = indented
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let least = least.unwrap_or(0);
    lines
        .iter()
        .map(|line| line.get(least..).unwrap_or(""))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source(text.lines().map(str::to_owned).collect())
    }

    #[test]
    fn piece_is_found_however_it_is_indented() {
        let source = source("fn a() {\n    if b {\n        c();\n    }\n}");
        assert!(source.contains("if b {\n    c();\n}\n"));
        assert!(!source.contains("if b {\nc();\n}\n"));
        assert!(!source.contains("if b {\n}\n"));
    }

    #[test]
    fn only_examples_that_are_compiled_count() {
        let text = "/// Text.\n///\n/// ```\n/// # hidden();\n/// shown();\n/// ```\n/// ```text\n/// not();\n/// ```\nfn f() {}\n";
        let source = documented(text);
        assert!(source.contains("shown();\n"));
        assert!(!source.contains("not();\n"));
        assert!(!source.contains("# hidden();\n"));
    }
}

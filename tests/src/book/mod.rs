//! The book in `docs/`, as its tests read it: pages, blocks of code, inline code.

pub mod api;
pub mod code;
pub mod commands;
pub mod links;

use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

/// What a page says about where its code comes from: folders and files, from the root.
const CODE: &str = "<!-- code: ";

/// The repository.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ is in the repository").into()
}

/// A Markdown file of the repository.
pub struct Page {
    /// Its path from the root, such as `docs/tutorial.md`.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// A fenced block.
pub struct Block {
    /// What stands behind the fence: the language, and perhaps more.
    pub info: String,
    /// The lines in it.
    pub text: String,
    /// The line of the fence, from 1.
    pub line: usize,
}

/// A piece of inline code.
#[derive(Debug, PartialEq, Eq)]
pub struct Span {
    /// The code.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
    /// The head of its column, if it is in a table.
    pub column: Option<String>,
    /// Whether it is in a table with a column for Windlass, in another column.
    pub foreign: bool,
}

impl Page {
    /// A file of the repository.
    pub fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path));
        Self {
            text: text.unwrap_or_else(|error| panic!("cannot read {path}: {error}")),
            path: path.to_owned(),
        }
    }

    /// Where its code comes from; nothing if the page does not say.
    pub fn sources(&self) -> Vec<&str> {
        let said = self.text.lines().find_map(|line| line.strip_prefix(CODE));
        let said = said.and_then(|line| line.strip_suffix("-->"));
        said.unwrap_or_default().split_whitespace().collect()
    }

    /// Its fenced blocks.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (nth, line) in self.text.lines().enumerate() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    open = Some(Block {
                        info: info.to_owned(),
                        text: String::new(),
                        line: nth + 1,
                    });
                }
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", self.path);
        blocks
    }

    /// The text without its blocks, line by line.
    pub fn prose(&self) -> Vec<&str> {
        let mut fenced = false;
        let lines = self.text.lines().map(|line| {
            let fence = line.starts_with("```");
            fenced ^= fence;
            if fenced || fence { "" } else { line }
        });
        lines.collect()
    }

    /// Its inline code.
    pub fn spans(&self) -> Vec<Span> {
        let code = Regex::new("`([^`]+)`").expect("a pattern");
        let mut heads: Option<Vec<String>> = None;
        let mut spans = Vec::new();
        for (nth, line) in self.prose().into_iter().enumerate() {
            let Some(row) = line.strip_prefix('|') else {
                heads = None;
                spans.extend(code.captures_iter(line).map(|found| Span {
                    text: found[1].to_owned(),
                    line: nth + 1,
                    column: None,
                    foreign: false,
                }));
                continue;
            };
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').collect();
            let named = |cell: &&str| cell.trim().to_owned();
            let heads = heads.get_or_insert_with(|| cells.iter().map(named).collect());
            let compares = heads.iter().any(|head| head == "Windlass");
            for (nth_cell, cell) in cells.iter().enumerate() {
                let head = heads.get(nth_cell).cloned().unwrap_or_default();
                spans.extend(code.captures_iter(cell).map(|found| Span {
                    text: found[1].to_owned(),
                    line: nth + 1,
                    foreign: compares && head != "Windlass",
                    column: Some(head.clone()),
                }));
            }
        }
        spans
    }
}

/// The Markdown files below a folder, in order.
fn below(folder: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(root().join(folder)).expect("a folder can be read");
    for entry in entries.flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            below(&path, found);
        } else if Path::new(&path)
            .extension()
            .is_some_and(|kind| kind == "md")
        {
            found.push(path);
        }
    }
    found.sort();
}

/// Every page of the book, and its summary.
pub fn pages() -> Vec<Page> {
    let mut paths = Vec::new();
    below("docs", &mut paths);
    paths.iter().map(|path| Page::read(path)).collect()
}

/// The pages that explain, and the README: all but the reference and the walk-throughs, whose
/// commands and files have tests of their own.
pub fn explaining() -> Vec<Page> {
    let mut pages = pages();
    pages.push(Page::read("README.md"));
    pages.retain(|page| !page.sources().is_empty());
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page {
            path: "x.md".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn inline_code_of_a_table_knows_its_column() {
        let page = page("| Go | Windlass |\n| --- | --- |\n| `A` | `B` |\n\n`C`\n```\n`D`\n```\n");
        let spans = page.spans();
        let facts: Vec<_> = spans
            .iter()
            .map(|span| (span.text.as_str(), span.line, span.foreign))
            .collect();
        assert_eq!(facts, [("A", 3, true), ("B", 3, false), ("C", 5, false)]);
        assert_eq!(spans[1].column.as_deref(), Some("Windlass"));
    }

    #[test]
    fn block_has_its_language_and_its_lines() {
        let page = page("text\n```rust\nlet a = 1;\n```\n");
        let blocks = page.blocks();
        assert_eq!((blocks[0].info.as_str(), blocks[0].line), ("rust", 2));
        assert_eq!(blocks[0].text, "let a = 1;\n");
    }
}

//! What the documentation says about the code must be there.

use std::path::Path;

use windlass_tests::book::{Page, explaining, links::broken, pages, root};

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

/// Pages outside of the book that people read first.
const OTHERS: [&str; 4] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];

#[test]
fn every_link_leads_to_a_page_and_its_heading() {
    let pages: Vec<Page> = pages().into_iter().chain(OTHERS.map(Page::read)).collect();
    assert!(pages.len() > 40, "only {} pages", pages.len());
    let faults: Vec<String> = pages.iter().flat_map(broken).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_summary_of_the_book() {
    let summary = Page::read("docs/SUMMARY.md").text;
    for page in pages() {
        let name = page.path.trim_start_matches("docs/");
        let listed = name == "SUMMARY.md" || summary.contains(&format!("({name})"));
        assert!(listed, "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn every_file_that_a_page_names_by_its_whole_path_exists() {
    let whole = [
        "bench/",
        "crates/",
        "docs/",
        "examples/",
        "operators/",
        "scripts/",
        "tests/",
    ];
    let first = ["CONTRIBUTING.md", "docs/README.md"].map(Page::read);
    let (mut missing, mut checked) = (Vec::new(), 0);
    for page in explaining().into_iter().chain(first) {
        for span in page.spans() {
            let is_path = !span.text.contains([' ', '*', '{']);
            if !is_path || !whole.iter().any(|folder| span.text.starts_with(folder)) {
                continue;
            }
            checked += 1;
            if !root().join(&span.text).exists() {
                missing.push(format!("{}:{}: {}", page.path, span.line, span.text));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
    assert!(checked > 30, "only {checked} paths");
}

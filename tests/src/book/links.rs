//! Links of pages: to other pages and to headings in them.

use std::{collections::BTreeMap, path::Path};

use regex::Regex;

use super::{Page, root};

/// What is wrong with the links of a page, one sentence each.
pub fn broken(page: &Page) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut faults = Vec::new();
    for (nth, line) in page.prose().into_iter().enumerate() {
        for found in link.captures_iter(line) {
            let target = &found[1];
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if let Err(why) = resolve(page, target) {
                faults.push(format!("{}:{}: {target}: {why}", page.path, nth + 1));
            }
        }
        // What rustdoc would resolve is just text in a book.
        if let Some(at) = line
            .find("`]")
            .filter(|at| !line[at + 2..].starts_with(['(', '[']))
        {
            let name = &line[..at];
            let name = &name[name.rfind('`').map_or(0, |tick| tick + 1)..];
            faults.push(format!(
                "{}:{}: [`{name}`] has no target",
                page.path,
                nth + 1
            ));
        }
    }
    faults
}

fn resolve(page: &Page, target: &str) -> Result<(), String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let path = match file {
        "" => page.path.clone(),
        file => joined(folder, file).ok_or("leads out of the repository")?,
    };
    if !root().join(&path).exists() {
        return Err(format!("there is no {path}"));
    }
    let in_book = |path: &str| path.starts_with("docs/");
    if in_book(&page.path) && !in_book(&path) {
        return Err("leads out of the book: name the path instead".to_owned());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let known = anchors(&Page::read(&path));
    if known.iter().any(|known| known == anchor) {
        return Ok(());
    }
    Err(format!("{path} has no heading #{anchor}, only {known:?}"))
}

/// The path from the root; none if there is none.
fn joined(folder: &Path, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder
        .to_str()?
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a page's headings, as mdBook and GitHub make them.
pub fn anchors(page: &Page) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for line in page.prose() {
        let text = line.trim_start_matches('#');
        if text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let lower = text.trim().to_lowercase();
        let kept = lower
            .chars()
            .filter(|one| one.is_alphanumeric() || " -_".contains(*one));
        let anchor: String = kept.map(|one| if one == ' ' { '-' } else { one }).collect();
        let times = seen.entry(anchor.clone()).or_default();
        found.push(match *times {
            0 => anchor,
            nth => format!("{anchor}-{nth}"),
        });
        *times += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchor_is_made_of_the_letters_of_a_heading() {
        let text = "# A `kubectl apply`, to the end\n## Twice\n## Twice\n```\n# no heading\n```\n";
        let page = Page {
            path: "x.md".to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            anchors(&page),
            ["a-kubectl-apply-to-the-end", "twice", "twice-1"]
        );
    }

    #[test]
    fn link_to_a_missing_page_or_heading_is_broken() {
        let text = "[a](docs/nothing.md) [b](README.md#nothing) [c](README.md) [`D`]\n";
        let page = Page {
            path: "CONTRIBUTING.md".to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(broken(&page).len(), 3, "{:?}", broken(&page));
    }
}

//! What the book shows is what there is: its code is compiled and tested elsewhere, its commands
//! exist, and so do the names it uses.

use regex::Regex;
use windlass_tests::book::{
    Page, Span,
    api::{Api, imports},
    code::sources,
    commands::Commands,
    explaining, pages,
};

/// Fails with everything that is wrong, and if too little was looked at to mean anything.
fn check(faults: &[String], checked: usize, least: usize) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    assert!(
        checked >= least,
        "only {checked} were checked: did the form of the pages change?"
    );
}

#[test]
fn code_of_the_book_is_a_piece_of_what_is_compiled() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for page in explaining() {
        let sources = sources(&page.sources());
        for block in page.blocks() {
            let at = format!("{}:{}", page.path, block.line);
            match block.info.as_str() {
                "rust" | "go" | "toml" | "python" | "javascript" | "java" => {
                    checked += 1;
                    if !sources.iter().any(|source| source.contains(&block.text)) {
                        let from = page.sources().join(" ");
                        faults.push(format!("{at}: is not in {from}:\n{}", block.text));
                    }
                }
                "sh" | "console" | "text" | "yaml" => {}
                other => faults.push(format!("{at}: a block in {other} cannot be checked")),
            }
        }
    }
    check(&faults, checked, 50);
}

#[test]
fn yaml_of_the_book_can_be_read() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for block in page.blocks() {
            if block.info.split(' ').next() != Some("yaml") {
                continue;
            }
            checked += 1;
            let read = serde_saphyr::from_multiple::<serde_json::Value>(&block.text);
            if let Err(error) = read {
                faults.push(format!("{}:{}: {error}", page.path, block.line));
            }
        }
    }
    check(&faults, checked, 1);
}

/// The files that walk-throughs write are built by `make scaffold`; what they import from us is
/// looked up in every run.
#[test]
fn files_of_the_walkthroughs_import_what_there_is() {
    let crates = [
        ("windlass", Api::of("windlass")),
        ("windlass_cluster", Api::of("windlass-cluster")),
    ];
    let (mut faults, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for block in page
            .blocks()
            .iter()
            .filter(|block| block.info.starts_with("rust "))
        {
            let at = format!("{}:{}", page.path, block.line);
            let file = match syn::parse_file(&block.text) {
                Ok(file) => file,
                Err(error) => {
                    faults.push(format!("{at}: {error}"));
                    continue;
                }
            };
            for (name, api) in &crates {
                for path in imports(&file, name) {
                    checked += 1;
                    if !api.resolves(&path) {
                        faults.push(format!("{at}: there is no {name}::{path}"));
                    }
                }
            }
        }
    }
    check(&faults, checked, 15);
}

#[test]
fn commands_of_the_book_exist() {
    let commands = Commands::known();
    let inline = Regex::new("^(windlass|make) [a-z]").expect("a pattern");
    let (mut faults, mut checked) = (Vec::new(), 0);
    let mut look = |at: String, fault: Option<String>| {
        checked += 1;
        faults.extend(fault.map(|fault| format!("{at}: {fault}")));
    };
    let readme = [
        "CONTRIBUTING.md",
        "docs/README.md",
        "docs/walkthroughs/README.md",
    ];
    for page in explaining().into_iter().chain(readme.map(Page::read)) {
        for block in page.blocks() {
            if !["sh", "console"].contains(&block.info.as_str()) {
                continue;
            }
            for line in block.text.lines() {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                look(
                    format!("{}:{}", page.path, block.line),
                    commands.fault(line),
                );
            }
        }
        for span in page.spans().iter().filter(|span| !span.foreign) {
            let at = format!("{}:{}", page.path, span.line);
            let words: Vec<&str> = span.text.split_whitespace().collect();
            if inline.is_match(&span.text) {
                look(at, commands.fault(&span.text));
            } else if words.len() > 1 && commands.is_of_operator(words[0]) {
                look(at, commands.of_operator(&words));
            }
        }
    }
    check(&faults, checked, 60);
}

/// The names of the framework and of the test cluster.
struct Names {
    windlass: Api,
    cluster: Api,
}

impl Names {
    fn has(&self, owner: &str, member: &str) -> bool {
        self.windlass.has(owner, member) || self.cluster.has(owner, member)
    }

    /// Whether a path such as `Owned::apply` exists. One of others does, except where `strict`.
    fn path(&self, owner: &str, member: &str, strict: bool) -> Result<(), String> {
        let ours = self.windlass.exports(owner) || self.cluster.exports(owner);
        // Every kind is watched in these ways: `Pod::selected_by`.
        let of_kinds = !ours && self.has("Watched", member);
        let exists = of_kinds || self.has(owner, member) || !(ours || strict);
        found(exists, &format!("{owner}::{member}"))
    }

    /// Whether what inline code names exists; none if it names nothing of ours.
    fn look_up(&self, span: &Span) -> Option<Result<(), String>> {
        let pattern = |text: &str| Regex::new(text).expect("a pattern");
        let strict = span.column.is_some();
        if let Some(parts) = pattern(r"^([A-Z]\w*)(?:::<.*>)?::(\w+)").captures(&span.text) {
            return Some(self.path(&parts[1], &parts[2], strict));
        }
        let import = r"^#?\[?(windlass(?:_cluster)?)::([\w:]+)";
        if let Some(parts) = pattern(import).captures(&span.text) {
            let api = if &parts[1] == "windlass" {
                &self.windlass
            } else {
                &self.cluster
            };
            let path = format!("{}::{}", &parts[1], &parts[2]);
            return Some(found(api.resolves(&parts[2]), &path));
        }
        let variables = r"^(cluster|ctx|declare|observed|review|verdict)\.(\w+)\(";
        if let Some(parts) = pattern(variables).captures(&span.text) {
            let owner = match &parts[1] {
                "cluster" => "TestCluster",
                "ctx" => "Context",
                "declare" => "Declare",
                "observed" => "Observed",
                "review" => "Review",
                _ => "Verdict",
            };
            return Some(self.path(owner, &parts[2], true));
        }
        let named = span.column.as_deref() == Some("Windlass");
        if named && pattern(r"^[A-Z]\w+$").is_match(&span.text) {
            let known = self.windlass.exports(&span.text) || self.cluster.exports(&span.text);
            return Some(found(known, &span.text));
        }
        None
    }
}

fn found(exists: bool, name: &str) -> Result<(), String> {
    if exists {
        return Ok(());
    }
    Err(format!("there is no {name}"))
}

#[test]
fn names_of_the_api_in_the_book_exist() {
    let names = Names {
        windlass: Api::of("windlass"),
        cluster: Api::of("windlass-cluster"),
    };
    let metrics = Page::read("docs/metrics.md");
    let word = Regex::new("^[a-z]+(_[a-z]+)+$").expect("a pattern");
    let (mut faults, mut checked) = (Vec::new(), 0);
    for page in explaining()
        .into_iter()
        .chain([Page::read("docs/metrics.md")])
    {
        let sources = sources(&page.sources());
        for span in page.spans().iter().filter(|span| !span.foreign) {
            let at = format!("{}:{}", page.path, span.line);
            if let Some(result) = names.look_up(span) {
                checked += 1;
                faults.extend(result.err().map(|fault| format!("{at}: {fault}")));
            } else if word.is_match(&span.text) {
                checked += 1;
                let known = names.windlass.has_anywhere(&span.text)
                    || names.cluster.has_anywhere(&span.text)
                    || metrics.text.contains(&format!("`{}`", span.text))
                    || sources.iter().any(|source| source.has_word(&span.text));
                if !known {
                    faults.push(format!("{at}: nothing is called {}", span.text));
                }
            }
        }
    }
    check(&faults, checked, 200);
}

#[test]
fn name_that_does_not_exist_is_a_fault() {
    let names = Names {
        windlass: Api::of("windlass"),
        cluster: Api::of("windlass-cluster"),
    };
    let fault = |text: &str, column: Option<&str>| {
        let span = Span {
            text: text.to_owned(),
            line: 1,
            column: column.map(str::to_owned),
            foreign: false,
        };
        names.look_up(&span).and_then(Result::err)
    };
    let table = Some("Windlass");
    assert_eq!(fault("Predicate::generation_changed()", table), None);
    assert_eq!(fault("Pod::selected_by(f)", table), None);
    assert_eq!(fault("cluster.settle()", None), None);
    assert_eq!(fault("#[windlass_cluster::test]", None), None);
    assert_eq!(fault("windlass::handle::Owned", None), None);
    assert_eq!(fault("Arc::clone", None), None);
    for (text, column) in [
        ("Predicate::generation()", table),
        ("Predicate::generation()", None),
        ("Owned::selected_by", None),
        ("Live", table),
        ("Arc::clone", table),
        ("cluster.nothing()", None),
        ("windlass::handle::Live", None),
    ] {
        assert!(fault(text, column).is_some(), "{text}");
    }
}

/// The page lists every series, and no other.
#[test]
fn metrics_of_the_book_are_those_of_the_framework() {
    let name = Regex::new(
        "\"((?:controller_runtime|workqueue|rest_client|leader_election|windlass|certwatcher)_[a-z_]+)\"",
    );
    let name = name.expect("a pattern");
    let served: Vec<String> = ["mod", "collector", "live", "request", "webhook"]
        .iter()
        .flat_map(|file| {
            let file = Page::read(&format!("crates/windlass/src/metrics/{file}.rs"));
            let code = file
                .text
                .split("#[cfg(test)]")
                .next()
                .unwrap_or_default()
                .to_owned();
            name.captures_iter(&code)
                .map(|found| found[1].to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let page = Page::read("docs/metrics.md").spans();
    let listed = page
        .iter()
        .filter(|span| span.column.as_deref() == Some("metric"));
    let listed: Vec<&str> = listed.map(|span| span.text.as_str()).collect();
    // The encoder adds the suffix of a counter.
    let same =
        |listed: &str, served: &str| listed.strip_suffix("_total").unwrap_or(listed) == served;
    let missing = served
        .iter()
        .filter(|served| !listed.iter().any(|listed| same(listed, served)));
    let extra = listed
        .iter()
        .filter(|listed| !served.iter().any(|served| same(listed, served)));
    let (missing, extra): (Vec<_>, Vec<_>) = (missing.collect(), extra.collect());
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing {missing:?}, not served {extra:?}"
    );
    assert!(served.len() > 25, "{served:?}");
}

/// The page lists every feature with what `Cargo.toml` says of it, and no other.
#[test]
fn features_of_the_book_are_those_of_the_framework() {
    let manifest = Page::read("crates/windlass/Cargo.toml").text;
    let (_, features) = manifest.split_once("[features]").expect("features");
    let (features, _) = features.split_once("\n[").expect("what follows them");
    let entry = Regex::new(r"(?m)^([a-z]+) = \[").expect("a pattern");
    let known = entry
        .captures_iter(features)
        .map(|found| found[1].to_owned());
    let known: Vec<String> = known.filter(|name| name != "default").collect();
    let default = features.lines().find(|line| line.starts_with("default = "));
    let default = default.expect("a default");

    let page = Page::read("docs/features.md").text;
    let row = Regex::new(r"(?m)^\| `([a-z]+)` \| (on|off|with `cli`) \|").expect("a pattern");
    let listed: Vec<(String, bool)> = row
        .captures_iter(&page)
        .map(|found| (found[1].to_owned(), &found[2] == "on"))
        .collect();
    let names: Vec<&String> = listed.iter().map(|(name, _)| name).collect();
    assert_eq!(names, Vec::from_iter(&known));
    for (name, on) in &listed {
        assert_eq!(*on, default.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn every_name_at_the_root_of_the_framework_has_an_example() {
    let api = Api::of("windlass");
    let is_module = |name: &str| api.resolves(&format!("{name}::*"));
    let missing: Vec<_> = api
        .names("")
        .into_iter()
        .filter(|name| !is_module(name) && *name != "manifests" && !api.has_example(name))
        .collect();
    assert!(missing.is_empty(), "no example: {missing:?}");
    assert!(!api.has_example("AnyController"), "it has none");
}

#[test]
fn root_and_prelude_of_the_framework_stay_small() {
    let api = Api::of("windlass");
    let root = api.names("");
    // Fewer than two dozen would mean that this reads something else than the root.
    assert!((24..=30).contains(&root.len()), "{}: {root:?}", root.len());
    let prelude = api.names("prelude");
    assert!((5..=10).contains(&prelude.len()), "{prelude:?}");
    assert!(prelude.iter().all(|name| root.contains(name)));
}

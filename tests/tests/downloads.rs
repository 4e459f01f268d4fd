//! Scripts download only what is pinned and verified by its hash, through the ordinary clients as
//! the machine has them set up: no script names the host of a registry.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A script without its comments, lines that go on joined.
struct Script {
    name: String,
    lines: Vec<String>,
}

impl Script {
    fn new(name: &str, text: &str) -> Self {
        let joined = text.replace("\\\n", " ");
        let lines = joined
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        Self {
            name: name.to_owned(),
            lines: lines.map(str::to_owned).collect(),
        }
    }

    /// What is downloaded without a hash, or from a host by name.
    fn faults(&self) -> Vec<String> {
        let rules = [
            // What fetches, and what has to be in the same line.
            (r"\bpip\S* (install|download)\b", "--require-hashes"),
            (r"\bcargo install\b", "--locked"),
            (r"\bcargo install\b", "--version"),
            (r"\bgo (get|install)\b|-mod=mod\b", "no such command"),
            (r"\b(wget|git clone|docker pull)\b", "no such command"),
            // It takes what has the hashes of package-lock.json, and runs nothing of it.
            (r"\bnpm [a-z]", "npm ci --ignore-scripts"),
            // What it downloads is compared with hashes of the repository afterwards.
            (r"\bmvn -", "--strict-checksums"),
            // Loopback is no download.
            (r"\bcurl\b.*https?://", "127.0.0.1"),
        ];
        let rules = rules.map(|(fetches, has)| (Regex::new(fetches).expect("a pattern"), has));
        let host = Regex::new(
            r"(golang\.org|pypi\.org|pythonhosted\.org|crates\.io|ghcr\.io|docker\.io|quay\.io|dl\.k8s\.io|registry\.k8s\.io|github\.com/[^/ ]+/[^/ ]+/releases)\b",
        );
        let host = host.expect("a pattern");
        let mut faults = Vec::new();
        for line in &self.lines {
            let line = line.trim();
            for (fetches, has) in &rules {
                // `go mod download -json MODULE@VERSION` is followed by a comparison of its hash.
                if fetches.is_match(line) && !line.contains(has) && !line.contains("mod download") {
                    faults.push(format!("{}: has no {has}: {line}", self.name));
                }
            }
            let is_import = line.starts_with('"') || line.contains(" \"golang.org/");
            if host.is_match(line) && !is_import {
                faults.push(format!("{}: names a registry: {line}", self.name));
            }
        }
        faults
    }
}

fn scripts() -> Vec<Script> {
    let mut paths = vec![root().join("Makefile"), root().join(".ci/run")];
    for entry in fs::read_dir(root().join("scripts")).expect("a folder") {
        let path = entry.expect("an entry").path();
        // It downloads to write down the hashes, and runs nothing of it.
        if path.is_file() && !path.ends_with("pin-python") {
            paths.push(path);
        }
    }
    let read = paths.iter().map(|path| {
        let text = fs::read_to_string(path).expect("a script");
        Script::new(&path.file_name().expect("a name").to_string_lossy(), &text)
    });
    read.collect()
}

#[test]
fn scripts_download_nothing_without_a_hash_and_name_no_registry() {
    let scripts = scripts();
    assert!(scripts.len() > 25, "only {} scripts", scripts.len());
    let faults: Vec<String> = scripts.iter().flat_map(Script::faults).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn download_without_a_hash_is_a_fault() {
    for line in [
        "pip install kubernetes==1",
        "python3 -m pip download --quiet \\\n  --no-deps x",
        "cargo install --locked mdbook",
        "cargo install --version 1 mdbook",
        "GOFLAGS=-mod=mod go build",
        "go install example.com/x@latest",
        "npm install x",
        "npm ci",
        "mvn -q dependency:copy-dependencies",
        "curl -fsSL -o x \"https://example.com/x.zip\"",
        "export GOPROXY=https://golang.org",
    ] {
        assert_eq!(Script::new("x", line).faults().len(), 1, "{line}");
    }
    for line in [
        "pip install --require-hashes -r requirements.txt",
        "cargo install --locked --version 1 mdbook",
        "npm ci --ignore-scripts",
        "mvn -q --strict-checksums dependency:copy-dependencies",
        "curl -sf http://127.0.0.1:1/health",
        "# from https://golang.org",
    ] {
        assert!(Script::new("x", line).faults().is_empty(), "{line}");
    }
}

#[test]
fn every_requirement_of_python_has_a_version_and_hashes() {
    let mut checked = 0;
    for path in [
        "scripts/python/go.txt",
        "scripts/python/kubectl.txt",
        "scripts/python/kubectl-28.txt",
        "scripts/python/kubectl-30.txt",
        "tests/clients/python/requirements.txt",
        "tests/clients/python/kopf.txt",
    ] {
        let text = fs::read_to_string(root().join(path)).expect("requirements");
        for line in text.replace("\\\n", " ").lines() {
            if line.starts_with('#') {
                continue;
            }
            assert!(
                line.contains("==") && line.contains("--hash=sha256:"),
                "{path}: {line}"
            );
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked}");
}

#[test]
fn every_go_module_has_the_hashes_of_what_it_requires() {
    let mut modules = vec![
        root().join("tests/clients/go"),
        root().join("bench/peers/controller-runtime"),
    ];
    for entry in fs::read_dir(root().join("scripts/modules")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            modules.push(path);
        }
    }
    assert!(modules.len() >= 6, "{modules:?}");
    let required =
        Regex::new(r"(?m)^(?:require )?\t?([a-z][^\s=]+\.[^\s=]+) (v\S+)").expect("a pattern");
    let replaced = Regex::new(r"(?m)^\t?(\S+) => (\S+) (v\S+)").expect("a pattern");
    for module in modules {
        let text = fs::read_to_string(module.join("go.mod")).expect("go.mod");
        let sums = fs::read_to_string(module.join("go.sum")).expect("go.sum");
        let mut all: Vec<(String, String)> = required
            .captures_iter(&text)
            .map(|found| (found[1].to_owned(), found[2].to_owned()))
            .collect();
        let others: Vec<String> = replaced
            .captures_iter(&text)
            .map(|found| found[1].to_owned())
            .collect();
        all.retain(|(name, _)| !others.contains(name));
        assert!(!all.is_empty(), "{}", module.display());
        for (name, version) in all {
            assert!(
                sums.contains(&format!("{name} {version}")),
                "{}: {name} {version} has no hash",
                module.display()
            );
        }
    }
}

//! Commands that pages show, and whether they exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use regex::Regex;

use super::{Page, root};
use crate::program;

/// The commands there are.
pub struct Commands {
    /// The flags of each command of `windlass`, such as `image build`.
    windlass: BTreeMap<String, BTreeSet<String>>,
    /// The help of each command of an operator.
    operator: BTreeMap<&'static str, String>,
    targets: BTreeSet<String>,
}

const OPERATOR: [&str; 7] = [
    "run",
    "manifests",
    "install",
    "uninstall",
    "rbac",
    "explain",
    "version",
];

/// Programs of others, whose arguments are their own business.
const OTHERS: [&str; 13] = [
    "cd",
    "curl",
    "go",
    "helm",
    "helm-operator",
    "kubectl",
    "mkdir",
    "export",
    "git",
    "java",
    "kopf",
    "node",
    "python3",
];

impl Commands {
    /// Of `windlass` as its pages describe it (a test keeps them current), of the operator of the
    /// tutorial as it is built, and of the Makefile.
    pub fn known() -> Self {
        let operator = program().with_file_name("pages-operator");
        let help = |command: &&'static str| {
            let help = Command::new(&operator).args([*command, "--help"]).output();
            let help = help.unwrap_or_else(|error| {
                panic!("cannot run {}: {error}; build it first", operator.display())
            });
            (*command, String::from_utf8_lossy(&help.stdout).into_owned())
        };
        let target = Regex::new(r"(?m)^([a-z][a-z-]*):").expect("a pattern");
        let makefile = Page::read("Makefile").text;
        Self {
            windlass: windlass(),
            operator: OPERATOR.iter().map(help).collect(),
            targets: target
                .captures_iter(&makefile)
                .map(|found| found[1].to_owned())
                .collect(),
        }
    }

    /// What is wrong with a command line; nothing if all of it is known.
    pub fn fault(&self, line: &str) -> Option<String> {
        let line = line.split(" #").next().unwrap_or_default();
        line.split("&&").find_map(|command| {
            let words: Vec<&str> = command.split_whitespace().collect();
            let words: Vec<&str> = words
                .into_iter()
                .skip_while(|word| word.contains('=') && !word.starts_with('-'))
                .collect();
            self.unknown(&words)
        })
    }

    fn unknown(&self, words: &[&str]) -> Option<String> {
        match words {
            ["windlass", rest @ ..] => self.of_windlass(rest),
            ["cargo", "run", "--", rest @ ..] => self.of_operator(rest),
            []
            | [
                "cargo",
                "add" | "build" | "doc" | "fmt" | "install" | "test",
                ..,
            ] => None,
            ["make", rest @ ..] => rest
                .iter()
                .find(|word| !word.contains('=') && !self.targets.contains(**word))
                .map(|target| format!("make has no target {target}")),
            [script, ..] if script.contains("scripts/") => {
                let missing = !root().join(script).is_file();
                missing.then(|| format!("there is no {script}"))
            }
            [other, ..] if OTHERS.contains(other) => None,
            [other, ..] => Some(format!("{other} is not a known program")),
        }
    }

    fn of_windlass(&self, words: &[&str]) -> Option<String> {
        let two = words.get(..2).map(|two| two.join(" "));
        let one = words.first().map(|one| (*one).to_owned());
        let found = [two, one]
            .into_iter()
            .flatten()
            .find_map(|name| self.windlass.get_key_value(&name));
        let Some((name, flags)) = found else {
            return Some(format!("windlass has no command {}", words.join(" ")));
        };
        let mut halves = words.splitn(2, |word| *word == "--");
        let own = halves.next().unwrap_or_default();
        let unknown = flags_of(own).find(|flag| !flags.contains(*flag));
        let unknown = unknown.map(|flag| format!("windlass {name} has no {flag}"));
        unknown.or_else(|| {
            let passed = halves.next()?;
            // Any operator can be explored, in whatever way it is called.
            if name == "explore" {
                return None;
            }
            self.of_operator(&[&[name.as_str()], passed].concat())
        })
    }

    /// What is wrong with the arguments of an operator's program.
    pub fn of_operator(&self, words: &[&str]) -> Option<String> {
        let Some(help) = words.first().and_then(|name| self.operator.get(name)) else {
            return Some(format!("an operator has no command {}", words.join(" ")));
        };
        let unknown = flags_of(words).find(|flag| {
            !help.contains(&format!("{flag} ")) && !help.contains(&format!("{flag}\n"))
        });
        unknown.map(|flag| format!("{} of an operator has no {flag}", words[0]))
    }

    /// Whether an operator's program has a command of that name.
    pub fn is_of_operator(&self, name: &str) -> bool {
        self.operator.contains_key(name)
    }
}

fn flags_of<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let names = words
        .iter()
        .map(|word| word.split('=').next().unwrap_or_default());
    names.filter(|word| word.starts_with("--"))
}

/// The commands of `windlass` and their flags, from the pages of `docs/commands`.
fn windlass() -> BTreeMap<String, BTreeSet<String>> {
    let flag = Regex::new("--[a-z][a-z-]*").expect("a pattern");
    let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for page in super::pages() {
        if !page.path.starts_with("docs/commands/") || page.path.ends_with("README.md") {
            continue;
        }
        let mut command = String::new();
        for line in page.text.lines() {
            if let Some((_, name)) = line.split_once("# windlass ") {
                name.clone_into(&mut command);
                commands.entry(command.clone()).or_default();
            } else if let Some(flags) = commands.get_mut(&command) {
                flags.extend(flag.find_iter(line).map(|found| found.as_str().to_owned()));
            }
        }
    }
    commands
}

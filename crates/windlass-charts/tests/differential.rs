//! Charts rendered by this crate and by Helm, compared byte for byte.
//!
//! `tests/cases.txt` names cases: a chart of `tests/charts` and arguments of `helm template`. What
//! Helm printed is in `tests/expected`; `make charts-record` writes it again, `make charts` runs Helm
//! itself beside this crate, over these cases and over the charts of `CHARTS`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use windlass_charts::{Capabilities, Chart, Error, Options, Values, render, values};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// A chart and how it is rendered.
struct Case {
    name: String,
    chart: PathBuf,
    args: Vec<String>,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(tests().join("cases.txt")).unwrap();
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap();
            let chart = tests().join("charts").join(words.next().unwrap());
            let args = words.collect();
            Case { name, chart, args }
        })
        .collect()
}

/// What this crate prints for a case: the output, or the error.
fn ours(case: &Case) -> String {
    match rendered(case) {
        Ok(text) => text,
        Err(error) => format!("{}\n", format!("Error: {error}").trim_end()),
    }
}

fn rendered(case: &Case) -> Result<String, Error> {
    let mut options = Options::default();
    let mut capabilities = Capabilities::default();
    let mut given = Values::new();
    let mut sets = Vec::new();
    let mut crds = false;
    let mut args = case.args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap().clone();
        match arg.as_str() {
            "-f" => {
                let path = case.chart.join(value());
                let found = values::read(&fs::read(path).unwrap()).map_err(Error::Values)?;
                values::merge(&mut given, found);
            }
            "--set" | "--set-string" => sets.push((arg == "--set", value())),
            "--name" => options.name = value(),
            "--namespace" => options.namespace = value(),
            "--kube-version" => capabilities.kube_version = value(),
            "-a" => capabilities.api_versions.push(value()),
            "--is-upgrade" => options.is_upgrade = true,
            "--include-crds" => crds = true,
            other => panic!("unknown argument {other}"),
        }
    }
    for (is_typed, text) in sets {
        let set = if is_typed {
            values::set
        } else {
            values::set_string
        };
        set(&mut given, &text)
            .map_err(|why| Error::Values(format!("failed parsing --set data: {why}")))?;
    }
    options.capabilities = capabilities;
    let chart = Chart::load(&case.chart)?;
    Ok(render(&chart, &given, &options)?.template_output(crds))
}

/// What Helm prints for a case.
fn theirs(helm: &Path, case: &Case) -> String {
    let mut command = Command::new(helm);
    command.arg("template");
    let mut name = "release-name".to_owned();
    let mut rest = Vec::new();
    let mut args = case.args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--name" => name.clone_from(args.next().unwrap()),
            "-f" => {
                rest.push("-f".to_owned());
                let path = case.chart.join(args.next().unwrap());
                rest.push(path.to_string_lossy().into_owned());
            }
            other => rest.push(other.to_owned()),
        }
    }
    let home = env::temp_dir().join("windlass-charts-helm");
    let output = command
        .arg(name)
        .arg(&case.chart)
        .args(rest)
        .env_clear()
        .env("HOME", &home)
        .env("TZ", "UTC")
        .env("HELM_NAMESPACE", "default")
        .output()
        .unwrap();
    if output.status.success() {
        return String::from_utf8_lossy(&output.stdout).into_owned();
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // Warnings come first, and a hint last.
    let from = text.find("Error: ").unwrap_or(0);
    let error = &text[from..];
    let error = error.split("\n\nUse --debug flag").next().unwrap_or(error);
    format!("{}\n", error.trim_end_matches('\n'))
}

fn expected(name: &str) -> PathBuf {
    tests().join("expected").join(format!("{name}.txt"))
}

/// The first line on which two texts differ.
fn difference(ours: &str, theirs: &str) -> String {
    let mut out = String::new();
    let (mut a, mut b) = (ours.lines(), theirs.lines());
    for line in 1.. {
        match (a.next(), b.next()) {
            (None, None) => {
                out.push_str("  they differ in line ends only\n");
                return out;
            }
            (a, b) if a == b => {}
            (a, b) => {
                let shown = |line: Option<&str>| {
                    line.map_or("(nothing)".to_owned(), |line| format!("{line:?}"))
                };
                writeln!(
                    out,
                    "  line {line}:\n    ours   {}\n    theirs {}",
                    shown(a),
                    shown(b)
                )
                .unwrap();
                return out;
            }
        }
    }
    out
}

#[test]
fn charts_rendered_as_recorded_are_equal() {
    let mut problems = String::new();
    let cases = cases();
    for case in &cases {
        let recorded = fs::read_to_string(expected(&case.name))
            .unwrap_or_else(|_| panic!("{} was not recorded: run `make charts-record`", case.name));
        let ours = ours(case);
        if ours != recorded {
            write!(problems, "{}\n{}", case.name, difference(&ours, &recorded)).unwrap();
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn every_function_is_used_by_a_chart() {
    let mut all = String::new();
    collect(&tests().join("charts"), &mut all);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: std::collections::BTreeSet<&str> = all.split(|c| !is_word(c)).collect();
    let missing: Vec<&str> = windlass_charts::function_names()
        .into_iter()
        .filter(|name| !words.contains(name))
        .collect();
    assert!(missing.is_empty(), "no chart uses {missing:?}");
}

fn collect(folder: &Path, out: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, out);
        } else if let Ok(text) = fs::read_to_string(&path) {
            out.push_str(&text);
        }
    }
}

/// A text without the lines on which two others differ.
fn without_random(text: &str, one: &str, other: &str) -> String {
    let random: Vec<bool> = one
        .lines()
        .zip(other.lines())
        .map(|(a, b)| a != b)
        .collect();
    text.lines()
        .enumerate()
        .filter(|(line, _)| !random.get(*line).copied().unwrap_or(false))
        .flat_map(|(_, text)| [text, "\n"])
        .collect()
}

/// The Helm to compare with.
fn helm() -> PathBuf {
    PathBuf::from(env::var_os("HELM").expect("HELM names the program: run `make charts`"))
}

#[test]
#[ignore = "writes what Helm prints: `make charts-record`"]
fn record() {
    let helm = helm();
    for case in cases() {
        fs::write(expected(&case.name), theirs(&helm, &case)).unwrap();
    }
}

/// The charts within a folder: folders with a `Chart.yaml` that are in no other chart, and archives.
fn charts(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("Chart.yaml").is_file() {
        found.push(folder.to_owned());
        return;
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            charts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "tgz") {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "runs Helm: `make charts`"]
fn charts_rendered_beside_helm_are_equal() {
    let helm = helm();
    let mut cases = cases();
    for folder in env::var("CHARTS")
        .unwrap_or_default()
        .split(':')
        .filter(|folder| !folder.is_empty())
    {
        let mut found = Vec::new();
        charts(Path::new(folder), &mut found);
        cases.extend(found.into_iter().map(|chart| Case {
            name: chart.to_string_lossy().into_owned(),
            chart,
            args: Vec::new(),
        }));
    }
    let (mut equal, mut rendered, mut refused) = (0, 0, 0);
    for case in &cases {
        let mut theirs = theirs(&helm, case);
        let mut ours = ours(case);
        if ours != theirs {
            // Lines that Helm does not print alike twice are random.
            let again = self::theirs(&helm, case);
            ours = without_random(&ours, &theirs, &again);
            theirs = without_random(&theirs, &theirs, &again);
        }
        let is_error = theirs.starts_with("Error: ");
        refused += usize::from(is_error);
        rendered += usize::from(!is_error);
        if ours == theirs {
            equal += 1;
        } else {
            print!("{}\n{}", case.name, difference(&ours, &theirs));
        }
    }
    println!(
        "equal {equal} / {} ({rendered} rendered, {refused} refused by Helm)",
        cases.len()
    );
}

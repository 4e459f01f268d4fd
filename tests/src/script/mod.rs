//! A script of `kubectl` commands, played on a cluster, and what it printed.
//!
//! `kubectl/script.txt` has the commands, `kubectl/files` what they name. Played on the real control
//! plane (`scripts/record-kubectl`) it gives `kubectl/answers-*.txt`, one file per version of
//! `kubectl`; played on ours it must print the same. What differs from run to run is replaced by
//! placeholders ([`normalise`]). Nothing runs pods on either side: the script does.

mod normalise;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One command of the script.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    /// Whether its lines come in an order that means something.
    ordered: bool,
}

/// The folder of the script.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl")
}

fn steps(script: &str) -> Vec<Step> {
    let step = |line: &str| {
        let ordered = line.strip_prefix("$ ").map(|command| (command, true));
        let (command, ordered) =
            ordered.or_else(|| line.strip_prefix("$~ ").map(|command| (command, false)))?;
        Some(Step {
            command: command.to_owned(),
            ordered,
        })
    };
    script.lines().filter_map(step).collect()
}

/// Plays the script in `work` with one `kubectl` on the cluster of `kubeconfig`; gives what every
/// command printed, normalised.
pub fn play(kubectl: &Path, kubeconfig: &Path, work: &Path) -> String {
    let script = std::fs::read_to_string(folder().join("script.txt")).expect("script.txt is there");
    let files = work.join("files");
    let bin = work.join("bin");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&folder().join("files"), &files])
        .status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "files are copied"
    );
    std::fs::create_dir_all(&bin).expect("a folder can be made");
    std::os::unix::fs::symlink(kubectl, bin.join("kubectl")).expect("a link can be made");
    // The script changes the namespace it works in.
    let own = work.join("config");
    std::fs::copy(kubeconfig, &own).expect("the kubeconfig can be copied");
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut out = String::new();
    for step in steps(&script) {
        let output = Command::new("sh")
            .args(["-c", &step.command])
            .current_dir(&files)
            .env_clear()
            .envs([("PATH", path.as_str()), ("TZ", "UTC"), ("LC_ALL", "C")])
            .env("HOME", work)
            .env("KUBECONFIG", &own)
            .env("KUBECACHEDIR", work.join("cache"))
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        let text =
            |bytes: &[u8]| normalise::normalise(&String::from_utf8_lossy(bytes), step.ordered);
        let _ = writeln!(out, "$ {}", step.command);
        out.push_str(&text(&output.stdout));
        for line in text(&output.stderr).lines() {
            let _ = writeln!(out, "! {line}");
        }
        match output.status.code() {
            Some(0) => {}
            Some(code) => {
                let _ = writeln!(out, "= {code}");
            }
            None => out.push_str("= killed\n"),
        }
        out.push('\n');
    }
    out
}

/// The answers to every command: the command, and what came of it.
fn answers(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.strip_prefix("$ ") {
        let end = start.find("\n\n$ ").map_or(start.len(), |at| at + 2);
        let (answer, after) = start.split_at(end);
        let (command, printed) = answer.split_once('\n').unwrap_or((answer, ""));
        found.push((command, printed.trim_end()));
        rest = after;
    }
    found
}

/// Where two plays differ, for a person; commands listed as known to differ are left out, and
/// named when they do not.
pub fn differences(expected: &str, found: &str, known: &[Known]) -> Vec<String> {
    let (expected, found) = (answers(expected), answers(found));
    let mut report = Vec::new();
    if expected.len() != found.len() {
        report.push(format!(
            "{} commands were recorded, {} were played: record again",
            expected.len(),
            found.len()
        ));
    }
    for (index, (real, ours)) in expected.iter().zip(&found).enumerate() {
        let gap = known.iter().find(|gap| gap.command == real.0);
        match (real == ours || was_late(real.0, ours.1), gap) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(gap)) => {
                report.push(format!(
                    "{}\n  agrees now: take it off known.txt",
                    gap.command
                ));
            }
            (false, None) => {
                let indented = |text: &str| text.replace('\n', "\n    ");
                report.push(format!(
                    "#{index} {}\n  real:\n    {}\n  ours:\n    {}",
                    real.0,
                    indented(real.1),
                    indented(ours.1)
                ));
            }
        }
    }
    report
}

/// Whether a wait for the end of something came when it had ended: kubectl prints nothing then.
/// Ours is fast enough for that to happen; the next command of the script shows that it is gone.
fn was_late(command: &str, printed: &str) -> bool {
    command.starts_with("kubectl wait --for=delete ") && printed.is_empty()
}

/// A command on which ours is known to differ, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// The command, as in the script.
    pub command: String,
    /// Why it differs.
    pub why: String,
}

/// Reads `known.txt`: commands (`$ …`) below the reason (`# …`) for which they differ.
pub fn known(text: &str) -> Vec<Known> {
    let mut why = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(reason) = line.strip_prefix("# ") {
            reason.clone_into(&mut why);
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push(Known {
                command: command.to_owned(),
                why: why.clone(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_found_and_a_known_one_must_exist() {
        let real = "$ a\n1\n\n$ b\n2\n! warned\n= 1\n\n";
        assert!(differences(real, real, &[]).is_empty());
        let ours = "$ a\n1\n\n$ b\n3\n\n";
        let report = differences(real, ours, &[]);
        assert_eq!(report.len(), 1);
        assert!(report[0].contains("! warned"), "{report:?}");
        let gaps = known("# because\n$ b\n");
        assert_eq!(gaps[0].why, "because");
        assert!(differences(real, ours, &gaps).is_empty());
        assert!(differences(real, real, &gaps)[0].contains("take it off"));
    }

    #[test]
    fn a_wait_for_what_is_gone_already_prints_nothing() {
        let real = "$ kubectl wait --for=delete namespace/x\nnamespace/x condition met\n\n";
        let late = "$ kubectl wait --for=delete namespace/x\n\n";
        assert!(differences(real, late, &[]).is_empty());
        let timed_out = "$ kubectl wait --for=delete namespace/x\n! error: timed out\n= 1\n\n";
        assert_eq!(differences(real, timed_out, &[]).len(), 1);
    }

    #[test]
    fn only_marked_lines_are_commands() {
        let found = steps("# note\n$ kubectl get x\n\n$~ kubectl get y\n");
        assert_eq!(found.len(), 2);
        assert!(found[0].ordered && !found[1].ordered);
    }
}

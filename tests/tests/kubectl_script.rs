//! A few hundred `kubectl` commands print on ours what they print on the real control plane.
//!
//! `scripts/record-kubectl` plays the script on the real one and stores what it printed; run plainly,
//! this plays it on `windlass up --no-node` and compares. Commands on which ours differs are listed
//! with a reason in `kubectl/known.txt`, which may only shrink.

use std::path::{Path, PathBuf};

use windlass_tests::{Folder, script};

/// What people depend on: words that a command of the script must have, all in one.
const COMMANDS: &[&[&str]] = &[
    &["kubectl get", "-o wide"],
    &["kubectl get", "-o yaml"],
    &["kubectl get", "-o json"],
    &["kubectl get", "-o jsonpath"],
    &["kubectl get", " -w"],
    &["kubectl get", "--chunk-size"],
    &["kubectl get", " -l "],
    &["kubectl get", "--field-selector"],
    &["kubectl describe"],
    &["kubectl create"],
    &["kubectl apply", "-f"],
    &["kubectl apply", "--server-side"],
    &["kubectl apply", "--server-side", "--force-conflicts"],
    &["kubectl diff"],
    &["kubectl edit"],
    &["kubectl patch"],
    &["kubectl replace"],
    &["kubectl label"],
    &["kubectl annotate"],
    &["kubectl delete", "--cascade=foreground"],
    &["kubectl delete", "--cascade=background"],
    &["kubectl delete", "--cascade=orphan"],
    &["kubectl delete", "--wait"],
    &["kubectl scale"],
    &["kubectl rollout status"],
    &["kubectl rollout history"],
    &["kubectl rollout undo"],
    &["kubectl explain deployment"],
    &["kubectl explain boat"],
    &["kubectl api-resources"],
    &["kubectl api-versions"],
    &["kubectl events"],
    &["kubectl wait"],
    &["kubectl apply -k"],
    &["kubectl", "--dry-run=server"],
    &["kubectl", "--validate=strict"],
];

#[test]
fn the_script_has_what_people_depend_on() {
    let script = std::fs::read_to_string(script::folder().join("script.txt"))
        .expect("the script can be read");
    let commands: Vec<&str> = script
        .lines()
        .filter(|line| line.starts_with('$'))
        .collect();
    let has = |words: &[&str]| {
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        commands.iter().any(has_all)
    };
    let missing: Vec<_> = COMMANDS.iter().filter(|words| !has(words)).collect();
    assert!(
        missing.is_empty(),
        "no command of the script has {missing:?}"
    );
    assert!(commands.len() >= 100, "{} commands", commands.len());
    println!(
        "{} commands, among them {} that people depend on",
        commands.len(),
        COMMANDS.len()
    );
}

/// Plays the script with the `kubectl` of one version.
fn play(version: &str, kubectl: &Path) {
    let stored = script::folder().join(format!("answers-{version}.txt"));
    let folder = Folder::new(&format!("script-{version}"));
    if let Some(kubeconfig) = std::env::var_os("WINDLASS_RECORD_KUBECTL") {
        let printed = script::play(kubectl, Path::new(&kubeconfig), folder.path());
        std::fs::write(&stored, printed).expect("the answers can be written");
        return;
    }
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    let kubeconfig = folder.path().join(".windlass/kubeconfig");
    let printed = script::play(kubectl, &kubeconfig, folder.path());
    // For whoever wants to see it whole.
    let seen = std::env::temp_dir().join(format!("windlass-kubectl-{version}.txt"));
    std::fs::write(&seen, &printed).expect("a temporary file can be written");
    let expected = std::fs::read_to_string(&stored).expect("the script was recorded");
    let known =
        std::fs::read_to_string(script::folder().join("known.txt")).expect("known.txt is there");
    let report = script::differences(&expected, &printed, &script::known(&known));
    assert!(
        report.is_empty(),
        "{} commands print something else than on the real control plane (all of it is in {}):\n\n{}",
        report.len(),
        seen.display(),
        report.join("\n\n")
    );
}

/// The `kubectl` a variable names, if it is of that version.
fn kubectl(variable: &str, version: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    let printed = std::process::Command::new(&path)
        .args(["version", "--client"])
        .output()
        .ok()?;
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    printed.contains(&format!("v{version}.")).then_some(path)
}

/// Neither of the two below may be all that is left out.
#[test]
fn one_kubectl_at_least_plays_the_script() {
    let newest = kubectl("KUBECTL", "1.37");
    assert!(
        newest.or_else(|| kubectl("KUBECTL_OLD", "1.32")).is_some(),
        "set KUBECTL to kubectl 1.37 or KUBECTL_OLD to kubectl 1.32: scripts/test does"
    );
}

#[test]
fn the_script_prints_the_same_with_the_newest_kubectl() {
    let Some(kubectl) = kubectl("KUBECTL", "1.37") else {
        assert!(
            std::env::var_os("WINDLASS_RECORD_KUBECTL").is_none(),
            "KUBECTL must be kubectl 1.37 to record"
        );
        windlass_skip::skip("KUBECTL is not kubectl 1.37");
        return;
    };
    play("1.37", &kubectl);
}

#[test]
fn the_script_prints_the_same_with_an_older_kubectl() {
    // `scripts/record-kubectl` and CI name one when they find it.
    let Some(kubectl) = kubectl("KUBECTL_OLD", "1.32") else {
        windlass_skip::skip("KUBECTL_OLD is not kubectl 1.32");
        return;
    };
    play("1.32", &kubectl);
}

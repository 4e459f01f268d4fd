//! The explorer and an operator that is a process of its own, in a language that is not Rust.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use windlass_explore::explore::{Exploration, Options, Report};
use windlass_explore::scenario::{Scenario, Step};
use windlass_explore::{Base, Pace, Subject, Template, html, judge::Title, report};

fn scenario() -> Scenario {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "notes.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Note", "plural": "notes", "singular": "note"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let note = json!({"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "one"}});
    Scenario {
        setup: vec![definition],
        steps: vec![Step::Apply(vec![note])],
        ..Scenario::default()
    }
}

fn subject(arguments: &[&str]) -> Subject {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox/operator.py");
    let mut words = vec!["python3".to_owned(), script.display().to_string()];
    words.extend(arguments.iter().map(ToString::to_string));
    Subject::process(Template {
        words,
        folder: ".".into(),
        env: Vec::new(),
    })
}

/// Waits generously: the machine may be busy.
fn pace() -> Pace {
    Pace {
        patience: Duration::from_secs(5),
        ..Pace::real()
    }
}

async fn explore(arguments: &[&str], options: &Options) -> Report {
    let scenario = scenario();
    let base = Base::prepare(&scenario, pace()).await.unwrap();
    let subject = subject(arguments);
    let exploration = Exploration::begin(&base, &scenario, &subject)
        .await
        .unwrap();
    exploration.run(options, |_| {}).await.unwrap()
}

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_between_two_writes_of_a_process_is_found() {
    if !has_python() {
        windlass_skip::skip("python3 is not installed");
        return;
    }
    let options = Options {
        findings: 1,
        plans: 12,
        pairs: false,
        ..Options::default()
    };
    let report = explore(&["--forgetful"], &options).await;
    let text = report::text(&report, |finding| finding.kept.id.clone());
    let finding = report.findings.first().expect(&text);
    assert_eq!(
        finding.plan.to_string(),
        "kill-after operator: create configmaps in default #1",
        "{text}"
    );
    assert_eq!(finding.wrong.title(), Title::Differs, "{text}");
    assert!(
        text.contains("secrets one in default: one expected, none found"),
        "{text}"
    );
    assert!(html::page(&report, "operator.py").contains(&finding.kept.id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes a minute; `make explore-corpus` runs it"]
async fn process_without_a_mistake_is_sound() {
    if !has_python() {
        windlass_skip::skip("python3 is not installed");
        return;
    }
    let report = explore(&[], &Options::default()).await;
    let text = report::text(&report, |finding| finding.kept.id.clone());
    assert!(report.is_sound() && report.races.is_empty(), "{text}");
    println!("{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "`make bench-explore` runs it"]
async fn bench_explore_process() {
    if !has_python() {
        windlass_skip::skip("python3 is not installed");
        return;
    }
    let options = Options {
        plans: 30,
        ..Options::default()
    };
    let report = explore(&[], &options).await;
    let text = report::text(&report, |finding| finding.kept.id.clone());
    assert!(report.is_sound(), "{text}");
    #[allow(clippy::cast_precision_loss, reason = "it is a small number")]
    let rate = report.runs as f64 / report.ran_for.as_secs_f64() * 60.0;
    println!(
        "process in Python: {} plans, {rate:.0} a minute, one at a time",
        report.runs
    );
}

//! Mistakes in operators that are processes of their own: two in Rust, which are this very program
//! started again, and two in Python.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_explore::explore::{Exploration, Options, Report};
use windlass_explore::scenario::{Scenario, Step};
use windlass_explore::{Base, Pace, Subject, Template};

use super::{CASES, Case, case, scenario, varies};

/// Names the operator that this program is to be: its number, and whether it has the mistake.
const OPERATOR: &str = "WINDLASS_CORPUS_OPERATOR";

/// A mistake in a process.
pub(super) struct Process {
    pub(super) number: usize,
    pub(super) language: &'static str,
    subject: fn(usize, bool) -> Subject,
    scenario: fn(usize) -> Scenario,
}

pub(super) const PROCESSES: &[Process] = &[
    Process {
        number: 1,
        language: "Rust",
        subject: this_program,
        scenario: as_in_the_list,
    },
    Process {
        number: 3,
        language: "Rust",
        subject: this_program,
        scenario: as_in_the_list,
    },
    Process {
        number: 2,
        language: "Python",
        subject: |_, is_wrong| python(is_wrong, "--forgetful"),
        scenario: |_| one_note(),
    },
    Process {
        number: 27,
        language: "Python",
        subject: |_, is_wrong| python(is_wrong, "--only-adds-labels"),
        scenario: |_| one_note(),
    },
];

fn as_in_the_list(number: usize) -> Scenario {
    scenario(case(number).steps)
}

fn this_program(number: usize, is_wrong: bool) -> Subject {
    let program = std::env::current_exe().unwrap();
    let test = "operator_of_its_own";
    let words = [
        program.to_str().unwrap(),
        test,
        "--exact",
        "--ignored",
        "--nocapture",
    ];
    Subject::process(Template {
        words: words.map(str::to_owned).to_vec(),
        folder: ".".into(),
        env: vec![(OPERATOR.to_owned(), format!("{number} {is_wrong}"))],
    })
}

#[test]
#[ignore = "it is an operator, which the others start"]
fn operator_of_its_own() {
    let Ok(which) = std::env::var(OPERATOR) else {
        return;
    };
    let (number, is_wrong) = which.split_once(' ').unwrap();
    let number: usize = number.parse().unwrap();
    let case: &Case = CASES.iter().find(|case| case.number == number).unwrap();
    let operator = if is_wrong == "true" {
        case.wrong
    } else {
        case.right
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = kube::Client::try_default().await.unwrap();
        operator(client).await;
    });
}

fn python(is_wrong: bool, mistake: &str) -> Subject {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox/operator.py");
    let mut words = vec!["python3".to_owned(), script.display().to_string()];
    words.extend(is_wrong.then(|| mistake.to_owned()));
    Subject::process(Template {
        words,
        folder: ".".into(),
        env: Vec::new(),
    })
}

pub(super) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

/// The kind of the operator in Python, and one of it.
fn one_note() -> Scenario {
    let labels = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let spec = json!({ "type": "object", "properties": {
        "labels": labels,
        "size": { "type": "integer" },
    } });
    let schema: Value = json!({ "type": "object", "properties": { "spec": spec } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "notes.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Note", "plural": "notes", "singular": "note" },
            "scope": "Namespaced",
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }],
        },
    });
    let note = json!({ "apiVersion": "example.com/v1", "kind": "Note",
        "metadata": { "name": "one" }, "spec": { "size": 1 } });
    Scenario {
        setup: vec![definition],
        steps: vec![Step::Apply(vec![note])],
        ..Scenario::default()
    }
}

/// Explores one process in real time.
pub(super) fn explore(process: &Process, is_wrong: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let scenario = (process.scenario)(process.number);
        let pace = Pace {
            patience: Duration::from_secs(5),
            ..Pace::real()
        };
        let base = Base::prepare(&scenario, pace).await.unwrap();
        let subject = (process.subject)(process.number, is_wrong);
        let exploration = Exploration::begin(&base, &scenario, &subject).await;
        let exploration =
            exploration.unwrap_or_else(|why| panic!("process {}: {why}", process.number));
        let options = Options {
            findings: if is_wrong { 1 } else { usize::MAX },
            plans: 25,
            pairs: false,
            fields: varies(case(process.number)),
            ..Options::default()
        };
        exploration.run(&options, |_| {}).await.unwrap()
    })
}

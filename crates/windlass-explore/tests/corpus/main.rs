//! The corpus: operators with one mistake each, as real ones have made it, beside twins without it.
//! Every mistake must be found, and nothing in a twin. `make explore-corpus` prints how many are.

mod blackbox;
mod kit;
mod operators;
mod special;

use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::{Value, json};
use windlass_explore::explore::{Exploration, Options, Report};
use windlass_explore::scenario::{Named, Scenario, Step};
use windlass_explore::{Base, Pace, Subject, report};

use operators as op;

/// An operator, from its start on.
type Operator = fn(Client) -> BoxFuture<'static, ()>;

/// One mistake and its twin.
struct Case {
    /// Its number in the list of mistakes.
    number: usize,
    name: &'static str,
    steps: &'static [Does],
    wrong: Operator,
    right: Operator,
}

/// What a user does to the one Web there is.
#[derive(Clone, Copy)]
enum Does {
    /// Applies it with this size.
    Make(i64),
    /// Applies it with this spec, and every change of its fields.
    Vary(&'static str),
    Size(i64),
    Delete,
    /// Applies a Secret that belongs to it by a label.
    Secret,
}

use Does::{Delete, Make, Secret, Size, Vary};

/// A case of operators that reconcile on the events of these kinds.
macro_rules! case {
    ($number:literal $name:literal, $steps:expr, $watches:expr, $operator:ident) => {
        case!($number $name, $steps, $watches, $operator, Any, run)
    };
    ($number:literal $name:literal, $steps:expr, $watches:expr, $operator:ident, $lists:ident, $run:ident) => {
        Case {
            number: $number,
            name: $name,
            steps: &$steps,
            wrong: |client| {
                run::$run(client, &$watches, kit::Lists::$lists, op::$operator::<false>).boxed()
            },
            right: |client| {
                run::$run(client, &$watches, kit::Lists::$lists, op::$operator::<true>).boxed()
            },
        }
    };
}

/// How operators run.
mod run {
    pub(crate) use crate::kit::run;
    pub(crate) use crate::special::elected;
}

const CASES: &[Case] = &[
    case!(1 "size noted before it is applied", [Make(1), Size(3)], ["web"], size_noted_first),
    case!(2 "second object in the branch of the first", [Make(1)], ["web"], second_in_the_branch_of_the_first),
    case!(3 "claim changed after its pod is deleted", [Make(1), Size(3)], ["web", "configmap", "claim"], claim_after_its_pod),
    case!(4 "phase written after the deletion", [Make(1), Size(3)], ["web", "configmap"], phase_after_the_deletion),
    case!(5 "finalizer after the outside resource", [Make(1), Delete], ["web"], finalizer_after_the_resource),
    case!(6 "hash written before the restart", [Make(1), Size(3)], ["web"], hash_before_the_restart),
    case!(7 "revision counter in memory", [Make(1), Size(3)], ["web"], counter_in_memory),
    case!(8 "recovery noted before it is done", [Make(1)], ["web"], recovery_noted_first),
    case!(9 "claims deleted by label", [Make(1), Delete, Make(1)], ["web"], claims_by_label),
    case!(10 "scales down by an old sight", [Make(1), Size(3)], ["web"], scales_down_by_an_old_sight),
    case!(11 "children counted in the cache", [Make(1), Size(2)], ["web", "configmap"], counted_in_the_cache),
    case!(12 "owner looked up through a slower watch", [Make(1), Secret], ["secret", "web"], owner_by_a_slower_watch),
    Case {
        number: 13,
        name: "answer over a newer event",
        steps: &[Make(1), Size(3)],
        wrong: |client| special::answer_over_a_newer_event::<false>(client).boxed(),
        right: |client| special::answer_over_a_newer_event::<true>(client).boxed(),
    },
    case!(14 "gives up after a conflict", [Make(1), Size(3)], ["web"], gives_up_after_a_conflict),
    case!(15 "expectations expire", [Make(2)], ["web", "configmap"], expectations_expire, Recent, run),
    case!(16 "switched off by an old sight", [Make(0), Size(1)], ["web"], switched_off_by_an_old_sight),
    case!(17 "keeps the Secret of an old status", [Make(1), Size(2)], ["web", "secret"], keeps_the_secret_of_an_old_status),
    case!(18 "claim deleted with the sight of its pod", [Make(1), Size(0)], ["web", "pod"], claim_with_the_sight_of_its_pod),
    case!(19 "guard by the cache", [Make(1), Size(3), Size(2)], ["web", "configmap"], guard_by_the_cache),
    case!(20 "cleans up on the event", [Make(1), Delete], ["web"], cleans_up_on_the_event),
    Case {
        number: 21,
        name: "cache keeps what a list no longer has",
        steps: &[Make(1), Delete],
        wrong: |client| {
            kit::run(client, &["web"], kit::Lists::Adding, op::trusts_its_cache).boxed()
        },
        right: |client| kit::run(client, &["web"], kit::Lists::Any, op::trusts_its_cache).boxed(),
    },
    case!(22 "children released on the event", [Make(1), Delete], ["web", "configmap"], releases_children_on_the_event),
    case!(23 "already exists is fatal", [Make(1)], ["web"], already_there_is_fatal),
    case!(24 "conflict is swallowed", [Make(1), Size(3)], ["web"], conflict_is_swallowed),
    case!(25 "former leader writes", [Make(1), Size(3), Size(5)], ["web"], former_leader_writes, Recent, elected),
    case!(26 "children after the finalizer", [Make(1), Delete], ["web"], children_after_the_finalizer),
    case!(27 "labels are only added", [Vary(r#"{"size": 1}"#)], ["web"], labels_are_only_added),
    case!(28 "switched off is not never on", [Vary(r#"{"size": 1}"#)], ["web"], switched_off_is_not_never_on),
    case!(29 "acts only when ready", [Vary(r#"{"image": "web:1", "size": 1}"#)], ["web", "pod"], acts_only_when_ready),
    case!(30 "block taken for granted", [Vary(r#"{"size": 1, "storage": {"size": 1}}"#)], ["web"], block_taken_for_granted),
];

/// How many mistakes the list has.
const ALL: usize = 30;

fn web(spec: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Web",
        "metadata": { "name": "one" }, "spec": spec,
    })
}

fn definition() -> Value {
    let fields = json!({
        "size": { "type": "integer" },
        "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        "metrics": { "type": "object", "properties": { "enabled": { "type": "boolean" } } },
        "image": { "type": "string" },
        "storage": { "type": "object", "properties": { "size": { "type": "integer" } } },
    });
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": fields },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "webs.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Web", "plural": "webs", "singular": "web" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn scenario(steps: &[Does]) -> Scenario {
    let named = || Named {
        api_version: "example.com/v1".to_owned(),
        kind: "Web".to_owned(),
        name: "one".to_owned(),
        namespace: None,
    };
    let steps = steps.iter().map(|does| match does {
        Make(size) => Step::Apply(vec![web(&json!({ "size": size }))]),
        Vary(spec) => Step::Apply(vec![web(&serde_json::from_str(spec).unwrap())]),
        Size(size) => Step::Patch(named(), json!({ "spec": { "size": size } })),
        Delete => Step::Delete(named()),
        Secret => Step::Apply(vec![json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "of-one", "labels": { "of": "one" } },
        })]),
    });
    Scenario {
        setup: vec![definition()],
        steps: steps.collect(),
        // What it notes of its recovery differs by nature.
        ignore: vec!["recovered".to_owned()],
        ..Scenario::default()
    }
}

/// Whether the fields of what is applied are changed.
fn varies(case: &Case) -> bool {
    case.steps.iter().any(|does| matches!(does, Vary(_)))
}

/// Explores one operator on a runtime of its own, whose clock moves when nothing else can.
fn explore(case: &Case, operator: Operator, options: &Options) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let scenario = scenario(case.steps);
        let base = Base::prepare(&scenario, Pace::virtual_time())
            .await
            .unwrap();
        let subject = Subject::function(operator);
        let options = &Options {
            fields: varies(case),
            ..options.clone()
        };
        let exploration = Exploration::begin(&base, &scenario, &subject).await;
        let exploration = exploration.unwrap_or_else(|why| panic!("{}: {why}", case.name));
        exploration.run(options, |_| {}).await.unwrap()
    })
}

/// Plays the plan of a finding again.
fn replay(case: &Case, found: &Report, times: usize) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let kept = &found.findings.first().unwrap().kept;
    runtime.block_on(async {
        let scenario = kept.scenario(&scenario(case.steps)).unwrap();
        let base = Base::prepare(&scenario, Pace::virtual_time())
            .await
            .unwrap();
        let subject = Subject::function(case.wrong);
        let exploration = Exploration::begin(&base, &scenario, &subject)
            .await
            .unwrap();
        exploration.replay(kept, times).await.unwrap()
    })
}

fn text(report: &Report) -> String {
    report::text(report, |finding| finding.plan.to_string())
}

fn first_finding() -> Options {
    Options {
        findings: 1,
        ..Options::default()
    }
}

fn case(number: usize) -> &'static Case {
    CASES.iter().find(|case| case.number == number).unwrap()
}

#[test]
fn mistake_of_each_class_is_found_and_not_in_its_twin() {
    // One of a crash and one of a late watch; `make explore-corpus` plays all.
    for number in [2, 11] {
        let case = case(number);
        let found = explore(case, case.wrong, &first_finding());
        assert!(!found.is_sound(), "{}\n{}", case.name, text(&found));
        let again = replay(case, &found, 2);
        assert_eq!((again.runs, again.failed), (2, 2), "{}", text(&again));
        let twin = explore(
            case,
            case.right,
            &Options {
                plans: 10,
                ..Options::default()
            },
        );
        assert!(
            twin.is_sound() && twin.races.is_empty(),
            "{}\n{}",
            case.name,
            text(&twin)
        );
    }
}

#[test]
#[ignore = "`make explore-corpus` runs it"]
fn corpus() {
    let only: Option<usize> = std::env::var("CASE")
        .ok()
        .and_then(|text| text.parse().ok());
    let (mut found, mut alarms, mut plans) = (0, 0, 0);
    let began = Instant::now();
    for case in CASES
        .iter()
        .filter(|case| only.is_none_or(|only| only == case.number))
    {
        let wrong = explore(case, case.wrong, &first_finding());
        let right = explore(case, case.right, &Options::default());
        found += usize::from(!wrong.is_sound());
        let alarm = !right.is_sound() || !right.races.is_empty();
        alarms += usize::from(alarm);
        plans += wrong.runs + right.runs;
        let by = wrong
            .findings
            .first()
            .map(|finding| match &finding.kept.change {
                Some(change) => format!("{change} {}", finding.plan),
                None => finding.plan.to_string(),
            });
        println!(
            "{:2} {:45} {}  twin: {} in {} plans",
            case.number,
            case.name,
            by.map_or("NOT FOUND".to_owned(), |by| format!(
                "found after {} plans: {by}",
                wrong.runs
            )),
            if alarm { "ALARM" } else { "sound" },
            right.runs
        );
        if alarm || only.is_some() {
            println!("{}\n{}", text(&wrong), text(&right));
        }
    }
    let (mut processes, mut seen) = (0, 0);
    for process in blackbox::PROCESSES
        .iter()
        .filter(|process| only.is_none_or(|only| only == process.number))
    {
        if process.language == "Python" && !blackbox::has_python() {
            println!(
                "{:2} as a process in Python: python3 is not installed",
                process.number
            );
            continue;
        }
        let wrong = blackbox::explore(process, true);
        let right = blackbox::explore(process, false);
        processes += 1;
        seen += usize::from(!wrong.is_sound());
        let alarm = !right.is_sound() || !right.races.is_empty();
        alarms += usize::from(alarm);
        plans += wrong.runs + right.runs;
        let (language, number) = (process.language, process.number);
        let found = if wrong.is_sound() {
            "NOT FOUND"
        } else {
            "found"
        };
        let twin = if alarm { "ALARM" } else { "sound" };
        println!(
            "{number:2} as a process in {language:32} {found}  twin: {twin} in {} plans",
            right.runs
        );
        if alarm || wrong.is_sound() || only.is_some() {
            println!("{}\n{}", text(&wrong), text(&right));
        }
    }
    println!(
        "found {found} of {} here ({ALL} in the list), {seen} of {processes} as processes, {alarms} alarms on twins, {plans} plans in {:.1} s, {:.1} s of CPU",
        CASES.len(),
        began.elapsed().as_secs_f64(),
        cpu_seconds()
    );
    let all = found == CASES.len() && seen == processes;
    assert!(only.is_some() || all && alarms == 0);
}

/// The processor time of this process and of those that it has started.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which is in parentheses: user and system time, and those of children.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = rest.split_ascii_whitespace().skip(11).take(4);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

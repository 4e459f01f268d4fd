//! The corpus: operators with one mistake each, as real ones have made it, beside twins without it.
//! Every mistake must be found, and nothing in a twin. `make explore-corpus` prints how many are.

mod kit;
mod operators;

use std::time::Instant;

use serde_json::{Value, json};
use windlass_explore::explore::{Exploration, Options, Report, part};
use windlass_explore::scenario::{Named, Scenario, Step};
use windlass_explore::{Base, Pace, Subject, report};

use kit::{Kind, Reconcile, Relist};
use operators as op;

/// One mistake and its twin.
struct Case {
    /// Its number in the list of mistakes.
    number: usize,
    name: &'static str,
    steps: &'static [Does],
    watches: &'static [Kind],
    wrong: (Reconcile, Relist),
    right: Reconcile,
}

/// What a user does to the one Web there is.
#[derive(Clone, Copy)]
enum Does {
    /// Applies it with this size.
    Make(i64),
    Size(i64),
    Delete,
    /// Applies a Secret that belongs to it by a label.
    Secret,
}

use Does::{Delete, Make, Secret, Size};
use Relist::{Adds, Replaces};

macro_rules! case {
    ($number:literal $name:literal, $steps:expr, $watches:expr, $operator:ident) => {
        Case {
            number: $number,
            name: $name,
            steps: &$steps,
            watches: &$watches,
            wrong: (op::$operator::<false>, Replaces),
            right: op::$operator::<true>,
        }
    };
}

const CASES: &[Case] = &[
    case!(1 "size noted before it is applied", [Make(1), Size(3)], ["web"], size_noted_first),
    case!(2 "second object in the branch of the first", [Make(1)], ["web"], second_in_the_branch_of_the_first),
    case!(3 "claim changed after its pod is deleted", [Make(1), Size(3)], ["web", "configmap", "claim"], claim_after_its_pod),
    case!(4 "phase written after the deletion", [Make(1), Size(3)], ["web", "configmap"], phase_after_the_deletion),
    case!(6 "hash written before the restart", [Make(1), Size(3)], ["web"], hash_before_the_restart),
    case!(7 "revision counter in memory", [Make(1), Size(3)], ["web"], counter_in_memory),
    case!(8 "recovery noted before it is done", [Make(1)], ["web"], recovery_noted_first),
    case!(9 "claims deleted by label", [Make(1), Delete, Make(1)], ["web"], claims_by_label),
    case!(11 "children counted in the cache", [Make(1), Size(2)], ["web", "configmap"], counted_in_the_cache),
    case!(12 "owner looked up through a slower watch", [Make(1), Secret], ["secret", "web"], owner_by_a_slower_watch),
    case!(14 "gives up after a conflict", [Make(1), Size(3)], ["web"], gives_up_after_a_conflict),
    case!(16 "switched off by an old sight", [Make(0), Size(1)], ["web"], switched_off_by_an_old_sight),
    case!(18 "claim deleted with the sight of its pod", [Make(1), Size(0)], ["web", "pod"], claim_with_the_sight_of_its_pod),
    case!(20 "cleans up on the event", [Make(1), Delete], ["web"], cleans_up_on_the_event),
    Case {
        number: 21,
        name: "cache keeps what a list no longer has",
        steps: &[Make(1), Delete],
        watches: &["web"],
        wrong: (op::trusts_its_cache, Adds),
        right: op::trusts_its_cache,
    },
    case!(22 "children released on the event", [Make(1), Delete], ["web", "configmap"], releases_children_on_the_event),
    case!(23 "already exists is fatal", [Make(1)], ["web"], already_there_is_fatal),
    case!(24 "conflict is swallowed", [Make(1), Size(3)], ["web"], conflict_is_swallowed),
];

/// How many mistakes the list has.
const ALL: usize = 30;

fn web(size: i64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Web",
        "metadata": { "name": "one" }, "spec": { "size": size },
    })
}

fn scenario(steps: &[Does]) -> Scenario {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
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
    });
    let named = || Named {
        api_version: "example.com/v1".to_owned(),
        kind: "Web".to_owned(),
        name: "one".to_owned(),
        namespace: None,
    };
    let steps = steps.iter().map(|does| match does {
        Make(size) => Step::Apply(vec![web(*size)]),
        Size(size) => Step::Patch(named(), json!({ "spec": { "size": size } })),
        Delete => Step::Delete(named()),
        Secret => Step::Apply(vec![json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "of-one", "labels": { "of": "one" } },
        })]),
    });
    Scenario {
        setup: vec![definition],
        steps: steps.collect(),
        // What it notes of its recovery differs by nature.
        ignore: vec!["recovered".to_owned()],
        ..Scenario::default()
    }
}

/// Explores one operator on a runtime of its own, whose clock moves when nothing else can.
fn explore(case: &Case, (reconcile, relist): (Reconcile, Relist), options: &Options) -> Report {
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
        let watches = case.watches;
        let subject = Subject::function(move |client| kit::run(client, watches, relist, reconcile));
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
        let scenario = part(&scenario(case.steps), &kept.steps);
        let base = Base::prepare(&scenario, Pace::virtual_time())
            .await
            .unwrap();
        let (watches, (reconcile, relist)) = (case.watches, case.wrong);
        let subject = Subject::function(move |client| kit::run(client, watches, relist, reconcile));
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
            (case.right, Replaces),
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
        let right = explore(case, (case.right, Replaces), &Options::default());
        found += usize::from(!wrong.is_sound());
        let alarm = !right.is_sound() || !right.races.is_empty();
        alarms += usize::from(alarm);
        plans += wrong.runs + right.runs;
        let by = wrong
            .findings
            .first()
            .map(|finding| finding.plan.to_string());
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
    println!(
        "found {found} of {} here ({ALL} in the list), {alarms} alarms on twins, {plans} plans in {:.1} s",
        CASES.len(),
        began.elapsed().as_secs_f64()
    );
    assert!(only.is_some() || found == CASES.len() && alarms == 0);
}

//! Which plans a trace calls for: where a fault can make a difference.
//!
//! A restarted process knows only what is stored: a kill counts after each write that changed
//! something, and nowhere else. An event that is late counts if the operator wrote after it. A write
//! that is refused or whose answer is lost counts once per write. Of things that happen again and
//! again under one name, the first few stand for all.

use std::collections::{HashMap, HashSet, VecDeque};

use windlass_apiserver::hooks::EventKind;

use crate::edge::OPERATOR;
use crate::plan::{Act, Fault, Plan, Point};
use crate::scenario::Step;
use crate::state::{Mask, changed_fields};
use crate::trace::{Change, Happened, Record};
use crate::world::is_fleeting;

/// How many points of one name a kind of fault is tried at.
const ALIKE: usize = 3;

/// What is known about the undisturbed run, beside what happened in it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Facts<'a> {
    pub(crate) steps: &'a [Step],
    /// Whether the operator asks for lists of any version.
    pub(crate) reads_any_version: bool,
    /// Whether replicas of it elect a leader.
    pub(crate) elects: bool,
    /// Whether ten minutes pass in no time.
    pub(crate) is_virtual: bool,
}

/// Kinds of faults, in the order in which they take turns.
#[derive(Clone, Copy)]
enum Class {
    Rest,
    /// After a deletion: it cannot be taken back.
    KillAfterDelete,
    Kill,
    Hold,
    Skip,
    Answer,
    Refusal,
    Stale,
    Late,
}

/// What a trace calls for, by kind.
#[derive(Default)]
struct Called {
    seen: HashMap<(Act, String), usize>,
    classes: [VecDeque<Fault>; 9],
}

impl Called {
    /// Adds a fault, unless enough of its name are there.
    fn add(&mut self, class: Class, act: Act, at: &Point) {
        let count = self.seen.entry((act, at.what.clone())).or_default();
        *count += 1;
        if *count <= ALIKE {
            let at = at.clone();
            self.classes[class as usize].push_back(Fault { act, at });
        }
    }

    fn plans(mut self) -> Vec<Plan> {
        let mut plans = Vec::new();
        while self.classes.iter().any(|class| !class.is_empty()) {
            for (index, class) in self.classes.iter_mut().enumerate() {
                // Kills find the most.
                let kills = [Class::KillAfterDelete as usize, Class::Kill as usize];
                let turns = if kills.contains(&index) { 2 } else { 1 };
                for _ in 0..turns {
                    plans.extend(class.pop_front().map(|fault| Plan(vec![fault])));
                }
            }
        }
        plans
    }
}

/// Every plan of one fault, in the order in which they are run.
pub(crate) fn single(records: &[Record], facts: Facts<'_>) -> Vec<Plan> {
    let mut called = Called::default();
    let steps = facts.steps.len();
    for number in (1..=steps).rev() {
        let at = step(number);
        if number == steps || number == 1 {
            called.add(Class::Rest, Act::Restart, &at);
        }
        called.add(Class::Rest, Act::Down, &at);
        if matches!(facts.steps[number - 1], Step::Delete(_)) {
            called.add(Class::Late, Act::Foreground, &at);
        }
    }
    let last_write = records
        .iter()
        .rposition(|record| matches!(record.happened, Happened::Attempt(_)));
    let mut restarted = HashSet::new();
    for (index, record) in records.iter().enumerate() {
        let has_next = record.step > 0 && record.step < steps;
        let is_followed = last_write.is_some_and(|last| last > index);
        match &record.happened {
            Happened::Write {
                at,
                changes,
                conflicts,
                ..
            } => {
                if let Some(attempt) = conflicts {
                    called.add(Class::Refusal, Act::Refuse(409), attempt);
                }
                if !changes.iter().any(is_telling) {
                    continue;
                }
                let deletes = at.what.starts_with("delete");
                let class = if deletes {
                    Class::KillAfterDelete
                } else {
                    Class::Kill
                };
                called.add(class, Act::Kill, at);
                called.add(Class::Answer, Act::LoseAnswer, at);
                if has_next {
                    called.add(Class::Late, Act::KillOverStep, at);
                    called.add(Class::Answer, Act::HoldAnswerOverStep, at);
                }
                if is_followed {
                    called.add(Class::Answer, Act::HoldAnswer, at);
                }
                if restarted.insert(record.step) {
                    called.add(Class::Answer, Act::ServerRestart, at);
                }
            }
            Happened::Attempt(at) => {
                called.add(Class::Refusal, Act::Refuse(500), at);
                if at.what.starts_with("create ") {
                    called.add(Class::Refusal, Act::Refuse(403), at);
                }
                if facts.elects && has_next {
                    called.add(Class::Late, Act::Overtake, at);
                }
            }
            Happened::Event {
                at, initial: false, ..
            } => {
                if is_followed {
                    called.add(Class::Hold, Act::HoldUntilWrite, at);
                    called.add(Class::Skip, Act::Skip, at);
                    called.add(Class::Hold, Act::Hold, at);
                }
                // What is due after minutes is written then, though nothing was undisturbed.
                if facts.is_virtual {
                    called.add(Class::Late, Act::HoldLong, at);
                }
                if has_next {
                    called.add(Class::Hold, Act::HoldOverStep, at);
                    called.add(Class::Skip, Act::SkipOverStep, at);
                }
                if facts.reads_any_version && !at.what.starts_with("ADDED") {
                    called.add(Class::Stale, Act::StaleRestart, at);
                }
            }
            _ => {}
        }
    }
    called.plans()
}

/// The point of a step.
pub(crate) fn step(number: usize) -> Point {
    Point {
        operator: OPERATOR.to_owned(),
        what: format!("step {number}"),
        nth: 1,
    }
}

/// Whether a change is more than a time that was noted.
pub(crate) fn is_telling(change: &Change) -> bool {
    let Some(before) = change
        .before
        .as_ref()
        .filter(|_| change.kind == EventKind::Modified)
    else {
        return true;
    };
    let parse = |bytes: &bytes::Bytes| serde_json::from_slice(bytes).unwrap_or_default();
    let fields = changed_fields(&parse(before), &parse(&change.after));
    fields.iter().any(|field| !is_fleeting(field))
}

/// Plans of a second fault after the first, from how the run with the first one went: the operator is
/// killed once more, while it recovers.
pub(crate) fn second(first: &Plan, records: &[Record], reference: &[Record]) -> Vec<Plan> {
    let Some(Fault { act, at }) = first.0.last() else {
        return Vec::new();
    };
    let passed = records.iter().position(|record| match &record.happened {
        Happened::Write { at: point, .. } => point == at,
        Happened::Event { at: point, .. } => point == at && *act != Act::StaleRestart,
        _ => false,
    });
    let Some(passed) = passed else {
        return Vec::new();
    };
    let known: HashSet<&Point> = points(reference).collect();
    let mut plans: Vec<Plan> = Vec::new();
    let add = |plans: &mut Vec<Plan>, at: &Point| {
        let mut faults = first.0.clone();
        faults.push(Fault {
            act: Act::Kill,
            at: at.clone(),
        });
        plans.push(Plan(faults));
    };
    // What the undisturbed run does not write is recovery: first.
    let (mut usual, mut recovering) = (Vec::new(), Vec::new());
    for record in &records[passed + 1..] {
        if let Happened::Write { at, changes, .. } = &record.happened
            && changes.iter().any(is_telling)
        {
            let one = if known.contains(at) {
                &mut usual
            } else {
                &mut recovering
            };
            add(one, at);
        }
    }
    plans.append(&mut recovering);
    plans.append(&mut usual);
    plans
}

fn points(records: &[Record]) -> impl Iterator<Item = &Point> {
    records.iter().filter_map(|record| match &record.happened {
        Happened::Write { at, .. } => Some(at),
        _ => None,
    })
}

/// The plan with which a finding is compared: the same moments, and nothing but a pause there.
pub(crate) fn control(plan: &Plan) -> Plan {
    let faults = plan
        .0
        .iter()
        .filter(|fault| !fault.at.what.starts_with("step "));
    let faults = faults.map(|fault| Fault {
        act: Act::Pause,
        at: fault.at.clone(),
    });
    Plan(faults.collect())
}

/// What is different among runs that nothing disturbs.
pub(crate) fn mask(states: &[Vec<Option<crate::state::State>>]) -> Mask {
    let mut mask = Mask::default();
    let Some((first, others)) = states.split_first() else {
        return mask;
    };
    for other in others {
        for (one, other) in first.iter().zip(other) {
            if let (Some(one), Some(other)) = (one, other) {
                mask.learn(one, other);
            }
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn point(what: &str, nth: usize) -> Point {
        Point {
            operator: OPERATOR.to_owned(),
            what: what.to_owned(),
            nth,
        }
    }

    fn record(step: usize, happened: Happened) -> Record {
        Record {
            at: Duration::ZERO,
            step,
            happened,
        }
    }

    fn write(what: &str, nth: usize, changed: bool) -> [Record; 2] {
        let change = Change {
            object: "configmaps a in default".to_owned(),
            resource: "configmaps".to_owned(),
            kind: EventKind::Added,
            revision: 5,
            before: None,
            after: Bytes::from_static(b"{}"),
        };
        let at = point(what, nth);
        [
            record(1, Happened::Attempt(at.clone())),
            record(
                1,
                Happened::Write {
                    request: what.to_owned(),
                    at,
                    code: 200,
                    changes: changed.then_some(change).into_iter().collect(),
                    unseen: Vec::new(),
                    conflicts: what.starts_with("patch").then(|| point(what, nth)),
                },
            ),
        ]
    }

    fn event(what: &str) -> Record {
        let happened = Happened::Event {
            at: point(what, 1),
            revision: 4,
            object: what.to_owned(),
            initial: false,
        };
        record(1, happened)
    }

    /// Plans of a scenario of one step.
    fn plans(records: &[Record]) -> Vec<Plan> {
        let steps = [Step::Advance(Duration::ZERO)];
        single(
            records,
            Facts {
                steps: &steps,
                ..Facts::default()
            },
        )
    }

    fn texts(plans: &[Plan]) -> Vec<String> {
        plans.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn write_without_effect_is_no_point_to_be_killed_at() {
        let records: Vec<Record> = [write("a", 1, true), write("b", 1, false)].concat();
        let plans = texts(&plans(&records));
        let kills: Vec<&String> = plans
            .iter()
            .filter(|text| text.starts_with("kill"))
            .collect();
        assert_eq!(kills, ["kill-after operator: a #1"]);
    }

    #[test]
    fn event_after_the_last_write_is_not_held() {
        let mut records = vec![event("early")];
        records.extend(write("a", 1, true));
        records.push(event("late"));
        let plans = texts(&plans(&records));
        assert!(
            plans.contains(&"hold operator: early #1".to_owned()),
            "{plans:?}"
        );
        assert!(!plans.iter().any(|text| text.contains("late")), "{plans:?}");
    }

    #[test]
    fn conflict_is_planned_only_where_a_version_is_named() {
        let records = [
            write("create pods in default", 1, true),
            write("patch pods a", 1, true),
        ];
        let plans = texts(&plans(&records.concat()));
        let refused = plans.iter().filter(|text| text.starts_with("refuse"));
        assert_eq!(
            refused.collect::<Vec<_>>(),
            [
                "refuse-500 operator: create pods in default #1",
                "refuse-403 operator: create pods in default #1",
                "refuse-500 operator: patch pods a #1",
                "refuse-409 operator: patch pods a #1",
            ]
        );
    }

    #[test]
    fn points_of_one_name_are_tried_a_few_times() {
        let records: Vec<Record> = (1..=9).flat_map(|nth| write("a", nth, true)).collect();
        let plans = texts(&plans(&records));
        let kills = plans.iter().filter(|text| text.starts_with("kill"));
        assert_eq!(kills.count(), ALIKE);
    }

    #[test]
    fn kills_after_deletions_come_before_other_kills() {
        let records = [
            write("create pods", 1, true),
            write("delete pods a", 1, true),
        ];
        let plans = texts(&plans(&records.concat()));
        let mut kills = plans.iter().filter(|text| text.starts_with("kill-after"));
        assert_eq!(
            kills.next().map(String::as_str),
            Some("kill-after operator: delete pods a #1")
        );
    }

    #[test]
    fn lists_of_the_past_are_planned_only_for_clients_that_accept_them() {
        let records = [event("MODIFIED webs one")];
        let stale = |reads| {
            let facts = Facts {
                reads_any_version: reads,
                ..Facts::default()
            };
            texts(&single(&records, facts))
                .join(" ")
                .contains("restart-before")
        };
        assert!(stale(true) && !stale(false));
    }

    #[test]
    fn second_kill_is_tried_first_where_the_operator_recovers() {
        let reference = [write("a", 1, true), write("b", 1, true)].concat();
        let disturbed = [
            write("a", 1, true),
            write("repair", 1, true),
            write("b", 1, true),
        ]
        .concat();
        let first: Plan = "kill-after operator: a #1".parse().unwrap();
        assert_eq!(
            texts(&second(&first, &disturbed, &reference)),
            [
                "kill-after operator: a #1; kill-after operator: repair #1",
                "kill-after operator: a #1; kill-after operator: b #1",
            ]
        );
    }

    #[test]
    fn control_pauses_where_the_plan_disturbs() {
        let plan: Plan = "kill-after operator: a #1; down-during operator: step 2 #1"
            .parse()
            .unwrap();
        assert_eq!(control(&plan).to_string(), "pause operator: a #1");
    }
}

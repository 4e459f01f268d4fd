//! Where a run of a test can be disturbed: points of its trace, and the plans that follow from them.

use windlass_explore::plan::{Act, Fault, Plan, Point};

/// What happened in a run, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// An operator is about to write.
    Attempt(Point),
    /// A write of an operator was applied.
    Applied {
        at: Point,
        /// Whether it changed anything.
        changed: bool,
        /// The attempt that it was, if it named a version: another writer could have been quicker.
        conflicts: Option<Point>,
    },
    /// An operator calls a system outside of the cluster.
    Outside {
        at: Point,
        /// Whether the call changes anything there.
        changes: bool,
    },
    /// An event was sent to an operator.
    Event(Point),
}

/// Every plan of one fault that can make a difference to a run that went like this: those of the
/// kinds that find most first.
pub(super) fn single(trace: &[Entry]) -> Vec<Plan> {
    let mut faults = Vec::new();
    for (index, entry) in trace.iter().enumerate() {
        match entry {
            Entry::Applied {
                at,
                changed,
                conflicts,
            } => {
                // A create has no version to be in conflict with: only what names one is refused so.
                if let Some(attempt) = conflicts {
                    faults.push((2, Act::Refuse(409), attempt));
                }
                // A restarted process knows what is stored: before and after a write that changed
                // nothing, that is the same.
                if *changed {
                    faults.push((0, Act::Kill, at));
                    faults.push((2, Act::LoseAnswer, at));
                }
            }
            Entry::Outside { at, changes: true } => {
                faults.push((0, Act::Kill, at));
                faults.push((2, Act::LoseAnswer, at));
                faults.push((2, Act::LoseCall, at));
            }
            Entry::Attempt(at) => faults.push((2, Act::Refuse(500), at)),
            // Nobody knew less than in the reference when nothing was written afterwards.
            Entry::Event(at) if is_followed_by_write(&trace[index..], &at.operator) => {
                faults.push((1, Act::HoldUntilWrite, at));
                faults.push((1, Act::Hold, at));
                faults.push((3, Act::Skip, at));
            }
            Entry::Outside { changes: false, .. } | Entry::Event(_) => {}
        }
    }
    faults.sort_by_key(|(rank, act, _)| (*rank, *act));
    faults
        .into_iter()
        .map(|(_, act, at)| {
            Plan(vec![Fault {
                act,
                at: at.clone(),
            }])
        })
        .collect()
}

fn is_followed_by_write(rest: &[Entry], operator: &str) -> bool {
    rest.iter()
        .any(|entry| matches!(entry, Entry::Attempt(at) if at.operator == operator))
}

/// Plans of a second fault after the first, from how the run with the first one went: the operator is
/// killed once more, while it recovers.
pub(super) fn second(first: &Plan, trace: &[Entry]) -> Vec<Plan> {
    let Some(Fault { at, act }) = first.0.last() else {
        return Vec::new();
    };
    let passed = trace.iter().position(|entry| match entry {
        Entry::Applied { at: point, .. } | Entry::Outside { at: point, .. } => {
            *act == Act::Kill && point == at
        }
        Entry::Event(point) => point == at,
        Entry::Attempt(_) => false,
    });
    let after = passed.map_or(&[][..], |passed| &trace[passed + 1..]);
    let kills = after.iter().filter_map(|entry| match entry {
        Entry::Applied {
            at, changed: true, ..
        } => Some(Fault {
            act: Act::Kill,
            at: at.clone(),
        }),
        _ => None,
    });
    kills
        .map(|kill| Plan(first.0.iter().cloned().chain([kill]).collect()))
        .collect()
}

/// The plan with which a finding is compared: the same moments, and nothing but a pause there.
pub(super) fn control(plan: &Plan) -> Plan {
    let paused = plan.0.iter().map(|fault| Fault {
        act: Act::Pause,
        at: fault.at.clone(),
    });
    Plan(paused.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(what: &str, nth: usize) -> Point {
        Point {
            operator: "demo".to_owned(),
            what: what.to_owned(),
            nth,
        }
    }

    fn applied(what: &str, changed: bool) -> Entry {
        Entry::Applied {
            at: point(what, 1),
            changed,
            conflicts: None,
        }
    }

    #[test]
    fn conflict_is_planned_only_where_a_version_is_named() {
        let named = Entry::Applied {
            at: point("update a", 1),
            changed: true,
            conflicts: Some(point("update a", 1)),
        };
        let attempt = |what| Entry::Attempt(point(what, 1));
        let trace = [
            attempt("create b"),
            applied("create b", true),
            attempt("update a"),
            named,
        ];
        let texts: Vec<String> = single(&trace).iter().map(ToString::to_string).collect();
        let refused: Vec<&String> = texts.iter().filter(|text| text.contains("-409")).collect();
        assert_eq!(refused, ["refuse-409 demo: update a #1"]);
    }

    #[test]
    fn call_to_an_outside_system_is_disturbed_if_it_changes_anything() {
        let call = |what, changes| Entry::Outside {
            at: point(what, 1),
            changes,
        };
        let plans = single(&[call("call get", false), call("call put", true)]);
        let texts: Vec<String> = plans.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "kill-after demo: call put #1",
                "lose-answer demo: call put #1",
                "lose-call demo: call put #1",
            ]
        );
    }

    #[test]
    fn write_without_effect_is_no_point_to_be_killed_at() {
        let plans = single(&[applied("a", true), applied("b", false)]);
        let texts: Vec<String> = plans.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["kill-after demo: a #1", "lose-answer demo: a #1"]);
    }

    #[test]
    fn event_is_held_only_if_a_write_follows() {
        let event = |what| Entry::Event(point(what, 1));
        let trace = [event("early"), Entry::Attempt(point("a", 1)), event("late")];
        let plans = single(&trace);
        let held = plans.iter().filter(|plan| plan.0[0].act == Act::Hold);
        let held: Vec<&str> = held.map(|plan| &*plan.0[0].at.what).collect();
        assert_eq!(held, ["early"]);
    }

    #[test]
    fn second_kill_comes_after_the_first_fault() {
        let trace = [
            applied("a", true),
            applied("b", true),
            applied("c", false),
            applied("d", true),
        ];
        let first: Plan = "kill-after demo: b #1".parse().unwrap();
        let texts: Vec<String> = second(&first, &trace)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["kill-after demo: b #1; kill-after demo: d #1"]);
    }
}

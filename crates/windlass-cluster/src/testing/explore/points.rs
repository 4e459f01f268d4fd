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
            Entry::Applied { at, changed: true } => {
                faults.push((0, Act::Kill, at));
                faults.push((2, Act::LoseAnswer, at));
            }
            Entry::Attempt(at) => {
                faults.push((2, Act::Refuse(409), at));
                faults.push((2, Act::Refuse(500), at));
            }
            // Nobody knew less than in the reference when nothing was written afterwards.
            Entry::Event(at) if is_followed_by_write(&trace[index..], &at.operator) => {
                faults.push((1, Act::HoldUntilWrite, at));
                faults.push((1, Act::Hold, at));
            }
            // A restarted process knows what is stored: before and after a write that changed
            // nothing, that is the same.
            Entry::Applied { changed: false, .. } | Entry::Event(_) => {}
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
        Entry::Applied { at: point, .. } => *act == Act::Kill && point == at,
        Entry::Event(point) => point == at,
        Entry::Attempt(_) => false,
    });
    let after = passed.map_or(&[][..], |passed| &trace[passed + 1..]);
    let kills = after.iter().filter_map(|entry| match entry {
        Entry::Applied { at, changed: true } => Some(Fault {
            act: Act::Kill,
            at: at.clone(),
        }),
        _ => None,
    });
    kills
        .map(|kill| Plan(first.0.iter().cloned().chain([kill]).collect()))
        .collect()
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
        let at = point(what, 1);
        Entry::Applied { at, changed }
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

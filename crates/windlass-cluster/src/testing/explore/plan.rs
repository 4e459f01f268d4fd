//! Plans: which faults a run meets, and at which point of it.
//!
//! A point is named by what happens there, not by its place in the run: `patch deployments.apps web
//! in default`, the second time. So a plan means the same in a run that a fault has changed.

use std::fmt;
use std::str::FromStr;

/// Something that happens in a run: a write of an operator, or an event on its way to one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Point {
    /// Name of the operator.
    pub(super) operator: String,
    /// What happens: `create configmaps in default`, `MODIFIED pods web-0 in default`.
    pub(super) what: String,
    /// Which time, counted from one.
    pub(super) nth: usize,
}

/// What is done at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Act {
    /// The write is applied, and the operator killed before it has the answer.
    Kill,
    /// The event and all later ones of that watch are held until the operator writes, a minute at most.
    HoldUntilWrite,
    /// They are held for a minute.
    Hold,
    /// The write is applied, and the answer lost with its connection.
    LoseAnswer,
    /// The write is refused with this code and not applied.
    Refuse(u16),
}

impl Act {
    const ALL: [(Self, &str); 6] = [
        (Self::Kill, "kill-after"),
        (Self::HoldUntilWrite, "hold-until-write"),
        (Self::Hold, "hold"),
        (Self::LoseAnswer, "lose-answer"),
        (Self::Refuse(409), "refuse-409"),
        (Self::Refuse(500), "refuse-500"),
    ];

    /// How it is written in a plan.
    fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(act, _)| *act == self)
            .map_or("", |(_, name)| name)
    }

    /// Why a real cluster may do this.
    pub(super) fn why_legal(self) -> &'static str {
        match self {
            Self::Kill => "a process can end between any two of its steps",
            Self::HoldUntilWrite | Self::Hold => {
                "a watch can be late by any time, and each by another"
            }
            Self::LoseAnswer => "a connection can break after the request was applied",
            Self::Refuse(409) => "another writer can be quicker: a conflict changes nothing",
            Self::Refuse(_) => "an API server can fail before it applies a request",
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Fault {
    pub(super) act: Act,
    pub(super) at: Point,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point {
            operator,
            what,
            nth,
        } = &self.at;
        write!(f, "{} {operator}: {what} #{nth}", self.act.name())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (act, rest) = text.trim().split_once(' ')?;
            let (operator, rest) = rest.split_once(": ")?;
            let (what, nth) = rest.rsplit_once(" #")?;
            let act = Act::ALL.iter().find(|(_, name)| *name == act)?.0;
            let at = Point {
                operator: operator.to_owned(),
                what: what.to_owned(),
                nth: nth.parse().ok()?,
            };
            Some(Self { act, at })
        };
        parsed().ok_or_else(|| {
            format!("cannot read the fault {text:?}: expected `kill-after OPERATOR: REQUEST #N`")
        })
    }
}

/// The faults of one run; none for the reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Plan(pub(super) Vec<Fault>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(';')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

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
/// most telling kinds first.
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
    fn plan_text_reads_back_as_the_same_plan() {
        for (act, _) in Act::ALL {
            let fault = |nth| Fault {
                act,
                at: point("create pods in default", nth),
            };
            let plan = Plan(vec![fault(1), fault(12)]);
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
        let text = "kill-after demo: patch deployments.apps web in default #2";
        assert_eq!(text.parse::<Plan>().unwrap().to_string(), text);
    }

    #[test]
    fn plan_text_that_is_none_names_what_is_wrong() {
        for text in [
            "",
            "kill-after",
            "explode demo: create pods #1",
            "hold demo: x #one",
        ] {
            let error = text.parse::<Plan>().unwrap_err();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
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

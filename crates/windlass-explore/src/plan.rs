//! Plans: which faults a run meets, and at which point of it.
//!
//! A point is named by what happens there, not by its place in the run: `patch deployments.apps web
//! in default`, the second time. So a plan means the same in a run that a fault has changed.

use std::fmt;
use std::str::FromStr;

/// Something that happens in a run: a write of an operator, an event on its way to one, or a step of
/// the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// Name of the operator.
    pub operator: String,
    /// What happens: `create configmaps in default`, `MODIFIED pods web-0 in default`, `step 2`.
    pub what: String,
    /// Which time, counted from one.
    pub nth: usize,
}

/// What is done at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// The write is applied, and the operator killed before it has the answer.
    Kill,
    /// The same, and it is started again only once the next step of the scenario has settled.
    KillOverStep,
    /// The operator stops for longer than its lease, the write under way. Another instance leads; once
    /// the next step has settled, the write arrives.
    Overtake,
    /// The event and all later ones of that watch are held until the operator writes, a minute at most.
    HoldUntilWrite,
    /// They are held until everything else has settled, or for a minute.
    Hold,
    /// They are held until the next step of the scenario has settled.
    HoldOverStep,
    /// They are held for ten minutes, whatever else happens: virtual time only.
    HoldLong,
    /// They are held until everything else has settled; then the watch ends with 410 Expired, and the
    /// client lists what there is: it never sees the events.
    Skip,
    /// The same, once the next step of the scenario has settled.
    SkipOverStep,
    /// Once the next step has settled, the operator is killed and started again, and its lists that accept
    /// any version are answered as of before the event.
    StaleRestart,
    /// The operator is down while the step is taken.
    Down,
    /// The operator is killed and started again once the step has settled.
    Restart,
    /// What the user deletes in this step is deleted in the foreground: it stays until its dependents are
    /// gone.
    Foreground,
    /// The write is applied, and the answer lost with its connection.
    LoseAnswer,
    /// The write is applied, and the answer comes once everything else has settled: events pass it.
    HoldAnswer,
    /// The answer comes once the next step has settled.
    HoldAnswerOverStep,
    /// The write is applied, and every connection of the operator reset; for a moment none can be made.
    ServerRestart,
    /// A call to a system outside of the cluster is lost before it arrives there.
    LoseCall,
    /// The write is refused with this code and not applied.
    Refuse(u16),
    /// Nothing is lost or reordered: all answers and events for the operator wait a moment.
    Pause,
}

impl Act {
    const ALL: [(Self, &str); 24] = [
        (Self::Kill, "kill-after"),
        (Self::KillOverStep, "kill-over-step"),
        (Self::Overtake, "overtake"),
        (Self::HoldUntilWrite, "hold-until-write"),
        (Self::Hold, "hold"),
        (Self::HoldOverStep, "hold-over-step"),
        (Self::HoldLong, "hold-long"),
        (Self::Skip, "skip"),
        (Self::SkipOverStep, "skip-over-step"),
        (Self::StaleRestart, "restart-before"),
        (Self::Down, "down-during"),
        (Self::Restart, "restart-after"),
        (Self::Foreground, "delete-foreground"),
        (Self::LoseAnswer, "lose-answer"),
        (Self::HoldAnswer, "hold-answer"),
        (Self::HoldAnswerOverStep, "hold-answer-over-step"),
        (Self::ServerRestart, "restart-server"),
        (Self::LoseCall, "lose-call"),
        (Self::Refuse(409), "refuse-409"),
        (Self::Refuse(429), "refuse-429"),
        (Self::Refuse(500), "refuse-500"),
        (Self::Refuse(503), "refuse-503"),
        (Self::Refuse(403), "refuse-403"),
        (Self::Pause, "pause"),
    ];

    /// How it is written in a plan.
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(act, _)| *act == self)
            .map_or("", |(_, name)| name)
    }

    /// In a few words, for a person: `killed after`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Kill => "killed after",
            Self::KillOverStep => "killed, and down over the next step, after",
            Self::Overtake => "stopped past its lease, and another led, before",
            Self::HoldUntilWrite => "watch held until the next write, at",
            Self::Hold => "watch held until all else settled, at",
            Self::HoldOverStep => "watch held over the next step, at",
            Self::HoldLong => "watch held for ten minutes, at",
            Self::Skip => "watch held, then expired (410), at",
            Self::SkipOverStep => "watch held over the next step, then expired (410), at",
            Self::StaleRestart => "restarted with lists from before",
            Self::Down => "down during",
            Self::Restart => "restarted after",
            Self::Foreground => "deletion in the foreground in",
            Self::LoseAnswer => "answer lost of",
            Self::HoldAnswer => "answer held until all else settled, of",
            Self::HoldAnswerOverStep => "answer held over the next step, of",
            Self::ServerRestart => "API server restarted after",
            Self::LoseCall => "call lost:",
            Self::Refuse(409) => "conflict (409) instead of",
            Self::Refuse(429) => "429 instead of",
            Self::Refuse(403) => "quota exceeded (403) instead of",
            Self::Refuse(503) => "503 instead of",
            Self::Refuse(_) => "500 instead of",
            Self::Pause => "paused at",
        }
    }

    /// Why a real cluster may do this.
    pub fn why_legal(self) -> &'static str {
        match self {
            Self::Kill | Self::Restart => "a process can end between any two of its steps",
            Self::Down | Self::KillOverStep => {
                "a process can end at any time, and be down for any time"
            }
            Self::Overtake => {
                "the operator elects a leader by a lease: a leader that stops for longer than that goes \
                 on with the request that was under way"
            }
            Self::Foreground => {
                "a user can delete in the foreground (kubectl delete --cascade=foreground)"
            }
            Self::HoldAnswer | Self::HoldAnswerOverStep => {
                "answers and events come on different streams, and each can be late by any time"
            }
            Self::ServerRestart => "an API server can be restarted at any time",
            Self::HoldUntilWrite | Self::Hold | Self::HoldOverStep | Self::HoldLong => {
                "a watch can be late by any time, and each by another"
            }
            Self::Skip | Self::SkipOverStep => {
                "a watch that is too far behind ends with 410: its client lists what there is, and \
                 does not see what happened in between"
            }
            Self::StaleRestart => {
                "the client asked for a list of any version (resourceVersion=0): a server that is \
                 behind may answer it"
            }
            Self::LoseAnswer => "a connection can break after the request was applied",
            Self::LoseCall => "a connection can break before the request arrives",
            Self::Refuse(409) => {
                "the write names the version that it means, and another writer can be quicker: a conflict \
                 changes nothing"
            }
            Self::Refuse(403) => "a quota can be used up",
            Self::Refuse(429) => "an API server can be busy",
            Self::Refuse(_) => "an API server can fail before it applies a request",
            Self::Pause => "requests and events take time",
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fault {
    /// What is done.
    pub act: Act,
    /// Where.
    pub at: Point,
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
pub struct Plan(pub Vec<Fault>);

impl Plan {
    /// Four letters that follow from it, and from what else it is played with.
    pub fn id(&self, with: &str) -> String {
        // FNV-1a: short, and the same in every release.
        let text = format!("{self}{with}");
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let letters = b"abcdefghijklmnopqrstuvwxyz234567";
        let id = (0..4).map(|at| {
            let index = usize::try_from((hash >> (40 + 5 * at)) & 31).unwrap_or_default();
            char::from(letters[index])
        });
        id.collect()
    }
}

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
}

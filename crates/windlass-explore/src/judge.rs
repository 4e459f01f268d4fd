//! What is wrong with a run, beside the runs that nothing disturbed.

use std::fmt;

use serde::Serialize;

use crate::state::Difference;

/// Kinds whose deletion loses what nothing brings back: data, or what belongs to it.
const PRECIOUS: &[&str] = &[
    "persistentvolumeclaims",
    "persistentvolumes",
    "statefulsets.apps",
    "secrets",
    "namespaces",
];
/// How many differences are named.
const NAMED: usize = 6;

/// Whether objects of this kind must not be deleted by accident.
pub fn is_precious(resource: &str) -> bool {
    PRECIOUS.contains(&resource)
}

/// Whether an object, by what it is called, holds data that nothing makes again.
pub(crate) fn holds_data(object: &str) -> bool {
    let kinds = ["persistentvolumeclaims ", "persistentvolumes ", "secrets "];
    kinds.iter().any(|kind| object.starts_with(kind))
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The operator ended by itself, again and again or with a panic: what it printed last.
    Crashed(String),
    /// An object was deleted that stays when nothing is disturbed, even if it came back.
    Deleted(String),
    /// What must always hold did not: which, and when.
    Broken(String, String),
    /// Objects that are to be deleted stay.
    Stuck(Vec<Difference>),
    /// The cluster ends differently, for good.
    Differs(Vec<Difference>),
    /// A change that is taken back leaves this.
    Lingers(Vec<Difference>),
    /// What was changed is not as what was made so.
    ByItsPast(Vec<Difference>),
    /// The operator does not stop writing: how often, and what it wrote last.
    Restless(String),
    /// A restart at rest changes something.
    WritesAtRest(String),
}

/// What a finding is called in a report that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Title {
    /// [`Wrong::Crashed`].
    Crashed,
    /// [`Wrong::Deleted`].
    Deleted,
    /// [`Wrong::Broken`].
    Broken,
    /// [`Wrong::Stuck`].
    Stuck,
    /// [`Wrong::Differs`].
    Differs,
    /// [`Wrong::Lingers`].
    Lingers,
    /// [`Wrong::ByItsPast`].
    ByItsPast,
    /// [`Wrong::Restless`].
    Restless,
    /// [`Wrong::WritesAtRest`].
    WritesAtRest,
}

impl Title {
    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Crashed => "operator crashes",
            Self::Deleted => "deletes what should stay",
            Self::Broken => "breaks what must always hold",
            Self::Stuck => "deletion never ends",
            Self::Differs => "ends differently",
            Self::Lingers => "change cannot be taken back",
            Self::ByItsPast => "depends on what was before",
            Self::Restless => "never settles",
            Self::WritesAtRest => "restart changes a cluster at rest",
        }
    }

    /// How it is usually fixed.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Crashed => {
                "check what may be absent before it is used; return an error, which is retried, in place of a panic"
            }
            Self::Deleted => {
                "delete only what was read just now, and name its uid and resourceVersion as preconditions"
            }
            Self::Broken => {
                "the order of the writes matters: make the state that must not be seen impossible between any two of them"
            }
            Self::Stuck => {
                "on deletion, do what is left to do by looking at what there is, and remove the finalizer also when it is gone already"
            }
            Self::Differs => {
                "derive what is left to do from what there is in the cluster, not from what was seen or done before; every step must be taken again after a crash at any point"
            }
            Self::Lingers => {
                "remove what is no longer asked for, also labels and annotations; act on what there is even while it is not ready"
            }
            Self::ByItsPast => {
                "write the whole of what is wanted at each reconcile, so that an object that was changed becomes as one that was made so"
            }
            Self::Restless => {
                "compare with what there is before writing, and write only what differs"
            }
            Self::WritesAtRest => {
                "names, counters and hashes must follow from stored objects, not from what the process remembers"
            }
        }
    }
}

impl Wrong {
    /// What it is called.
    pub fn title(&self) -> Title {
        match self {
            Self::Crashed(_) => Title::Crashed,
            Self::Deleted(_) => Title::Deleted,
            Self::Broken(..) => Title::Broken,
            Self::Stuck(_) => Title::Stuck,
            Self::Differs(_) => Title::Differs,
            Self::Lingers(_) => Title::Lingers,
            Self::ByItsPast(_) => Title::ByItsPast,
            Self::Restless(_) => Title::Restless,
            Self::WritesAtRest(_) => Title::WritesAtRest,
        }
    }

    /// From differences that stay.
    pub(crate) fn of(differences: Vec<Difference>) -> Self {
        let going = |difference: &Difference| difference.found.ends_with("being deleted");
        if differences.iter().any(going) {
            Self::Stuck(differences)
        } else {
            Self::Differs(differences)
        }
    }

    /// Whether two plans most likely show the same mistake.
    pub fn is_like(&self, other: &Self) -> bool {
        let sites = |differences: &[Difference]| -> Vec<(String, Option<String>)> {
            let mut sites: Vec<_> = differences
                .iter()
                .map(|one| (one.object.clone(), one.field.clone()))
                .collect();
            sites.truncate(NAMED);
            sites
        };
        match (self, other) {
            (Self::Differs(one), Self::Differs(other))
            | (Self::Stuck(one), Self::Stuck(other))
            | (Self::Lingers(one), Self::Lingers(other))
            | (Self::ByItsPast(one), Self::ByItsPast(other)) => sites(one) == sites(other),
            (Self::Deleted(one), Self::Deleted(other))
            | (Self::Broken(one, _), Self::Broken(other, _)) => one == other,
            (one, other) => one.title() == other.title(),
        }
    }

    /// What was seen, line by line.
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::Crashed(text) | Self::Restless(text) | Self::WritesAtRest(text) => {
                text.lines().map(str::to_owned).collect()
            }
            Self::Deleted(object) => vec![format!(
                "{object} was deleted, and stays when nothing is disturbed"
            )],
            Self::Broken(name, when) => vec![format!("{name}: {when}")],
            Self::Stuck(differences)
            | Self::Differs(differences)
            | Self::Lingers(differences)
            | Self::ByItsPast(differences) => {
                let mut lines: Vec<String> = differences
                    .iter()
                    .take(NAMED)
                    .map(ToString::to_string)
                    .collect();
                if differences.len() > NAMED {
                    lines.push(format!("and {} more", differences.len() - NAMED));
                }
                lines
            }
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title().text())?;
        for line in self.details() {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(object: &str, found: &str) -> Difference {
        Difference {
            object: object.to_owned(),
            field: None,
            expected: "none".to_owned(),
            found: found.to_owned(),
        }
    }

    #[test]
    fn object_that_is_still_being_deleted_is_stuck() {
        let stuck = Wrong::of(vec![difference("webs one", "one that is being deleted")]);
        assert_eq!(stuck.title(), Title::Stuck);
        let differs = Wrong::of(vec![difference("webs one", "one")]);
        assert_eq!(
            differs.to_string(),
            "ends differently\n    webs one: none expected, one found"
        );
    }

    #[test]
    fn findings_about_the_same_object_are_alike() {
        let one = Wrong::of(vec![difference("pods a", "one")]);
        assert!(one.is_like(&Wrong::of(vec![difference("pods a", "2")])));
        assert!(!one.is_like(&Wrong::of(vec![difference("pods b", "one")])));
        assert!(!one.is_like(&Wrong::Deleted("pods a".to_owned())));
    }
}

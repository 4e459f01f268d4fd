//! What is wrong with a run, beside the run that no fault disturbed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::testing::replay::difference;

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    /// The objects at the end, as lines.
    pub(super) state: Vec<String>,
    /// Objects of precious kinds that operators deleted: `persistentvolumeclaims data-0 in default`.
    pub(super) deleted: BTreeSet<String>,
    /// Objects of those kinds that were there at the end.
    pub(super) kept: BTreeSet<String>,
    /// How often each operator wrote once the cluster had settled.
    pub(super) writes_at_rest: BTreeMap<String, usize>,
    /// How many reconciles of each operator panicked.
    pub(super) panics: BTreeMap<String, u64>,
}

/// How a run ended: with this, or with a panic of the scenario.
pub(super) type Ended = Result<Ending, String>;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The scenario panicked: an assertion of it failed, or the cluster never settled.
    Panic(String),
    /// A reconcile panicked, of this operator.
    ReconcilePanic(String),
    /// An object was deleted that stays when nothing is disturbed, even if it came back.
    Deleted(String),
    /// The cluster ends differently: the lines that differ.
    Differs(String),
    /// An operator goes on writing when nothing is left to do.
    Restless(String),
}

impl Wrong {
    /// In a few words.
    pub(super) fn title(&self) -> &'static str {
        match self {
            Self::Panic(_) => "scenario panicked",
            Self::ReconcilePanic(_) => "reconcile panicked",
            Self::Deleted(_) => "deleted what should stay",
            Self::Differs(_) => "ends differently",
            Self::Restless(_) => "does not come to rest",
        }
    }

    fn detail(&self) -> &str {
        match self {
            Self::Panic(text)
            | Self::ReconcilePanic(text)
            | Self::Deleted(text)
            | Self::Differs(text)
            | Self::Restless(text) => text,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())?;
        for line in self.detail().lines() {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

/// What is wrong with `found`, if anything: the worst.
pub(super) fn compare(expected: &Ending, found: &Ended) -> Option<Wrong> {
    let found = match found {
        Ok(found) => found,
        Err(panic) => return Some(Wrong::Panic(panic.clone())),
    };
    let panicked = found.panics.iter().find(|(operator, panics)| {
        let before = expected.panics.get(*operator).copied().unwrap_or_default();
        **panics > before
    });
    if let Some((operator, panics)) = panicked {
        return Some(Wrong::ReconcilePanic(format!("{operator}: {panics} times")));
    }
    let mut lost = found.deleted.difference(&expected.deleted);
    if let Some(lost) = lost.find(|object| expected.kept.contains(*object)) {
        return Some(Wrong::Deleted(lost.clone()));
    }
    if found.state != expected.state {
        return Some(Wrong::Differs(difference(&expected.state, &found.state)));
    }
    // Some write at intervals; a run may see one interval more than another.
    let restless = found.writes_at_rest.iter().find(|(operator, writes)| {
        let usual = expected.writes_at_rest.get(*operator).copied();
        **writes > 2 * usual.unwrap_or_default() + 2
    });
    restless.map(|(operator, writes)| {
        Wrong::Restless(format!(
            "{operator} wrote {writes} times after the cluster had settled"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(state: &[&str]) -> Ending {
        Ending {
            state: state.iter().map(ToString::to_string).collect(),
            ..Ending::default()
        }
    }

    #[test]
    fn equal_endings_are_sound() {
        let one = ending(&["Pod a"]);
        assert_eq!(compare(&one, &Ok(one.clone())), None);
    }

    #[test]
    fn object_deleted_and_created_again_is_wrong_only_if_the_reference_keeps_it() {
        let claim = || BTreeSet::from(["persistentvolumeclaims data in default".to_owned()]);
        let mut expected = ending(&["PersistentVolumeClaim data"]);
        let mut found = expected.clone();
        found.deleted = claim();
        assert_eq!(compare(&expected, &Ok(found.clone())), None);
        expected.kept = claim();
        let wrong = compare(&expected, &Ok(found.clone())).unwrap();
        assert_eq!(wrong.title(), "deleted what should stay");
        expected.deleted = claim();
        assert_eq!(compare(&expected, &Ok(found)), None);
    }

    #[test]
    fn ending_with_another_object_differs_by_its_line() {
        let found = compare(&ending(&["Pod a"]), &Ok(ending(&["Pod b"])));
        assert_eq!(found, Some(Wrong::Differs("- Pod a\n+ Pod b".to_owned())));
    }

    #[test]
    fn operator_that_writes_at_rest_is_found_unless_the_reference_does_too() {
        let wrote = |writes| Ending {
            writes_at_rest: BTreeMap::from([("demo".to_owned(), writes)]),
            ..Ending::default()
        };
        assert_eq!(compare(&wrote(5), &Ok(wrote(6))), None);
        let wrong = compare(&wrote(0), &Ok(wrote(20))).unwrap();
        assert_eq!(wrong.title(), "does not come to rest");
    }

    #[test]
    fn panic_of_the_scenario_and_of_a_reconcile_are_wrong() {
        let expected = Ending::default();
        let wrong = compare(&expected, &Err("no such object".to_owned())).unwrap();
        assert_eq!(wrong.to_string(), "scenario panicked\n    no such object");
        let panicked = Ending {
            panics: BTreeMap::from([("demo".to_owned(), 1)]),
            ..Ending::default()
        };
        assert!(matches!(
            compare(&expected, &Ok(panicked)),
            Some(Wrong::ReconcilePanic(_))
        ));
    }
}

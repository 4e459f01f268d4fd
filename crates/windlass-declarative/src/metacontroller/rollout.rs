//! Rolling updates: which child follows which revision of its parent.
//!
//! Every revision of the parent that still has children is kept. Of the children that are updated
//! one by one, each belongs to one revision; the newest takes over the next, in the order in which
//! the hook names them, when all that it has are as it wants them and well.

use std::collections::{BTreeMap, BTreeSet};

/// A child, by group, kind and name.
pub(super) type Child = (String, String, String);

/// A revision of the parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Claims {
    /// The children that follow it.
    pub(super) children: BTreeSet<Child>,
}

/// What is known about a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It is not there.
    Missing,
    /// It is there, and not as the newest revision wants it.
    Differs,
    /// As the newest revision wants it, and not well, or not known to be.
    Unwell,
    /// As the newest revision wants it, and well.
    Well,
}

/// How far a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All children follow the newest revision.
    Done,
    /// This one is updated next.
    Updating(Child),
    /// This one has to be well first.
    Waiting(Child, Seen),
}

/// Moves at most one child to the newest revision, which is the first; beside that those that are
/// as it wants them already, and those that no revision has.
///
/// `wanted` are the children that the newest revision wants and that are updated one by one, in the
/// hook's order.
pub(super) fn advance(
    revisions: &mut [Claims],
    wanted: &[Child],
    seen: &BTreeMap<Child, Seen>,
) -> Progress {
    let Some((newest, older)) = revisions.split_first_mut() else {
        return Progress::Done;
    };
    let are_wanted: BTreeSet<&Child> = wanted.iter().collect();
    // What is not wanted is deleted at once; and each child has one revision, the newest first.
    newest.children.retain(|child| are_wanted.contains(child));
    let mut claimed = newest.children.clone();
    for revision in &mut *older {
        revision
            .children
            .retain(|child| are_wanted.contains(child) && claimed.insert(child.clone()));
    }
    let look = |child: &Child| seen.get(child).copied().unwrap_or(Seen::Missing);
    for child in wanted {
        let is_as_wanted = matches!(look(child), Seen::Well | Seen::Unwell);
        if !claimed.contains(child) || is_as_wanted {
            newest.children.insert(child.clone());
            for revision in &mut *older {
                revision.children.remove(child);
            }
        }
    }
    let Some(next) = wanted
        .iter()
        .find(|child| !newest.children.contains(*child))
    else {
        return Progress::Done;
    };
    let unwell = |child: &&Child| look(child) != Seen::Well;
    if let Some(child) = newest.children.iter().find(unwell) {
        return Progress::Waiting(child.clone(), look(child));
    }
    newest.children.insert(next.clone());
    for revision in older {
        revision.children.remove(next);
    }
    Progress::Updating(next.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(name: &str) -> Child {
        (String::new(), "Pod".into(), name.into())
    }

    fn claims(names: &[&str]) -> Claims {
        Claims {
            children: names.iter().map(|name| child(name)).collect(),
        }
    }

    fn seen(of: &[(&str, Seen)]) -> BTreeMap<Child, Seen> {
        of.iter().map(|(name, seen)| (child(name), *seen)).collect()
    }

    #[test]
    fn first_revision_takes_all_children() {
        let mut revisions = [claims(&[])];
        let wanted = [child("b"), child("a")];
        assert_eq!(advance(&mut revisions, &wanted, &seen(&[])), Progress::Done);
        assert_eq!(revisions, [claims(&["a", "b"])]);
    }

    #[test]
    fn new_revision_takes_one_child_at_a_time_in_the_order_of_the_hook() {
        let mut revisions = [claims(&[]), claims(&["a", "b", "c"])];
        let wanted = [child("c"), child("a"), child("b")];
        let all = |state| seen(&[("a", state), ("b", state), ("c", state)]);
        let first = advance(&mut revisions, &wanted, &all(Seen::Differs));
        assert_eq!(first, Progress::Updating(child("c")));
        assert_eq!(revisions, [claims(&["c"]), claims(&["a", "b"])]);
        // Not before the first is well.
        let mut now = all(Seen::Differs);
        for state in [Seen::Differs, Seen::Missing, Seen::Unwell] {
            now.insert(child("c"), state);
            let held = advance(&mut revisions, &wanted, &now);
            assert_eq!(held, Progress::Waiting(child("c"), state));
            assert_eq!(revisions, [claims(&["c"]), claims(&["a", "b"])]);
        }
        now.insert(child("c"), Seen::Well);
        let second = advance(&mut revisions, &wanted, &now);
        assert_eq!(second, Progress::Updating(child("a")));
    }

    #[test]
    fn child_that_is_as_wanted_already_is_moved_at_once() {
        let mut revisions = [claims(&[]), claims(&["a", "b"])];
        let now = seen(&[("a", Seen::Well), ("b", Seen::Well)]);
        let wanted = [child("a"), child("b")];
        assert_eq!(advance(&mut revisions, &wanted, &now), Progress::Done);
        assert_eq!(revisions, [claims(&["a", "b"]), claims(&[])]);
    }

    #[test]
    fn child_that_is_not_wanted_any_more_has_no_revision() {
        let mut revisions = [claims(&["a", "x"]), claims(&["a", "y"])];
        let now = seen(&[("a", Seen::Well)]);
        assert_eq!(advance(&mut revisions, &[child("a")], &now), Progress::Done);
        assert_eq!(revisions, [claims(&["a"]), claims(&[])]);
    }
}

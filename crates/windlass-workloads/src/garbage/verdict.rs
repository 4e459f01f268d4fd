//! What becomes of an object, given what is known for sure about its owners.
//!
//! An object with an owner that exists and stays is kept; references to owners that are gone, or
//! that wait for their dependents to go, are struck from it. An object whose owners are all gone
//! goes too. If the last of its owners only waits for it, it goes in the foreground when it has
//! dependents of its own, so that the wait covers them as well.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::graph::{Graph, Node, Uid};

/// The truth about one owner, as the API server tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It exists and stays.
    Solid,
    /// It does not exist: no object of that name, or another one with another uid.
    Gone,
    /// It exists only to wait for its dependents to go.
    Awaiting,
    /// It cannot be told, because its kind is unknown here: nothing may be concluded.
    Unknown,
}

/// How the dependents of an object that is deleted are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What to do about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Keep,
    /// Strike the references to these owners.
    Strike(Vec<Uid>),
    /// Delete it.
    Delete {
        propagation: Propagation,
        /// Stop blocking its owners first: it and they wait for each other.
        unblock: bool,
    },
}

/// The verdict on a `node` that names owners.
pub(crate) fn on_owned(
    graph: &Graph,
    node: &Node,
    finalizers: &[String],
    owners: &[(OwnerReference, Owner)],
) -> Verdict {
    let with = |truth: Owner| owners.iter().filter(move |(_, owner)| *owner == truth);
    if owners.is_empty() || with(Owner::Unknown).next().is_some() {
        return Verdict::Keep;
    }
    if with(Owner::Solid).next().is_some() {
        let struck: Vec<Uid> = owners
            .iter()
            .filter(|(_, owner)| *owner != Owner::Solid)
            .map(|(reference, _)| reference.uid.clone())
            .collect();
        return if struck.is_empty() {
            Verdict::Keep
        } else {
            Verdict::Strike(struck)
        };
    }
    let has_dependents = graph.dependents(&node.uid).next().is_some();
    if with(Owner::Awaiting).next().is_some() && has_dependents {
        return Verdict::Delete {
            propagation: Propagation::Foreground,
            // A dependent that waits for its own dependents may be waiting for this very object.
            unblock: graph
                .dependents(&node.uid)
                .any(|dependent| dependent.awaits_dependents),
        };
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let propagation = if has(super::graph::ORPHAN) {
        Propagation::Orphan
    } else if has(super::graph::FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    Verdict::Delete {
        propagation,
        unblock: false,
    }
}

/// What keeps an object that waits for its dependents: those that block it and are not waiting
/// for dependents themselves. `None` when nothing blocks it any more.
pub(crate) fn blockers(graph: &Graph, node: &Node) -> Option<Vec<Uid>> {
    let blocking: Vec<&Node> = graph
        .dependents(&node.uid)
        .filter(|dependent| dependent.blocks(&node.uid))
        .collect();
    if blocking.is_empty() {
        return None;
    }
    Some(
        blocking
            .into_iter()
            .filter(|dependent| !dependent.awaits_dependents)
            .map(|dependent| dependent.uid.clone())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::graph::testing::{awaiting, node, owned, reference};
    use super::*;
    use proptest::prelude::*;

    fn with(owners: &[(&str, Owner)]) -> Vec<(OwnerReference, Owner)> {
        owners
            .iter()
            .map(|(name, owner)| (reference(name, true), *owner))
            .collect()
    }

    fn background() -> Verdict {
        Verdict::Delete {
            propagation: Propagation::Background,
            unblock: false,
        }
    }

    fn judge(owners: &[(&str, Owner)]) -> Verdict {
        on_owned(&Graph::default(), &node("child"), &[], &with(owners))
    }

    #[test]
    fn goes_when_all_owners_are_gone() {
        assert_eq!(
            judge(&[("a", Owner::Gone), ("b", Owner::Gone)]),
            background()
        );
        assert_eq!(judge(&[("a", Owner::Awaiting)]), background());
    }

    #[test]
    fn stays_with_one_owner_and_forgets_the_others() {
        assert_eq!(judge(&[("a", Owner::Solid)]), Verdict::Keep);
        assert_eq!(
            judge(&[
                ("a", Owner::Gone),
                ("b", Owner::Solid),
                ("c", Owner::Awaiting)
            ]),
            Verdict::Strike(vec!["a".to_owned(), "c".to_owned()])
        );
    }

    #[test]
    fn nothing_is_concluded_from_an_unknown_kind() {
        assert_eq!(
            judge(&[("a", Owner::Gone), ("b", Owner::Unknown)]),
            Verdict::Keep
        );
        assert_eq!(judge(&[]), Verdict::Keep);
    }

    #[test]
    fn foreground_reaches_the_dependents_of_dependents() {
        let mut graph = Graph::default();
        graph.observe(owned(node("grandchild"), &["child"]));
        let verdict = on_owned(
            &graph,
            &node("child"),
            &[],
            &with(&[("a", Owner::Awaiting)]),
        );
        assert_eq!(
            verdict,
            Verdict::Delete {
                propagation: Propagation::Foreground,
                unblock: false
            }
        );
    }

    #[test]
    fn a_circle_is_broken() {
        let mut graph = Graph::default();
        graph.observe(awaiting(owned(node("owner"), &["child"])));
        let verdict = on_owned(
            &graph,
            &node("child"),
            &[],
            &with(&[("owner", Owner::Awaiting)]),
        );
        assert_eq!(
            verdict,
            Verdict::Delete {
                propagation: Propagation::Foreground,
                unblock: true
            }
        );
    }

    #[test]
    fn its_own_finalizers_say_what_becomes_of_its_dependents() {
        let owners = with(&[("a", Owner::Gone)]);
        let verdict = |finalizer: &str| {
            on_owned(
                &Graph::default(),
                &node("child"),
                &[finalizer.to_owned()],
                &owners,
            )
        };
        let propagated = |propagation| Verdict::Delete {
            propagation,
            unblock: false,
        };
        assert_eq!(verdict("orphan"), propagated(Propagation::Orphan));
        assert_eq!(
            verdict("foregroundDeletion"),
            propagated(Propagation::Foreground)
        );
        assert_eq!(verdict("example.com/mine"), background());
    }

    #[test]
    fn only_blocking_dependents_hold_an_owner() {
        let mut graph = Graph::default();
        graph.observe(owned(node("blocking"), &["owner"]));
        graph.observe(awaiting(owned(node("waiting"), &["owner"])));
        let mut loose = node("loose");
        loose.owners = vec![reference("owner", false)];
        graph.observe(loose);
        let owner = awaiting(node("owner"));
        assert_eq!(blockers(&graph, &owner), Some(vec!["blocking".to_owned()]));
        graph.forget("blocking");
        assert_eq!(blockers(&graph, &owner), Some(Vec::new()));
        graph.forget("waiting");
        assert_eq!(blockers(&graph, &owner), None);
    }

    fn truth() -> impl Strategy<Value = Owner> {
        prop_oneof![
            Just(Owner::Solid),
            Just(Owner::Gone),
            Just(Owner::Awaiting),
            Just(Owner::Unknown)
        ]
    }

    proptest! {
        #[test]
        fn nothing_with_a_solid_or_unknown_owner_is_ever_deleted(truths in prop::collection::vec(truth(), 0..5)) {
            let owners: Vec<_> = truths
                .iter()
                .enumerate()
                .map(|(index, truth)| (reference(&format!("o{index}"), true), *truth))
                .collect();
            let verdict = on_owned(&Graph::default(), &node("child"), &[], &owners);
            let may_go = !truths.is_empty()
                && truths.iter().all(|truth| matches!(truth, Owner::Gone | Owner::Awaiting));
            prop_assert_eq!(matches!(verdict, Verdict::Delete { .. }), may_go);
        }
    }
}

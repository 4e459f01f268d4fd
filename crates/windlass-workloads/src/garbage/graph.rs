//! Who owns whom, over all objects of the cluster, by uid.
//!
//! The graph is what the watches have shown so far, so it may be behind. It says what is worth
//! looking at ([`Work`]); before anything is deleted, what it says is checked with the API server.
//! An edge exists as soon as a dependent names an owner, whether or not the owner has been seen.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::resource::GroupKind;

/// The finalizer by which an owner waits for its dependents to go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer by which an owner waits for its dependents to be cut loose.
pub(crate) const ORPHAN: &str = "orphan";

/// An object's unique id, the only name that never means another object.
pub(crate) type Uid = String;

/// An object as far as ownership is concerned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub kind: GroupKind,
    pub namespace: Option<String>,
    pub name: String,
    pub uid: Uid,
    pub owners: Vec<OwnerReference>,
    /// It has been asked to go.
    pub deleted: bool,
    /// It has been asked to go and waits for its dependents to go first.
    pub awaits_dependents: bool,
    /// It has been asked to go and waits for its dependents to be cut loose.
    pub orphans_dependents: bool,
}

impl Node {
    /// The node of an object with this metadata; `None` for one without a uid.
    pub(crate) fn new(kind: GroupKind, meta: ObjectMeta) -> Option<Self> {
        let deleted = meta.deletion_timestamp.is_some();
        let finalizers = meta.finalizers.unwrap_or_default();
        let has = |name: &str| deleted && finalizers.iter().any(|finalizer| finalizer == name);
        Some(Self {
            kind,
            namespace: meta.namespace,
            name: meta.name?,
            uid: meta.uid?,
            deleted,
            awaits_dependents: has(FOREGROUND),
            orphans_dependents: has(ORPHAN),
            owners: meta.owner_references.unwrap_or_default(),
        })
    }

    /// Whether it keeps the owner with this uid from going first.
    pub(crate) fn blocks(&self, owner: &str) -> bool {
        self.owners
            .iter()
            .any(|reference| reference.uid == owner && reference.block_owner_deletion == Some(true))
    }

    /// Whether this is the object that a dependent in `namespace` means by its reference: the uid
    /// alone is not enough, for a reference cannot reach into another namespace.
    fn is_meant_by(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        self.kind == GroupKind::named_by(reference)
            && self.name == reference.name
            && (self.namespace.is_none() || self.namespace.as_deref() == namespace)
    }
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Whether this object should still be there.
    Check(Uid),
    /// Cut the dependents of this object loose.
    Orphan(Uid),
}

/// What the graph knows of an owner that a dependent names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has been seen, and is not waiting for its dependents to go.
    Present,
    /// It has been seen, and is waiting for its dependents to go.
    Awaiting,
    /// It has not been seen, or something else of that uid has: ask the API server.
    Doubtful,
}

/// All objects and their references.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    /// The object with this uid, if it has been seen.
    pub(crate) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The objects that name the one with this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|dependent| self.nodes.get(dependent))
    }

    /// The uids of all objects of a kind.
    pub(crate) fn of_kind(&self, kind: &GroupKind) -> BTreeSet<Uid> {
        self.nodes
            .values()
            .filter(|node| node.kind == *kind)
            .map(|node| node.uid.clone())
            .collect()
    }

    /// What is known of an owner that `dependent` names.
    pub(crate) fn knows(&self, dependent: &Node, reference: &OwnerReference) -> Known {
        match self.nodes.get(&reference.uid) {
            Some(owner) if owner.is_meant_by(reference, dependent.namespace.as_deref()) => {
                if owner.awaits_dependents {
                    Known::Awaiting
                } else {
                    Known::Present
                }
            }
            _ => Known::Doubtful,
        }
    }

    /// Takes in an object as it was just seen, and says what to look at because of it.
    pub(crate) fn observe(&mut self, node: Node) -> BTreeSet<Work> {
        let before = self.nodes.get(&node.uid).cloned();
        let mut work = BTreeSet::new();
        let old_owners = before.as_ref().map_or(&[][..], |before| &before.owners);

        for reference in old_owners.iter().filter(|old| !node.owners.contains(old)) {
            if !node.owners.iter().any(|owner| owner.uid == reference.uid) {
                self.unlink(&reference.uid, &node.uid);
            }
            // An owner that waits may have waited for this one.
            self.recheck_if_awaiting(&reference.uid, &mut work);
        }
        for reference in &node.owners {
            self.dependents
                .entry(reference.uid.clone())
                .or_default()
                .insert(node.uid.clone());
        }
        if node.owners != old_owners
            && node
                .owners
                .iter()
                .any(|owner| self.knows(&node, owner) != Known::Present)
        {
            work.insert(Work::Check(node.uid.clone()));
        }
        let was = |flag: fn(&Node) -> bool| before.as_ref().is_some_and(flag);
        if node.awaits_dependents && !was(|node| node.awaits_dependents) {
            work.insert(Work::Check(node.uid.clone()));
            self.recheck_dependents(&node.uid, &mut work);
        }
        if node.orphans_dependents && !was(|node| node.orphans_dependents) {
            work.insert(Work::Orphan(node.uid.clone()));
        }
        self.nodes.insert(node.uid.clone(), node);
        work
    }

    /// Forgets an object that is gone, and says what to look at because of it.
    pub(crate) fn forget(&mut self, uid: &str) -> BTreeSet<Work> {
        let mut work = BTreeSet::new();
        let Some(node) = self.nodes.remove(uid) else {
            return work;
        };
        self.recheck_dependents(uid, &mut work);
        for reference in &node.owners {
            self.unlink(&reference.uid, uid);
            self.recheck_if_awaiting(&reference.uid, &mut work);
        }
        work
    }

    fn unlink(&mut self, owner: &str, dependent: &str) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    fn recheck_dependents(&self, uid: &str, work: &mut BTreeSet<Work>) {
        work.extend(
            self.dependents
                .get(uid)
                .into_iter()
                .flatten()
                .cloned()
                .map(Work::Check),
        );
    }

    fn recheck_if_awaiting(&self, uid: &str, work: &mut BTreeSet<Work>) {
        if self
            .nodes
            .get(uid)
            .is_some_and(|owner| owner.awaits_dependents)
        {
            work.insert(Work::Check(uid.to_owned()));
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Nodes as tests need them.

    use super::{GroupKind, Node, OwnerReference};

    /// A ConfigMap of this name in the default namespace; its uid is its name.
    pub(crate) fn node(name: &str) -> Node {
        Node {
            kind: GroupKind {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
            },
            namespace: Some("default".to_owned()),
            name: name.to_owned(),
            uid: name.to_owned(),
            owners: Vec::new(),
            deleted: false,
            awaits_dependents: false,
            orphans_dependents: false,
        }
    }

    /// A reference to [`node`] of this name.
    pub(crate) fn reference(name: &str, blocks: bool) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            controller: None,
            block_owner_deletion: Some(blocks),
        }
    }

    /// The node, owned by those of these names, which it blocks.
    pub(crate) fn owned(mut node: Node, owners: &[&str]) -> Node {
        node.owners = owners.iter().map(|owner| reference(owner, true)).collect();
        node
    }

    /// The node, asked to go after its dependents.
    pub(crate) fn awaiting(mut node: Node) -> Node {
        node.deleted = true;
        node.awaits_dependents = true;
        node
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{awaiting, node, owned};
    use super::*;

    fn check(uids: &[&str]) -> BTreeSet<Work> {
        uids.iter()
            .map(|uid| Work::Check((*uid).to_owned()))
            .collect()
    }

    #[test]
    fn an_owner_not_seen_makes_its_dependent_doubtful() {
        let mut graph = Graph::default();
        assert_eq!(
            graph.observe(owned(node("child"), &["owner"])),
            check(&["child"])
        );
        assert!(graph.observe(node("owner")).is_empty());
        let child = graph.get("child").unwrap();
        assert_eq!(graph.knows(child, &child.owners[0]), Known::Present);
        assert!(graph.observe(owned(node("second"), &["owner"])).is_empty());
    }

    #[test]
    fn an_owner_gone_makes_its_dependents_doubtful() {
        let mut graph = Graph::default();
        graph.observe(node("owner"));
        graph.observe(owned(node("a"), &["owner"]));
        graph.observe(owned(node("b"), &["owner"]));
        assert_eq!(graph.forget("owner"), check(&["a", "b"]));
        assert!(graph.forget("owner").is_empty());
    }

    #[test]
    fn a_reference_does_not_reach_into_another_namespace() {
        let mut graph = Graph::default();
        graph.observe(node("owner"));
        let mut child = owned(node("child"), &["owner"]);
        child.namespace = Some("elsewhere".to_owned());
        assert_eq!(graph.observe(child), check(&["child"]));
    }

    #[test]
    fn a_reference_to_a_cluster_scoped_owner_reaches_from_everywhere() {
        let mut graph = Graph::default();
        let mut owner = node("owner");
        owner.namespace = None;
        graph.observe(owner);
        assert!(graph.observe(owned(node("child"), &["owner"])).is_empty());
    }

    #[test]
    fn waiting_for_dependents_looks_at_all_of_them_and_again_when_one_goes() {
        let mut graph = Graph::default();
        graph.observe(node("owner"));
        graph.observe(owned(node("a"), &["owner"]));
        assert_eq!(
            graph.observe(awaiting(node("owner"))),
            check(&["a", "owner"])
        );
        assert!(
            graph.observe(awaiting(node("owner"))).is_empty(),
            "only once"
        );
        assert_eq!(graph.forget("a"), check(&["owner"]));
    }

    #[test]
    fn a_dependent_that_lets_go_unblocks_its_owner() {
        let mut graph = Graph::default();
        graph.observe(awaiting(node("owner")));
        graph.observe(owned(node("a"), &["owner"]));
        assert_eq!(graph.observe(node("a")), check(&["owner"]));
        assert_eq!(graph.dependents("owner").count(), 0);
    }

    #[test]
    fn orphaning_is_asked_for_once() {
        let mut graph = Graph::default();
        let mut owner = node("owner");
        owner.deleted = true;
        owner.orphans_dependents = true;
        assert_eq!(
            graph.observe(owner.clone()),
            [Work::Orphan("owner".to_owned())].into()
        );
        assert!(graph.observe(owner).is_empty());
    }

    #[test]
    fn finalizers_count_only_once_deletion_was_asked_for() {
        let meta = ObjectMeta {
            name: Some("a".to_owned()),
            uid: Some("a".to_owned()),
            finalizers: Some(vec![FOREGROUND.to_owned()]),
            ..ObjectMeta::default()
        };
        let kind = node("a").kind;
        assert!(
            !Node::new(kind.clone(), meta.clone())
                .unwrap()
                .awaits_dependents
        );
        let meta = ObjectMeta {
            deletion_timestamp: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                jiff::Timestamp::UNIX_EPOCH,
            )),
            ..meta
        };
        assert!(Node::new(kind, meta).unwrap().awaits_dependents);
    }
}

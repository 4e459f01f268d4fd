//! Sets of field paths: who owns what.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::steps::step;

/// A set of paths, kept as a tree: `members` are the paths that end here, `children` those that go
/// on. No child is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    members: BTreeSet<PathElement>,
    children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// Whether `path` itself is in the set.
    pub(crate) fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.child(first).is_some_and(|child| child.has(rest)),
        }
    }

    pub(crate) fn child(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element)
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = (&PathElement, &Self)> {
        self.children.iter()
    }

    /// The paths that end here.
    pub(crate) fn members_only(&self) -> Self {
        Self {
            members: self.members.clone(),
            children: BTreeMap::new(),
        }
    }

    /// Puts what is owned below `element` into the set.
    pub(crate) fn attach(&mut self, element: PathElement, below: Self) {
        if below.is_empty() {
            return;
        }
        match self.children.entry(element) {
            Entry::Vacant(vacant) => {
                vacant.insert(below);
            }
            Entry::Occupied(mut known) => {
                let both = std::mem::take(known.get_mut()).union(below);
                known.insert(both);
            }
        }
    }

    pub(crate) fn insert_member(&mut self, element: PathElement) {
        self.members.insert(element);
    }

    /// Puts `path` into the set; an empty path, the whole object, is nobody's.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.insert_member(last.clone()),
            // The step is copied only where there is none yet.
            [first, rest @ ..] => {
                if let Some(child) = self.children.get_mut(first) {
                    child.insert(rest);
                } else {
                    let mut below = Self::default();
                    below.insert(rest);
                    self.attach(first.clone(), below);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.remove(last);
            }
            [first, rest @ ..] => {
                if let Some(child) = self.children.get_mut(first) {
                    child.remove(rest);
                    if child.is_empty() {
                        self.children.remove(first);
                    }
                }
            }
        }
    }

    /// Takes `path` and all below it out of the set.
    pub(crate) fn remove_below(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.remove(last);
                self.children.remove(last);
            }
            [first, rest @ ..] => {
                if let Some(child) = self.children.get_mut(first) {
                    child.remove_below(rest);
                    if child.is_empty() {
                        self.children.remove(first);
                    }
                }
            }
        }
    }

    pub(crate) fn union(mut self, other: Self) -> Self {
        if self.members.is_empty() && self.children.is_empty() {
            return other;
        }
        self.members.extend(other.members);
        for (element, theirs) in other.children {
            step();
            self.attach(element, theirs);
        }
        self
    }

    /// The difference, without a copy of what stays.
    pub(crate) fn minus(mut self, other: &Self) -> Self {
        step();
        for member in &other.members {
            self.members.remove(member);
        }
        for (element, theirs) in &other.children {
            if let Some(ours) = self.children.get_mut(element) {
                let rest = std::mem::take(ours).minus(theirs);
                if rest.is_empty() {
                    self.children.remove(element);
                } else {
                    *ours = rest;
                }
            }
        }
        self
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        step();
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .map(|(element, ours)| {
                let rest = other
                    .children
                    .get(element)
                    .map_or_else(|| ours.clone(), |theirs| ours.difference(theirs));
                (element.clone(), rest)
            })
            .filter(|(_, rest)| !rest.is_empty())
            .collect();
        Self { members, children }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        step();
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, ours)| {
                Some((
                    element.clone(),
                    ours.intersection(other.children.get(element)?),
                ))
            })
            .filter(|(_, both)| !both.is_empty())
            .collect();
        Self { members, children }
    }

    /// Every path, in order.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut found = Vec::new();
        let _ = self.visit(&mut |path| {
            found.push(path.iter().map(|step| (*step).clone()).collect());
            ControlFlow::Continue(())
        });
        found
    }

    /// Shows every path to `look`, in order, until it has seen enough.
    pub(crate) fn visit(
        &self,
        look: &mut dyn FnMut(&[&PathElement]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.visit_below(&mut Vec::new(), look)
    }

    fn visit_below<'a>(
        &'a self,
        prefix: &mut Vec<&'a PathElement>,
        look: &mut dyn FnMut(&[&PathElement]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for member in &self.members {
            prefix.push(member);
            look(prefix)?;
            prefix.pop();
        }
        for (element, child) in &self.children {
            prefix.push(element);
            child.visit_below(prefix, look)?;
            prefix.pop();
        }
        ControlFlow::Continue(())
    }

    /// How many bytes its `fieldsV1` has at least.
    pub(crate) fn least_bytes(&self) -> usize {
        // A member of the JSON object, and an empty object as its value.
        let step = |element: &PathElement| element.least_bytes() + 4;
        let members = self.members.iter();
        let alone = members.filter(|member| !self.children.contains_key(member));
        let children = self.children.iter();
        alone.map(step).sum::<usize>()
            + children
                .map(|(element, below)| step(element) + below.least_bytes())
                .sum::<usize>()
    }

    /// The `fieldsV1` form: `.` marks a path that ends where others go on.
    pub(crate) fn to_fields_v1(&self) -> Value {
        let mut out = Map::new();
        for member in &self.members {
            out.insert(member.wire(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            let mut below = child.to_fields_v1();
            if self.members.contains(element)
                && let Some(below) = below.as_object_mut()
            {
                below.insert(".".into(), Value::Object(Map::new()));
            }
            out.insert(element.wire(), below);
        }
        Value::Object(out)
    }

    /// Reads `fieldsV1`; `None` when it is malformed.
    pub(crate) fn from_fields_v1(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (text, below) in fields.as_object()? {
            if text == "." {
                continue;
            }
            let element = PathElement::parse(text)?;
            let below_fields = below.as_object()?;
            if below_fields.is_empty() || below_fields.contains_key(".") {
                set.members.insert(element.clone());
            }
            let child = Self::from_fields_v1(below)?;
            if !child.is_empty() {
                set.children.insert(element, child);
            }
        }
        Some(set)
    }
}

/// A path as conflict messages show it.
pub(crate) fn show<E: std::borrow::Borrow<PathElement>>(path: &[E]) -> String {
    let steps = path.iter().map(std::borrow::Borrow::borrow);
    steps.map(PathElement::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn fields_v1_reads_back_as_written() {
        let written = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {"v:\"a/b\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}}}},
        });
        let set = FieldSet::from_fields_v1(&written).unwrap();
        assert_eq!(set.to_fields_v1(), written);
        // Three dots and the commas are not counted.
        let length = written.to_string().len();
        assert!((length - 25..=length).contains(&set.least_bytes()));
        let shown: Vec<_> = set.paths().iter().map(|path| show(path)).collect();
        assert!(
            shown.contains(&".spec.containers[name=\"x\"].image".to_owned()),
            "{shown:?}"
        );
        assert!(
            shown.contains(&".metadata.finalizers[=\"a/b\"]".to_owned()),
            "{shown:?}"
        );
    }

    fn paths() -> impl Strategy<Value = Vec<Vec<PathElement>>> {
        let element = "[abc]".prop_map(PathElement::Field);
        proptest::collection::vec(proptest::collection::vec(element, 1..4), 0..8)
    }

    fn set_of(paths: &[Vec<PathElement>]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(path);
        }
        set
    }

    proptest! {
        #[test]
        fn sets_obey_set_algebra(a in paths(), b in paths()) {
            let (a, b) = (set_of(&a), set_of(&b));
            let both: BTreeSet<_> = a.paths().into_iter().chain(b.paths()).collect();
            prop_assert_eq!(a.clone().union(b.clone()).paths().into_iter().collect::<BTreeSet<_>>(), both);
            let only: BTreeSet<_> = a.paths().into_iter().filter(|path| !b.paths().contains(path)).collect();
            prop_assert_eq!(a.difference(&b).paths().into_iter().collect::<BTreeSet<_>>(), only);
            prop_assert_eq!(a.clone().minus(&b), a.difference(&b));
            let shared: BTreeSet<_> = a.paths().into_iter().filter(|path| b.paths().contains(path)).collect();
            prop_assert_eq!(a.intersection(&b).paths().into_iter().collect::<BTreeSet<_>>(), shared);
            prop_assert_eq!(FieldSet::from_fields_v1(&a.to_fields_v1()), Some(a));
        }
    }
}

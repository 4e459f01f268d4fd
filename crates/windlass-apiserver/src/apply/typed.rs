//! Operations on values whose type is known: which fields there are, how two values differ, how
//! one is laid over another, and what is left when fields are taken away.
//!
//! The rules are those of Kubernetes' structured merge: scalars and atomic values are leaves; a
//! keyed list is merged item by item; a map entry is owned as such, a struct field only through
//! its leaves; an empty value is a leaf, so that "empty" and "absent" stay different.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::PathElement;
use crate::equality::is_same;
use crate::registry::types::{ListKind, Type};
use crate::steps::step;

/// How a value is walked, given its type.
enum Walk<'a> {
    Leaf,
    Map(&'a Map<String, Value>),
    List(&'a [Value]),
}

fn walk<'a>(value: &'a Value, ty: &Type) -> Walk<'a> {
    match (value, ty.resolve()) {
        (Value::Object(map), _) if !ty.is_atomic() => Walk::Map(map),
        (Value::Array(items), Type::List { kind, .. }) if *kind != ListKind::Atomic => {
            Walk::List(items)
        }
        _ => Walk::Leaf,
    }
}

/// The step from a list to one of its items.
pub(crate) fn item_element(item: &Value, list: &Type, index: usize) -> PathElement {
    match list.resolve() {
        Type::List {
            kind: ListKind::Set,
            ..
        } => PathElement::value(item),
        Type::List {
            kind: ListKind::Map(keys),
            item: item_type,
        } => {
            if let [key] = keys.as_slice()
                && let Some(value) = item.get(key)
            {
                return PathElement::key_of_one(key, value);
            }
            let mut fields = Map::new();
            for key in keys {
                let default = || key_default(item_type, key);
                if let Some(value) = item.get(key).cloned().or_else(default) {
                    fields.insert(key.clone(), value);
                }
            }
            PathElement::key(fields)
        }
        _ => PathElement::Index(index as u64),
    }
}

/// What a key is when it is not said. Of the published defaults those that say nothing are not among
/// the facts, and one of them is a key: the name of a reference within the namespace.
fn key_default(item: &Type, key: &str) -> Option<Value> {
    match item {
        Type::Named(name) if name.ends_with(".LocalObjectReference") => Some("".into()),
        _ => item.field(key).and_then(|field| field.default.clone()),
    }
}

fn field_element(key: &str) -> PathElement {
    PathElement::Field(key.to_owned())
}

/// The fields an applied configuration claims.
pub(crate) fn fields_of(value: &Value, ty: &Type) -> FieldSet {
    step();
    let mut set = FieldSet::default();
    fields_below(value, ty, &mut set);
    set
}

fn fields_below(value: &Value, ty: &Type, set: &mut FieldSet) {
    match walk(value, ty) {
        Walk::Leaf => {}
        Walk::Map(map) => {
            for (key, value) in map {
                let (element, member) = (field_element(key), ty.member(key));
                let is_leaf = matches!(walk(value, member), Walk::Leaf);
                let is_empty = value.as_object().is_some_and(Map::is_empty);
                if is_leaf || is_empty || ty.field(key).is_none() {
                    set.insert_member(element.clone());
                }
                // A list of nothing is nobody's.
                let is_empty = is_empty || value.as_array().is_some_and(Vec::is_empty);
                if !is_leaf && !is_empty {
                    set.attach(element, fields_of(value, member));
                }
            }
        }
        Walk::List(items) => {
            for (index, item) in items.iter().enumerate() {
                let element = item_element(item, ty, index);
                set.insert_member(element.clone());
                set.attach(element, fields_of(item, ty.item()));
            }
        }
    }
}

/// How two values differ.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Everything the new value set, and what it left out.
    pub(crate) fn into_written_and_removed(self) -> (FieldSet, FieldSet) {
        (self.modified.union(self.added), self.removed)
    }
}

/// How a value itself changed, beside what changed within it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Added,
    Modified,
    Removed,
}

impl Comparison {
    /// Takes in how the member or item `element` differs. What differs is put together from below:
    /// the way from the root to each place is gone once, not once per difference.
    fn attach(&mut self, element: impl FnOnce() -> PathElement, change: Change, below: Self) {
        if change == Change::None && below.is_empty() {
            return;
        }
        let element = element();
        match change {
            Change::None => {}
            Change::Added => self.added.insert_member(element.clone()),
            Change::Modified => self.modified.insert_member(element.clone()),
            Change::Removed => self.removed.insert_member(element.clone()),
        }
        if !below.is_empty() {
            self.added.attach(element.clone(), below.added);
            self.modified.attach(element.clone(), below.modified);
            self.removed.attach(element, below.removed);
        }
    }
}

/// Compares an old with a new value of one type.
pub(crate) fn compare(old: &Value, new: &Value, ty: &Type) -> Comparison {
    // The whole object is nobody's.
    compare_at(Some(old), Some(new), ty).1
}

fn compare_at(old: Option<&Value>, new: Option<&Value>, ty: &Type) -> (Change, Comparison) {
    step();
    let mut out = Comparison::default();
    let empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    };
    let leaf = |value: Option<&Value>| {
        value.is_some_and(|value| matches!(walk(value, ty), Walk::Leaf) && !value.is_null())
    };
    let mut change = match (old, new) {
        (None, Some(_)) => Change::Added,
        (Some(_), None) => Change::Removed,
        _ => Change::None,
    };
    if leaf(old) || leaf(new) || (empty(old) && empty(new)) {
        if let (Some(old), Some(new)) = (old, new)
            && !is_same(old, new)
        {
            change = Change::Modified;
        }
        // A value that changes between leaf and composite still has its composite side walked.
        let nothing = |value: Option<&Value>| value.is_none_or(Value::is_null);
        if leaf(old) == leaf(new) || nothing(old) || nothing(new) {
            return (change, out);
        }
    }
    match (old, new) {
        (Some(Value::Object(_)), _) | (_, Some(Value::Object(_))) => {
            let none = Map::new();
            let (a, b) = (
                old.and_then(Value::as_object).unwrap_or(&none),
                new.and_then(Value::as_object).unwrap_or(&none),
            );
            for (key, new) in b {
                let (change, below) = compare_at(a.get(key), Some(new), ty.member(key));
                out.attach(|| field_element(key), change, below);
            }
            for (key, old) in a.iter().filter(|(key, _)| !b.contains_key(*key)) {
                let (change, below) = compare_at(Some(old), None, ty.member(key));
                out.attach(|| field_element(key), change, below);
            }
        }
        _ => {
            let (a, b) = (
                old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice),
                new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice),
            );
            out = compare_items(a, b, ty);
        }
    }
    (change, out)
}

/// Compares lists item by item. An item that a list has more than once is owned as such, and
/// nothing within it.
fn compare_items(old: &[Value], new: &[Value], ty: &Type) -> Comparison {
    // Most lists have the same items in the same places, and nothing in them changed: that is
    // seen without putting the items' keys into words.
    let pairs = || old.iter().zip(new);
    if old.len() == new.len() && pairs().all(|(a, b)| is_same_item(a, b, ty)) {
        let found: Vec<_> = pairs()
            .map(|(a, b)| compare_at(Some(a), Some(b), ty.item()))
            .collect();
        if found
            .iter()
            .all(|(change, below)| *change == Change::None && below.is_empty())
        {
            return Comparison::default();
        }
        return in_place(new, found, ty);
    }
    let mut out = Comparison::default();
    let mut all: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (list, is_new) in [(old, false), (new, true)] {
        for (index, item) in list.iter().enumerate() {
            let (before, after) = all.entry(item_element(item, ty, index)).or_default();
            if is_new { after } else { before }.push(item);
        }
    }
    for (element, (before, after)) in all {
        let (change, below) = match (before.as_slice(), after.as_slice()) {
            ([] | [_], [] | [_]) => {
                let (before, after) = (before.first().copied(), after.first().copied());
                compare_at(before, after, ty.item())
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = before.len() == after.len()
                    && before.iter().zip(&after).all(|(a, b)| is_same(a, b));
                let change = if same { Change::None } else { Change::Modified };
                (change, Comparison::default())
            }
            ([_, _, ..], _) => {
                let after = after.first().copied();
                let (change, below) = after
                    .map_or((Change::None, Comparison::default()), |after| {
                        compare_at(None, Some(after), ty.item())
                    });
                out.attach(|| element.clone(), change, below);
                (Change::Removed, Comparison::default())
            }
            (_, [_, _, ..]) => {
                let before = before.first().copied();
                let (change, below) = before
                    .map_or((Change::None, Comparison::default()), |before| {
                        compare_at(Some(before), None, ty.item())
                    });
                out.attach(|| element.clone(), change, below);
                (Change::Added, Comparison::default())
            }
        };
        out.attach(|| element, change, below);
    }
    out
}

/// What was found of the items of a list that all stayed where they were.
fn in_place(items: &[Value], found: Vec<(Change, Comparison)>, ty: &Type) -> Comparison {
    let mut all: BTreeMap<PathElement, Vec<(Change, Comparison)>> = BTreeMap::new();
    for (index, (item, found)) in items.iter().zip(found).enumerate() {
        all.entry(item_element(item, ty, index))
            .or_default()
            .push(found);
    }
    let mut out = Comparison::default();
    for (element, mut found) in all {
        let (change, below) = match (found.pop(), found.as_slice()) {
            (Some(only), []) => only,
            (last, rest) => {
                let is_change = |(change, below): &(Change, Comparison)| {
                    *change != Change::None || !below.is_empty()
                };
                let change = if last.iter().chain(rest).any(is_change) {
                    Change::Modified
                } else {
                    Change::None
                };
                (change, Comparison::default())
            }
        };
        out.attach(|| element, change, below);
    }
    out
}

/// Whether two items at the same place of a list are one item, as far as a look at their keys as
/// they are written tells.
fn is_same_item(a: &Value, b: &Value, list: &Type) -> bool {
    match list.resolve() {
        Type::List {
            kind: ListKind::Set,
            ..
        } => a == b,
        Type::List {
            kind: ListKind::Map(keys),
            ..
        } => keys.iter().all(|key| a.get(key) == b.get(key)),
        _ => true,
    }
}

/// Lays `over` over `base`: what `over` says wins, what it does not mention stays.
pub(crate) fn merge(base: &Value, over: &Value, ty: &Type) -> Value {
    step();
    match (walk(base, ty), walk(over, ty)) {
        (Walk::Map(base), Walk::Map(over)) => {
            let mut out = Map::new();
            for (key, under) in base {
                let merged = match over.get(key) {
                    Some(value) => merge(under, value, ty.member(key)),
                    None => under.clone(),
                };
                out.insert(key.clone(), merged);
            }
            for (key, value) in over.iter().filter(|(key, _)| !base.contains_key(*key)) {
                out.insert(key.clone(), value.clone());
            }
            Value::Object(out)
        }
        (Walk::List(base), Walk::List(over)) if !base.is_empty() || !over.is_empty() => {
            Value::Array(merge_lists(base, over, ty))
        }
        // Nothing over something that is merged leaves it: null says no more than an empty one.
        (Walk::Map(map), Walk::Leaf) if over.is_null() && !map.is_empty() => base.clone(),
        (Walk::List(items), Walk::Leaf) if over.is_null() && !items.is_empty() => base.clone(),
        _ => over.clone(),
    }
}

/// Items of `over` in their order; items only in `base` stay where they stood between them.
fn merge_lists(base: &[Value], over: &[Value], ty: &Type) -> Vec<Value> {
    let elements = |items: &[Value]| -> Vec<PathElement> {
        items
            .iter()
            .enumerate()
            .map(|(index, item)| item_element(item, ty, index))
            .collect()
    };
    let (left, right) = (elements(base), elements(over));
    let in_right: HashSet<&PathElement> = right.iter().collect();
    // Of an item that stands there twice, the first counts.
    let mut in_left: HashMap<&PathElement, usize> = HashMap::with_capacity(left.len());
    for (at, element) in left.iter().enumerate() {
        in_left.entry(element).or_insert(at);
    }
    let mut shared = right
        .iter()
        .filter(|element| in_left.contains_key(element))
        .peekable();
    let mut out = Vec::with_capacity(base.len() + over.len());
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        step();
        if l < left.len() && r < right.len() && left[l] == right[r] {
            out.push(merge(&base[l], &over[r], ty.item()));
            shared.next_if(|next| **next == left[l]);
            l += 1;
            r += 1;
        } else if l < left.len() && !in_right.contains(&left[l]) {
            out.push(base[l].clone());
            l += 1;
        } else if l < left.len() && shared.peek().is_none_or(|next| **next != left[l]) {
            // Shared, but its turn comes (or came) where `over` has it.
            l += 1;
        } else if r < right.len() {
            let under = in_left.get(&right[r]);
            out.push(under.map_or_else(
                || over[r].clone(),
                |at| merge(&base[*at], &over[r], ty.item()),
            ));
            shared.next_if(|next| **next == right[r]);
            r += 1;
        } else {
            l += 1;
        }
    }
    out
}

/// The value without the fields of `set`; `None` when nothing is left of it. A member of which
/// nothing is left is null, as Kubernetes leaves it: who claimed it keeps the claim.
pub(crate) fn without(value: &Value, set: &FieldSet, ty: &Type) -> Option<Value> {
    step();
    let left = |value: &Value, below: &FieldSet, ty: &Type| {
        without(value, below, ty).unwrap_or(Value::Null)
    };
    match walk(value, ty) {
        Walk::Leaf => Some(value.clone()),
        Walk::Map(map) => {
            let mut out = Map::new();
            for (key, value) in map {
                let element = field_element(key);
                if set.has_member(&element) {
                    continue;
                }
                let kept = match set.child(&element) {
                    Some(below) => left(value, below, ty.member(key)),
                    None => value.clone(),
                };
                out.insert(key.clone(), kept);
            }
            (!out.is_empty() || map.is_empty()).then_some(Value::Object(out))
        }
        Walk::List(items) => {
            let mut out = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let element = item_element(item, ty, index);
                if set.has_member(&element) {
                    continue;
                }
                out.push(match set.child(&element) {
                    Some(below) => left(item, below, ty.item()),
                    None => item.clone(),
                });
            }
            (!out.is_empty() || items.is_empty()).then_some(Value::Array(out))
        }
    }
}

/// The set with every declared struct field on the way to a member made a member too.
pub(crate) fn with_named_parents(set: &FieldSet, ty: &Type) -> FieldSet {
    step();
    let mut out = set.members_only();
    for (element, below) in set.children() {
        let member = match element {
            PathElement::Field(key) => {
                if ty.field(key).is_some() {
                    out.insert_member(element.clone());
                }
                ty.member(key)
            }
            _ => ty.item(),
        };
        out.attach(element.clone(), with_named_parents(below, member));
    }
    out
}

//! [`Selection`]: finding objects by their labels, and those that nobody controls, without walking
//! through all of them.
//!
//! A label is indexed from the first time somebody selects by its value, so that a kind whose
//! objects are only looked up by name pays nothing. The same goes for the objects without a
//! controller, which only those who adopt look for.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use kube::core::Expression;

use super::CachedObject;
use crate::Key;

/// How many labels of a kind are indexed; selectors by others are tried on every object.
const MOST: usize = 16;

/// Objects by the labels that were asked for, and without a controller.
#[derive(Default)]
pub(super) struct Selection {
    labels: BTreeMap<Box<str>, Values>,
    orphans: Option<BTreeSet<Key>>,
}

/// Hashed, because nobody walks through the values; the keys below one value are in order.
type Values = HashMap<Box<str>, BTreeSet<Key>>;
type Objects = BTreeMap<Key, Arc<CachedObject>>;

impl Selection {
    pub(super) fn add(&mut self, object: &CachedObject) {
        for (label, values) in &mut self.labels {
            put(values, label, object);
        }
        if let Some(orphans) = &mut self.orphans
            && object.controller.is_none()
        {
            orphans.insert(object.key.clone());
        }
    }

    pub(super) fn remove(&mut self, object: &CachedObject) {
        for (label, values) in &mut self.labels {
            let Some(value) = object.labels.get(label) else {
                continue;
            };
            if let Some(keys) = values.get_mut(value) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    values.remove(value);
                }
            }
        }
        if let Some(orphans) = &mut self.orphans {
            orphans.remove(&object.key);
        }
    }

    /// The keys among which those that match are, as few as can be told; none if all objects have
    /// to be tried.
    pub(super) fn narrow(
        &mut self,
        selector: &[Expression],
        objects: &Objects,
    ) -> Option<&BTreeSet<Key>> {
        static NOTHING: BTreeSet<Key> = BTreeSet::new();
        let required = || selector.iter().filter_map(required);
        for (label, _) in required() {
            if !self.labels.contains_key(label) && self.labels.len() < MOST {
                let mut values = Values::new();
                for object in objects.values() {
                    put(&mut values, label, object);
                }
                self.labels.insert(label.into(), values);
            }
        }
        let found = required().filter_map(|(label, value)| {
            let values = self.labels.get(label)?;
            Some(values.get(value).unwrap_or(&NOTHING))
        });
        found.min_by_key(|keys| keys.len())
    }

    /// The keys of the objects that nobody controls.
    pub(super) fn orphans(&mut self, objects: &Objects) -> &BTreeSet<Key> {
        self.orphans.get_or_insert_with(|| {
            let orphans = objects.values().filter(|one| one.controller.is_none());
            orphans.map(|object| object.key.clone()).collect()
        })
    }
}

fn put(values: &mut Values, label: &str, object: &CachedObject) {
    let Some(value) = object.labels.get(label) else {
        return;
    };
    if let Some(keys) = values.get_mut(value) {
        keys.insert(object.key.clone());
    } else {
        values.insert(value.into(), BTreeSet::from([object.key.clone()]));
    }
}

/// The one value that the expression requires of a label, if it does.
fn required(expression: &Expression) -> Option<(&str, &str)> {
    match expression {
        Expression::Equal(label, value) => Some((label, value)),
        Expression::In(label, values) if values.len() == 1 => {
            values.first().map(|value| (label.as_str(), value.as_str()))
        }
        _ => None,
    }
}

//! [`Index`]: objects by what a function says of them.

use std::collections::{BTreeSet, HashMap};

use super::Delivered;
use crate::Key;

/// What an object is found by.
pub(crate) type ValuesOf = Box<dyn Fn(&Delivered) -> Vec<Box<str>> + Send + Sync>;

/// One index of a store. Looking up a value costs the same however many objects there are.
pub(crate) struct Index {
    of: ValuesOf,
    /// Hashed, because nobody walks through the values; the keys below one value are in order.
    keys: HashMap<Box<str>, BTreeSet<Key>>,
}

impl Index {
    pub(crate) fn new(of: ValuesOf) -> Self {
        Self {
            of,
            keys: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, object: &Delivered) {
        for value in (self.of)(object) {
            let keys = self.keys.entry(value).or_default();
            keys.insert(object.key.clone());
        }
    }

    pub(crate) fn remove(&mut self, object: &Delivered) {
        for value in (self.of)(object) {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(&object.key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }

    pub(crate) fn find(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flatten()
    }
}

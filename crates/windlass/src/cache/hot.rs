//! [`Hot`]: the objects of a store that were decoded last, shared by all that read them.
//!
//! Indexes, predicates, the reconcile that a change triggers and the lists it makes look at the same
//! objects within a moment. Each is decoded by the first of them. What is kept is bounded by the
//! length of its text, so a cache of many objects stays as small as its packed form.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use crate::Key;

/// How much text the kept objects may have had together, per store.
const BUDGET: usize = 256 << 10;

/// The objects of one store that were decoded last.
#[derive(Default)]
pub(super) struct Hot {
    objects: BTreeMap<Key, Entry>,
    /// In the order of their decoding. An entry that was replaced has another number by now.
    order: VecDeque<(Key, u64)>,
    bytes: usize,
    next: u64,
}

struct Entry {
    version: u64,
    bytes: usize,
    number: u64,
    decoded: Arc<dyn Any + Send + Sync>,
}

impl Hot {
    pub(super) fn get<T: Any + Send + Sync>(&self, key: &Key, version: u64) -> Option<Arc<T>> {
        self.any(key, version)?.downcast().ok()
    }

    /// The object as the type that was asked for last.
    pub(super) fn any(&self, key: &Key, version: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let entry = self.objects.get(key);
        let entry = entry.filter(|entry| entry.version == version)?;
        Some(Arc::clone(&entry.decoded))
    }

    pub(super) fn add(
        &mut self,
        key: &Key,
        version: u64,
        bytes: usize,
        decoded: Arc<dyn Any + Send + Sync>,
    ) {
        if bytes > BUDGET {
            return;
        }
        self.next += 1;
        let entry = Entry {
            version,
            bytes,
            number: self.next,
            decoded,
        };
        let before = self.objects.insert(key.clone(), entry);
        self.bytes += bytes;
        self.bytes -= before.map_or(0, |before| before.bytes);
        self.order.push_back((key.clone(), self.next));
        // Objects that change again and again leave places in the order that name nothing.
        while self.bytes > BUDGET || self.order.len() > 2 * self.objects.len() + 16 {
            let Some((key, number)) = self.order.pop_front() else {
                return;
            };
            if self
                .objects
                .get(&key)
                .is_some_and(|entry| entry.number == number)
            {
                self.bytes -= self.objects.remove(&key).map_or(0, |entry| entry.bytes);
            }
        }
    }
}

/// About how long the text of a value is.
pub(crate) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + 4 + text_bytes(value))
            .sum(),
        Value::Array(items) => items.iter().map(|item| 1 + text_bytes(item)).sum(),
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_of_a_value_is_estimated() {
        let value =
            json!({"metadata": {"name": "a", "labels": {"app": "cache"}}, "data": [1, true]});
        let exact = value.to_string().len();
        assert!(text_bytes(&value).abs_diff(exact) < exact / 4);
    }

    fn key(nth: usize) -> Key {
        Key::namespaced("n", format!("object-{nth}"))
    }

    #[test]
    fn decoded_object_is_shared_until_its_version_changes() {
        let mut hot = Hot::default();
        let object = Arc::new(7_u32);
        hot.add(&key(1), 5, 100, object.clone());
        let found: Arc<u32> = hot.get(&key(1), 5).unwrap();
        assert!(Arc::ptr_eq(&found, &object));
        assert!(hot.get::<u32>(&key(1), 6).is_none());
        assert!(hot.get::<u64>(&key(1), 5).is_none(), "another type");
        assert!(hot.get::<u32>(&key(2), 5).is_none());
    }

    #[test]
    fn kept_objects_stay_within_the_budget_oldest_first() {
        let mut hot = Hot::default();
        for nth in 0..1000 {
            hot.add(&key(nth), 1, 1000, Arc::new(nth));
        }
        assert!(hot.bytes <= BUDGET);
        assert_eq!(hot.bytes, 1000 * hot.objects.len());
        assert!(hot.get::<usize>(&key(0), 1).is_none());
        assert!(hot.get::<usize>(&key(999), 1).is_some());
        hot.add(&key(0), 1, BUDGET + 1, Arc::new(0_usize));
        assert!(
            hot.get::<usize>(&key(0), 1).is_none(),
            "larger than the budget"
        );
    }

    #[test]
    fn object_that_changes_often_takes_one_place() {
        let mut hot = Hot::default();
        for version in 0..10_000 {
            hot.add(&key(1), version, 10, Arc::new(version));
        }
        assert_eq!((hot.objects.len(), hot.bytes), (1, 10));
        assert!(hot.order.len() <= 18);
    }
}

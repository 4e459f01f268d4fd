//! What is made of stored objects again and again, made once.
//!
//! Configurations of webhooks and policies are looked at by every write; to read and compile them
//! each time would cost more than the write. A [`Derived`] keeps what was made of each object of a
//! table until the object is replaced.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::store::{Key, Store, Stored, TableName};

/// What was made of the objects of one table.
#[derive(Debug)]
pub(crate) struct Derived<T> {
    known: Mutex<BTreeMap<Key, Made<T>>>,
}

/// What was made, and of what.
type Made<T> = (Arc<Stored>, Arc<T>);

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
        }
    }
}

impl<T> Derived<T> {
    /// What is made of every object of the table as it is now, in the order of their names.
    pub(crate) fn all(
        &self,
        store: &Store,
        table: &TableName,
        make: impl Fn(&Value) -> T,
    ) -> Vec<Arc<T>> {
        let Ok(listing) = store.list(table, None, None, None) else {
            return Vec::new();
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if listing.objects.is_empty() {
            known.clear();
            return Vec::new();
        }
        known.retain(|key, _| listing.objects.iter().any(|object| object.key == *key));
        let current = listing.objects.into_iter().map(|object| {
            // A revision may be given out again when the disk failed; an object is itself.
            let found = known.get(&object.key);
            if let Some((_, found)) = found.filter(|(from, _)| Arc::ptr_eq(from, &object)) {
                return Arc::clone(found);
            }
            let fresh = Arc::new(make(&object.value()));
            known.insert(object.key.clone(), (object, Arc::clone(&fresh)));
            fresh
        });
        current.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_read_once_until_it_changes() {
        let (store, table) = (
            Store::new(Duration::from_mins(5)),
            TableName::new("", "things"),
        );
        let (derived, read) = (Derived::default(), Cell::new(0));
        let all = || {
            let make = |value: &Value| {
                read.set(read.get() + 1);
                value["n"].clone()
            };
            let all = derived.all(&store, &table, make);
            all.iter().map(|one| (**one).clone()).collect::<Vec<_>>()
        };
        assert!(all().is_empty());
        let key = |name: &str| Key::new("", name);
        let one = store
            .create(&table, key("a"), json!({"n": 1}), &[])
            .unwrap();
        store
            .create(&table, key("b"), json!({"n": 2}), &[])
            .unwrap();
        assert_eq!(
            (all(), all()),
            (vec![json!(1), json!(2)], vec![json!(1), json!(2)])
        );
        assert_eq!(read.get(), 2);
        let from = one.revision;
        let one = store
            .update(&table, key("a"), from, json!({"n": 3}), &[])
            .unwrap();
        assert_eq!(all(), [json!(3), json!(2)]);
        assert_eq!(read.get(), 3);
        store
            .delete(&table, key("a"), one.revision, json!({}), &[])
            .unwrap();
        assert_eq!(all(), [json!(2)]);
        assert_eq!(read.get(), 3);
    }
}

//! Ratcheting: a value that an update does not change is not held against it.
//!
//! [`Correlated`] pairs a value with what it was before. Fields and map entries are paired by
//! name, items of keyed lists by their keys, items of other lists not at all.

use std::collections::BTreeMap;

use serde_json::Value;

use super::schema::Schema;
use windlass_apimachinery::steps::step;

/// A value, what it was, and the schema of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlated<'a> {
    new: &'a Value,
    old: &'a Value,
    schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    pub(super) fn new(new: &'a Value, old: &'a Value, schema: &'a Schema) -> Self {
        Self { new, old, schema }
    }

    /// The field or entry called `name`, if both have it.
    pub(super) fn key(self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?, self.old.as_object()?);
        let schema = self.schema.member(name)?;
        Some(Self::new(new.get(name)?, old.get(name)?, schema))
    }

    /// The items of a keyed list, each with what it was.
    pub(super) fn items(self) -> Items<'a> {
        Items {
            new: self.new.as_array().map_or(&[], Vec::as_slice),
            old: Keyed::of(self.old, self.schema),
            schema: self.schema.item(),
        }
    }

    /// Whether nothing changed. The order of a keyed list is no change.
    pub(super) fn is_unchanged(self) -> bool {
        step();
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if !self.schema.is_list_of("map") {
                    return new == old;
                }
                let items = self.items();
                new.len() == old.len()
                    && (0..new.len()).all(|at| items.at(at).is_some_and(Self::is_unchanged))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(Self::is_unchanged))
            }
            (new, old) => new == old,
        }
    }
}

/// The items of a list, paired.
pub(super) struct Items<'a> {
    new: &'a [Value],
    old: Keyed<'a>,
    schema: Option<&'a Schema>,
}

impl<'a> Items<'a> {
    /// The item at `place`, if there was one of the same keys.
    pub(super) fn at(&self, place: usize) -> Option<Correlated<'a>> {
        let item = self.new.get(place)?;
        let old = self.old.same_keys(item)?;
        Some(Correlated::new(item, old, self.schema?))
    }
}

/// The items of a keyed list, found by their keys. One that lacks a key, or has a key that is no
/// plain value, is not found.
pub(super) struct Keyed<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> Keyed<'a> {
    /// Of a list that is not keyed nothing is found.
    pub(super) fn of(list: &'a Value, schema: &'a Schema) -> Self {
        let mut found = Self {
            keys: &schema.list_map_keys,
            items: BTreeMap::new(),
        };
        if schema.is_list_of("map") {
            for item in list.as_array().into_iter().flatten() {
                step();
                if let Some(identity) = found.identity(item) {
                    found.items.entry(identity).or_insert(item);
                }
            }
        }
        found
    }

    /// The item that has the keys of `item`.
    pub(super) fn same_keys(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&self.identity(item)?).copied()
    }

    fn identity(&self, item: &Value) -> Option<String> {
        if !item.is_object() {
            return None;
        }
        let plain = |value: &Value| value.is_boolean() || value.is_number() || value.is_string();
        let mut identity = String::new();
        for key in self.keys {
            let value = item.get(key).filter(|value| plain(value))?;
            identity.push_str(&value.to_string());
            identity.push(',');
        }
        Some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keyed_list() -> Schema {
        serde_json::from_value(json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
        }))
        .unwrap()
    }

    #[test]
    fn items_without_their_keys_are_not_taken_for_each_other() {
        let schema = keyed_list();
        for list in [
            json!([{"v": 0}, {}]),
            json!([{"k": {}}]),
            json!([{"k": null}]),
        ] {
            let same = Correlated::new(&list, &list, &schema);
            assert!(
                !same.is_unchanged() && same.items().at(0).is_none(),
                "{list}"
            );
        }
    }

    #[test]
    fn keyed_items_are_found_wherever_they_stand() {
        let schema = keyed_list();
        let old = json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]);
        let turned = json!([{"k": "b", "v": 2}, {"k": "a", "v": 1}]);
        let changed = json!([{"k": "b", "v": 3}, {"k": "a", "v": 1}]);
        assert!(Correlated::new(&turned, &old, &schema).is_unchanged());
        let changed = Correlated::new(&changed, &old, &schema);
        assert!(!changed.is_unchanged());
        assert!(changed.items().at(1).is_some_and(Correlated::is_unchanged));
        assert!(
            changed
                .items()
                .at(0)
                .is_some_and(|item| !item.is_unchanged())
        );
    }
}

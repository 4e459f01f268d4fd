//! Ratcheting: a value that an update does not change is not held against it.
//!
//! [`Correlated`] pairs a value with what it was before. Fields and map entries are paired by
//! name, items of keyed lists by their keys, items of other lists not at all.

use serde_json::Value;

use super::schema::Schema;

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

    /// The item at `index` of a keyed list, if there was one of the same keys.
    pub(super) fn index(self, index: usize) -> Option<Self> {
        let item = self.new.as_array()?.get(index)?;
        let old = same_keys(self.schema, self.old, item)?;
        Some(Self::new(item, old, self.schema.item()?))
    }

    /// Whether nothing changed. The order of a keyed list is no change.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if !self.schema.is_list_of("map") {
                    return new == old;
                }
                new.len() == old.len()
                    && (0..new.len()).all(|index| self.index(index).is_some_and(Self::is_unchanged))
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

/// The item of a keyed list `old` that has the keys of `item`. One that lacks a key, or has a key
/// that is no plain value, was never there.
pub(super) fn same_keys<'a>(schema: &Schema, old: &'a Value, item: &Value) -> Option<&'a Value> {
    if !schema.is_list_of("map") {
        return None;
    }
    let keys = &schema.list_map_keys;
    let plain = |value: &Value| value.is_boolean() || value.is_number() || value.is_string();
    if !keys.iter().all(|key| item.get(key).is_some_and(plain)) {
        return None;
    }
    old.as_array()?
        .iter()
        .filter(|candidate| candidate.is_object())
        .find(|candidate| keys.iter().all(|key| candidate.get(key) == item.get(key)))
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
            assert!(!same.is_unchanged() && same.index(0).is_none(), "{list}");
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
        assert!(changed.index(1).is_some_and(Correlated::is_unchanged));
        assert!(changed.index(0).is_some_and(|item| !item.is_unchanged()));
    }
}

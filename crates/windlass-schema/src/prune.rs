//! What a schema makes of an object before it is looked at: unknown fields go, nulls that may not
//! be go, the metadata of embedded objects is read as metadata, and defaults come.
//!
//! All of it happens on write and again on read, since the schema may have changed in between.
//! Doing it twice does no more than doing it once.
//!
//! A small object gets as much as its schema has defaults for: each item of a list, each of its own,
//! and so on down. So all that is filled into one object is limited.

use serde_json::{Map, Value};

use super::error::ReadError;
use super::object::ReadMetadata;
use super::schema::{AdditionalProperties, META_FIELDS, Schema};
use windlass_apimachinery::findings::Findings;
use windlass_apimachinery::place::Place;
use windlass_apimachinery::steps::step;

/// What is filled into one object, in bytes more or less: more than may be stored.
const MOST_DEFAULTS: usize = 3 * 1024 * 1024;

/// An object was to get more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of its schema would add more than {MOST_DEFAULTS} bytes to it")]
pub struct TooMuch;

/// How much may still be filled in.
struct Room(usize);

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.0 = self.0.checked_sub(bytes).ok_or(TooMuch)?;
        Ok(())
    }

    /// Copies a default, if there is room for it.
    fn copy(&mut self, default: &Value) -> Result<Value, TooMuch> {
        self.take_all(default)?;
        Ok(default.clone())
    }

    /// The same of one that there may not be: what stands there stays null then.
    fn copy_of(&mut self, default: Option<&Value>) -> Result<Value, TooMuch> {
        default.map_or(Ok(Value::Null), |default| self.copy(default))
    }

    /// Takes about as many bytes as a value has when it is written down.
    fn take_all(&mut self, value: &Value) -> Result<(), TooMuch> {
        step();
        self.take(4)?;
        match value {
            Value::String(text) => self.take(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.take_all(item)),
            Value::Object(map) => map.iter().try_for_each(|(name, value)| {
                self.take(name.len())?;
                self.take_all(value)
            }),
            _ => Ok(()),
        }
    }
}

impl Schema {
    /// Removes what the schema does not know; tells the paths of what it removed.
    pub fn prune(&self, object: &mut Value, is_root: bool) -> Vec<String> {
        let mut pruned = Findings::bounded();
        prune(object, Some(self), is_root, &Place::Root, &mut pruned);
        let mut pruned = pruned.into_texts();
        pruned.sort();
        pruned
    }

    /// Removes fields that are null, may not be, and have no default: it is as if they had not been said.
    pub fn drop_nulls(&self, value: &mut Value) {
        step();
        match value {
            Value::Object(map) => {
                map.retain(|name, value| {
                    !value.is_null()
                        || self
                            .member(name)
                            .is_none_or(|schema| schema.nullable || schema.default.is_some())
                });
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = self.member(name) {
                        schema.drop_nulls(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = self.item() {
                    for item in items {
                        schema.drop_nulls(item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Fills in defaults, deepest last, as Kubernetes does: a default object is itself defaulted.
    pub fn fill_defaults(&self, value: &mut Value) -> Result<(), TooMuch> {
        self.fill(value, &mut Room(MOST_DEFAULTS))
    }

    fn fill(&self, value: &mut Value, room: &mut Room) -> Result<(), TooMuch> {
        step();
        let is_absent = |value: Option<&Value>, schema: &Schema| match value {
            None => true,
            Some(Value::Null) => !schema.nullable,
            Some(_) => false,
        };
        match value {
            Value::Object(map) => {
                for (name, schema) in &self.properties {
                    if let Some(default) = &schema.default
                        && is_absent(map.get(name), schema)
                    {
                        room.take(name.len())?;
                        map.insert(name.clone(), room.copy(default)?);
                    }
                }
                for (name, value) in map.iter_mut() {
                    let Some(schema) = self.member(name) else {
                        continue;
                    };
                    if !self.properties.contains_key(name) && is_absent(Some(value), schema) {
                        *value = room.copy_of(schema.default.as_ref())?;
                    }
                    schema.fill(value, room)?;
                }
            }
            Value::Array(items) => {
                let Some(schema) = self.item() else {
                    return Ok(());
                };
                for item in items {
                    if is_absent(Some(item), schema) {
                        *item = room.copy_of(schema.default.as_ref())?;
                    }
                    schema.fill(item, room)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the metadata of embedded objects as metadata: tells its unknown fields, which are
    /// removed, or why it cannot be read.
    pub fn read_embedded(
        &self,
        object: &mut Value,
        read: ReadMetadata,
    ) -> Result<Vec<String>, ReadError> {
        let mut unknown = Findings::bounded();
        read_embedded(object, self, &Place::Root, read, &mut unknown)?;
        let mut unknown = unknown.into_texts();
        unknown.sort();
        Ok(unknown)
    }
}

fn prune(
    value: &mut Value,
    schema: Option<&Schema>,
    is_root: bool,
    at: &Place<'_>,
    pruned: &mut Findings,
) {
    step();
    let keeps_unknown = schema.is_some_and(Schema::keeps_unknown);
    match value {
        Value::Object(map) => {
            let Some(schema) = schema else {
                for name in map.keys() {
                    pruned.add(|| Place::Field(at, name).path());
                }
                map.clear();
                return;
            };
            let resource = is_root || schema.embedded;
            let is_kept = |name: &str| {
                keeps_unknown
                    || (resource && META_FIELDS.contains(&name))
                    || schema.properties.contains_key(name)
                    || schema.additional_properties.is_some()
            };
            map.retain(|name, _| {
                let kept = is_kept(name);
                if !kept && (!at.is_empty() || !META_FIELDS.contains(&name.as_str())) {
                    pruned.add(|| Place::Field(at, name).path());
                }
                kept
            });
            for (name, value) in map.iter_mut() {
                if resource && META_FIELDS.contains(&name.as_str()) {
                    continue;
                }
                let inner = match (&schema.additional_properties, schema.properties.get(name)) {
                    (_, Some(property)) => Some(property),
                    (Some(AdditionalProperties::Of(values)), None) => Some(&**values),
                    (Some(AdditionalProperties::Allowed(_)), None) => None,
                    // Kept whole: nothing is known of it.
                    (None, None) => continue,
                };
                prune(value, inner, false, &Place::Field(at, name), pruned);
            }
        }
        Value::Array(items) => {
            let inner = schema.and_then(Schema::item);
            // What is in a list that keeps what it does not know is kept, too.
            if keeps_unknown && inner.is_none() {
                return;
            }
            for (index, item) in items.iter_mut().enumerate() {
                prune(item, inner, false, &Place::Item(at, index), pruned);
            }
        }
        _ => {}
    }
}

fn read_embedded(
    value: &mut Value,
    schema: &Schema,
    at: &Place<'_>,
    read: ReadMetadata,
    unknown: &mut Findings,
) -> Result<(), ReadError> {
    step();
    match value {
        Value::Object(map) => {
            if schema.embedded {
                read_metadata(map, at, read, unknown)?;
            }
            for (name, value) in map.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    read_embedded(value, property, &Place::Field(at, name), read, unknown)?;
                } else if let Some(values) = schema.values() {
                    read_embedded(value, values, &Place::Key(at, name), read, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for (index, item) in items.iter_mut().enumerate() {
                    read_embedded(item, schema, &Place::Item(at, index), read, unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn read_metadata(
    map: &mut Map<String, Value>,
    at: &Place<'_>,
    read: ReadMetadata,
    unknown: &mut Findings,
) -> Result<(), ReadError> {
    for part in ["apiVersion", "kind"] {
        if let Some(value) = map.get(part).filter(|value| !value.is_string()) {
            return Err(ReadError::NotText {
                at: Place::Field(at, part).to_string(),
                value: value.clone(),
            });
        }
    }
    let Some(metadata) = map.get_mut("metadata") else {
        return Ok(());
    };
    let at = &Place::Field(at, "metadata");
    let shown = metadata.clone();
    let found = read(metadata).map_err(|why| ReadError::Metadata {
        at: at.to_string(),
        value: shown,
        why,
    })?;
    for field in &found {
        unknown.add(|| format!("{at}.{field}"));
    }
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        serde_json::from_value(json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "default": 1},
                "nested": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": true}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                    "known": {"type": "object", "properties": {"a": {"type": "string"}}},
                }},
            }}},
        }))
        .unwrap()
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut value = json!({"kind": "K", "metadata": {"name": "x"}, "spec": {
            "size": 1, "odd": 1, "free": {"a": {"b": 1}, "known": {"a": "", "c": 1}}}});
        let pruned = schema().prune(&mut value, true);
        assert_eq!(
            value,
            json!({"kind": "K", "metadata": {"name": "x"}, "spec": {"size": 1, "free": {"a": {"b": 1}, "known": {"a": ""}}}})
        );
        assert_eq!(pruned, ["spec.free.known.c", "spec.odd"]);
    }

    #[test]
    fn defaults_fill_what_is_absent_and_defaults_have_defaults() {
        let mut value = json!({"spec": {"size": null}});
        schema().fill_defaults(&mut value).unwrap();
        assert_eq!(value, json!({"spec": {"size": 1, "nested": {"on": true}}}));
    }

    #[test]
    fn defaults_within_defaults_end_when_there_is_more_than_may_be_stored() {
        // Each level has a hundred of the next, which no object asks for.
        let bomb = (0..10).fold(json!({"type": "string", "default": "x"}), |below, _| {
            json!({
                "type": "array", "default": vec![json!({}); 100],
                "items": {"type": "object", "properties": {"below": below}},
            })
        });
        let bomb = json!({"type": "object", "properties": {"bomb": bomb}});
        let bomb: Schema = serde_json::from_value(bomb).unwrap();
        let (result, steps) =
            windlass_apimachinery::steps::counted(|| bomb.fill_defaults(&mut json!({})));
        assert_eq!(result, Err(TooMuch));
        assert!(steps <= MOST_DEFAULTS as u64, "{steps} steps");
        let large = json!({"type": "object", "properties": {"list": {
            "type": "array", "items": {"type": "string", "nullable": false, "default": "x".repeat(1000)},
        }}});
        let large: Schema = serde_json::from_value(large).unwrap();
        let mut few = json!({"list": [null, null]});
        assert_eq!(large.fill_defaults(&mut few), Ok(()));
        let mut many = json!({"list": vec![Value::Null; 10_000]});
        assert_eq!(large.fill_defaults(&mut many), Err(TooMuch));
    }
}

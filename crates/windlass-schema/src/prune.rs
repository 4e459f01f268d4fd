//! What a schema makes of an object before it is looked at: unknown fields go, nulls that may not
//! be go, the metadata of embedded objects is read as metadata, and defaults come.
//!
//! All of it happens on write and again on read, since the schema may have changed in between.
//! Doing it twice does no more than doing it once.

use serde_json::{Map, Value};

use super::object::ReadMetadata;
use super::schema::{AdditionalProperties, META_FIELDS, Schema};
use windlass_apimachinery::findings::Findings;
use windlass_apimachinery::go;
use windlass_apimachinery::place::Place;
use windlass_apimachinery::steps::step;

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
    pub fn fill_defaults(&self, value: &mut Value) {
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
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (name, value) in map.iter_mut() {
                    let Some(schema) = self.member(name) else {
                        continue;
                    };
                    if !self.properties.contains_key(name) && is_absent(Some(value), schema) {
                        *value = schema.default.clone().unwrap_or_default();
                    }
                    schema.fill_defaults(value);
                }
            }
            Value::Array(items) => {
                let Some(schema) = self.item() else { return };
                for item in items {
                    if is_absent(Some(item), schema) {
                        *item = schema.default.clone().unwrap_or_default();
                    }
                    schema.fill_defaults(item);
                }
            }
            _ => {}
        }
    }

    /// Reads the metadata of embedded objects as metadata: tells its unknown fields, which are
    /// removed, or why it cannot be read.
    pub fn read_embedded(
        &self,
        object: &mut Value,
        read: ReadMetadata,
    ) -> Result<Vec<String>, String> {
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
) -> Result<(), String> {
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
) -> Result<(), String> {
    for part in ["apiVersion", "kind"] {
        if let Some(value) = map.get(part).filter(|value| !value.is_string()) {
            let at = Place::Field(at, part);
            return Err(format!("{at}: Invalid value: {value}: must be a string"));
        }
    }
    let Some(metadata) = map.get_mut("metadata") else {
        return Ok(());
    };
    let at = &Place::Field(at, "metadata");
    let shown = metadata.clone();
    let found = read(metadata).map_err(|why| {
        let shown = match &shown {
            Value::Object(map) => go::metadata_json(map),
            other => other.to_string(),
        };
        format!("{at}: Invalid value: {shown}: {why}")
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
        schema().fill_defaults(&mut value);
        assert_eq!(value, json!({"spec": {"size": 1, "nested": {"on": true}}}));
    }
}

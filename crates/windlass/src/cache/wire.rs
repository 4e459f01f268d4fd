//! [`Wire`]: an object as it came over the wire, of whatever kind.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json};

/// What the name of the field manager ends with that changes values by patches, rather than by
/// applies: what it owns is the operator's as well.
pub(crate) const VALUES: &str = "-values";

/// An undecoded object.
#[derive(Clone, Debug)]
pub(crate) struct Wire<const WHOLE: bool = true> {
    pub(crate) value: Value,
    /// For the client's traits alone: nothing is read from it.
    meta: ObjectMeta,
}

/// An object for a cache. It does not tell which fields others own by updates: that is often half
/// of what is sent, and the cache has no use for it.
pub(crate) type Watched = Wire<false>;

impl<const WHOLE: bool> Wire<WHOLE> {
    pub(crate) fn new(value: Value) -> Self {
        Self {
            value,
            meta: ObjectMeta::default(),
        }
    }

    /// An object of which only the metadata is known.
    pub(crate) fn of_metadata(metadata: &ObjectMeta) -> Self {
        Self::new(json!({ "metadata": metadata }))
    }
}

impl<'de, const WHOLE: bool> Deserialize<'de> for Wire<WHOLE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = if WHOLE {
            Value::deserialize(deserializer)
        } else {
            Place::Object.deserialize(deserializer)
        };
        value.map(Self::new)
    }
}

/// Where in a [`Watched`] object a value stands, as far as that matters.
#[derive(Clone, Copy)]
enum Place {
    Object,
    Metadata,
    Managers,
    Manager,
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Self::Object, "metadata") => map.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => map.next_value_seed(Self::Managers)?,
                (Self::Manager, "fieldsV1") if updates(&fields) => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => map.next_value()?,
            };
            fields.insert(name, value);
        }
        Ok(fields.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Self::Manager)? {
            if !item.as_object().is_some_and(updates) {
                items.push(item);
            }
        }
        Ok(items.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

impl<const WHOLE: bool> Serialize for Wire<WHOLE> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<const WHOLE: bool> Resource for Wire<WHOLE> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// Whether an entry of the managed fields is about updates of others, as far as is known of it yet.
fn updates(entry: &Map<String, Value>) -> bool {
    let manager = entry.get("manager").and_then(Value::as_str);
    entry.get("operation").is_some_and(|one| one != "Apply")
        && !manager.is_some_and(|manager| manager.ends_with(VALUES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> serde_json::Result<Value> {
        serde_json::from_str::<Watched>(text).map(|wire| wire.value)
    }

    #[test]
    fn fields_owned_by_updates_are_left_out_and_nothing_else() {
        let applied = r#"{"manager": "us", "operation": "Apply", "fieldsV1": {"f:data": {}}}"#;
        let updated = r#"{"manager": "you", "operation": "Update", "fieldsV1": {"f:status": {}}}"#;
        let turned = r#"{"fieldsV1": {"f:status": {}}, "manager": "you", "operation": "Update"}"#;
        let valued =
            r#"{"manager": "us-values", "operation": "Update", "fieldsV1": {"f:spec": {}}}"#;
        let object = |entries: &[&str]| {
            let entries = entries.join(",");
            format!(
                r#"{{
                    "kind": "ConfigMap",
                    "metadata": {{
                        "name": "a", "labels": {{"operation": "x"}}, "managedFields": [{entries}]
                    }},
                    "data": {{"metadata": {{"managedFields": [{updated}]}}}}
                }}"#
            )
        };
        let whole = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let sent = object(&[updated, applied, turned, valued]);
        assert_eq!(read(&sent).unwrap(), whole(&object(&[applied, valued])));
        let all: Wire = serde_json::from_str(&sent).unwrap();
        assert_eq!(all.value, whole(&sent));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (text, is_read) in [
            (r#"{"metadata": null}"#, true),
            (r#"{"metadata": {"managedFields": null}}"#, true),
            (r#""text""#, false),
            (r#"{"metadata": 1}"#, false),
            (r#"{"metadata": {"managedFields": "x"}}"#, false),
        ] {
            assert_eq!(read(text).is_ok(), is_read, "{text}");
        }
    }
}

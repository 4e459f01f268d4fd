//! [`Watched`]: an object on its way into a cache.
//!
//! What a watch sends is read once, from text into text: metadata is looked into, and everything
//! else is copied as it comes. No tree of values is made, which would cost more than all the rest.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// An object, as far as a cache needs to know it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    pub(super) head: Head,
    /// The fields of the object, as JSON without the braces around them: all but `apiVersion`,
    /// `kind` and `managedFields`.
    pub(super) fields: Vec<u8>,
    /// For the client's traits alone: nothing is read from it.
    meta: ObjectMeta,
}

/// What is known of the metadata.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The resource version.
    pub(super) version: String,
    pub(super) generation: i64,
    pub(super) terminating: bool,
    /// Labels, annotations and owner references, as far as there are any.
    pub(super) maps: Value,
    /// Who manages which fields.
    pub(super) managers: Vec<Manager>,
}

/// An entry of the managed fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: String,
    pub(super) subresource: String,
    /// As JSON.
    pub(super) fields: Vec<u8>,
}

impl Watched {
    /// An object of which only the metadata is known.
    pub(crate) fn of_metadata(metadata: &ObjectMeta) -> Self {
        serde_json::json!({ "metadata": metadata }).into()
    }

    /// The resource version that the server sent, if it did.
    pub(super) fn resource_version(&self) -> Option<String> {
        Some(self.head.version.clone()).filter(|version| !version.is_empty())
    }

    /// With the fields of another, and what is known of its managers.
    pub(super) fn replaced(self, by: Value) -> Self {
        let mut other = Self::from(by);
        other.head.managers = self.head.managers;
        other
    }

    /// The object without `apiVersion` and `kind`.
    pub(super) fn value(&self) -> Value {
        let text = [b"{", &*self.fields, b"}"].concat();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

impl From<Value> for Watched {
    /// What is no object is one without fields.
    fn from(object: Value) -> Self {
        Self::deserialize(object).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

impl Resource for Watched {
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

/// Reads an object.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Watched;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Watched, A::Error> {
        let mut object = Watched::default();
        // About what an object takes, so that the text is seldom moved while it grows.
        object.fields.reserve(2048);
        while let Some(Name(name)) = map.next_key()? {
            if matches!(&*name, "apiVersion" | "kind") {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            begin_field(&mut object.fields, &name);
            if name == "metadata" {
                let (head, into) = (&mut object.head, &mut object.fields);
                map.next_value_seed(Metadata { head, into })?;
            } else {
                map.next_value_seed(Copy(&mut object.fields))?;
            }
        }
        Ok(object)
    }
}

/// Reads metadata, and copies it.
struct Metadata<'a> {
    head: &'a mut Head,
    into: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Metadata<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Metadata<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("metadata")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.into.extend_from_slice(b"null");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { head, into } = self;
        into.push(b'{');
        while let Some(Name(name)) = map.next_key()? {
            if name == "managedFields" {
                head.managers = map.next_value::<Option<_>>()?.unwrap_or_default();
                continue;
            }
            begin_field(into, &name);
            let begin = into.len();
            map.next_value_seed(Copy(into))?;
            head.note(&name, into.get(begin..).unwrap_or_default());
        }
        into.push(b'}');
        Ok(())
    }
}

impl Head {
    /// Notes a field. What has another type than Kubernetes gives it counts as absent.
    fn note(&mut self, name: &str, json: &[u8]) {
        fn read<'de, T: Deserialize<'de> + Default>(json: &'de [u8]) -> T {
            serde_json::from_slice(json).unwrap_or_default()
        }
        match name {
            "namespace" => self.namespace = read(json),
            "name" => self.name = read(json),
            "uid" => self.uid = read(json),
            "resourceVersion" => self.version = read(json),
            "generation" => self.generation = read(json),
            "deletionTimestamp" => self.terminating = json != b"null",
            "labels" | "annotations" | "ownerReferences" => self.maps[name] = read(json),
            _ => {}
        }
    }
}

impl<'de> Deserialize<'de> for Manager {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;

        impl<'de> Visitor<'de> for Entry {
            type Value = Manager;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an entry of managedFields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Manager, A::Error> {
                let mut entry = Manager::default();
                while let Some(Name(name)) = map.next_key()? {
                    match &*name {
                        "manager" => entry.name = text(&mut map)?,
                        "operation" => entry.operation = text(&mut map)?,
                        "subresource" => entry.subresource = text(&mut map)?,
                        "fieldsV1" => map.next_value_seed(Copy(&mut entry.fields))?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(entry)
            }
        }

        fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<String, A::Error> {
            let text: Option<String> = map.next_value()?;
            Ok(text.unwrap_or_default())
        }

        deserializer.deserialize_map(Entry)
    }
}

/// The name of a field, borrowed where it can be.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Writes a comma, where a field stands before it, and the name.
fn begin_field(into: &mut Vec<u8>, name: &str) {
    if into.last().is_some_and(|last| *last != b'{') {
        into.push(b',');
    }
    write(into, name);
    into.push(b':');
}

/// Writes a scalar. Writing to a vector does not fail.
fn write<T: Serialize + ?Sized>(into: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(into, value);
}

/// Copies a value as JSON, whatever it is.
struct Copy<'a>(&'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Copy<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! scalars {
    ($($method:ident($type:ty)),* $(,)?) => {$(
        fn $method<E>(self, value: $type) -> Result<(), E> {
            write(self.0, &value);
            Ok(())
        }
    )*};
}

impl<'de> Visitor<'de> for Copy<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    scalars!(
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str),
    );

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let into = self.0;
        into.push(b'[');
        let begin = into.len();
        loop {
            let end = into.len();
            if end > begin {
                into.push(b',');
            }
            if list.next_element_seed(Copy(into))?.is_none() {
                into.truncate(end);
                into.push(b']');
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let into = self.0;
        into.push(b'{');
        while let Some(Name(name)) = map.next_key()? {
            begin_field(into, &name);
            map.next_value_seed(Copy(into))?;
        }
        into.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> serde_json::Result<Watched> {
        serde_json::from_str(text)
    }

    #[test]
    fn metadata_is_looked_into_and_fields_of_managers_are_kept_apart() {
        let entry = json!({
            "manager": "us", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:data": {"f:k": {}}},
        });
        let sent = json!({
            "kind": "ConfigMap",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "42", "generation": 3,
                "labels": {"operation": "x"},
                "annotations": {"note": "\"quoted\" <b>\n"},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [entry, {"manager": "you", "operation": "Update", "subresource": "status"}],
            },
            "data": {"metadata": {"managedFields": [entry]}, "empty": [], "none": {}},
        });
        let object = read(&sent.to_string()).unwrap();
        let head = &object.head;
        assert_eq!((&*head.namespace, &*head.name, &*head.uid), ("n", "a", "u"));
        assert_eq!(
            (&*head.version, head.generation, head.terminating),
            ("42", 3, true)
        );
        assert_eq!(head.maps["labels"], json!({"operation": "x"}));
        let managers = head.managers.iter();
        let managers: Vec<_> = managers
            .map(|one| (&*one.name, &*one.operation, &*one.subresource))
            .collect();
        assert_eq!(managers, [("us", "Apply", ""), ("you", "Update", "status")]);
        assert_eq!(head.managers[0].fields, br#"{"f:data":{"f:k":{}}}"#);
        let mut kept = sent.clone();
        kept.as_object_mut().unwrap().remove("kind");
        kept["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(object.value(), kept);
        let from_value = Watched::from(sent);
        assert_eq!(from_value.value(), kept);
        assert_eq!(from_value.head.managers.len(), 2);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (text, is_read) in [
            (r#"{"metadata": null}"#, true),
            (r#"{"metadata": {"managedFields": null}}"#, true),
            (
                r#"{"metadata": {"labels": 1, "deletionTimestamp": null}}"#,
                true,
            ),
            (r#""text""#, false),
            (r#"{"metadata": 1}"#, false),
            (r#"{"metadata": {"managedFields": "x"}}"#, false),
            (r#"{"data": {"a": }}"#, false),
        ] {
            assert_eq!(read(text).is_ok(), is_read, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            // Without rounding: the parser of JSON is off by the last bit at times.
            any::<i16>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_copied_as_it_is(value in values()) {
            let sent = json!({"metadata": {"name": "a", "annotations": value}, "spec": value});
            let object = read(&sent.to_string()).unwrap();
            prop_assert_eq!(object.value(), sent);
        }
    }
}

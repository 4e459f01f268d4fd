//! [`CachedObject`]: one object, kept compactly.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    labels::Labels,
    packed::{Example, Packed},
    watched::{Manager, Watched},
    wire::VALUES,
};
use crate::{Error, Key, Result, client::managed, kind::KindInfo};

/// The controller of an object, as its owner reference names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) api_version: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
}

/// An object: its encoded form, beside what indexes, selectors and expectations need.
#[derive(Clone, Debug)]
pub(crate) struct CachedObject {
    pub(crate) key: Key,
    pub(crate) uid: Box<str>,
    /// The resource version as a number: versions of one kind are ordered.
    pub(crate) version: u64,
    pub(crate) labels: Labels,
    pub(crate) controller: Option<Owner>,
    pub(crate) terminating: bool,
    pub(crate) generation: i64,
    /// A number that changes when the annotations do: all that predicates ask of them.
    pub(crate) annotations: u64,
    /// Whether some of the fields are owned by patches of values, rather than by applies.
    pub(crate) patched: bool,
    /// The fields this operator applied, in the server's own notation.
    managed: Option<Packed>,
    json: Packed,
}

/// What the objects of a store are compared with, to be kept small.
#[derive(Debug, Default)]
pub(crate) struct Examples {
    json: Example,
    managed: Example,
}

impl CachedObject {
    /// Takes in an object as the server sent it. `manager` is this operator's field manager.
    pub(crate) fn new(
        object: impl Into<Watched>,
        kind: &KindInfo,
        manager: &str,
        examples: &Examples,
    ) -> Self {
        let Watched { head, fields, .. } = object.into();
        // Items of a list do not say what they are.
        let what = format!(
            r#"{{"apiVersion":"{}","kind":"{}""#,
            kind.api_version(),
            kind.kind
        );
        let comma: &[u8] = if fields.is_empty() { b"" } else { b"," };
        let json = [what.as_bytes(), comma, &fields, b"}"].concat();
        let (fields, patched) = managed_by(head.managers, manager);
        let annotations = head.maps.get("annotations");
        Self {
            key: Key::from_parts(Some(&head.namespace), &head.name),
            uid: head.uid.into(),
            version: head.version.parse().unwrap_or(0),
            labels: Labels::of_metadata(&head.maps),
            controller: controller_of(&head.maps),
            terminating: head.terminating,
            generation: head.generation,
            annotations: annotations.map_or(0, managed::fingerprint),
            patched,
            managed: fields.map(|fields| Packed::new(&fields, &examples.managed)),
            json: Packed::new(&json, &examples.json),
        }
    }

    /// The object as its type.
    pub(crate) fn decode<T: DeserializeOwned>(&self, kind: &KindInfo) -> Result<T> {
        serde_json::from_slice(&self.json.unpacked()).map_err(|source| Error::Codec {
            verb: "decode",
            object: format!("{kind} {}", self.key),
            source,
        })
    }

    /// How much memory the object takes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.json.len() + self.managed.as_ref().map_or(0, Packed::len) + size_of::<Self>()
    }

    /// How long its text is.
    pub(crate) fn text_bytes(&self) -> usize {
        self.json.text_len()
    }

    /// Its metadata and its status alone: all that keeping finalizers and conditions needs.
    pub(crate) fn head(&self) -> Value {
        #[derive(Default, Deserialize)]
        struct Head {
            #[serde(default)]
            metadata: Value,
            #[serde(default)]
            status: Value,
        }
        let Head { metadata, status } =
            serde_json::from_slice(&self.json.unpacked()).unwrap_or_default();
        let mut head = json!({ "metadata": metadata });
        if !status.is_null() {
            head["status"] = status;
        }
        head
    }

    /// The object as plain JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json.unpacked()).unwrap_or_default()
    }

    /// Whether this operator applied it.
    pub(crate) fn is_applied(&self) -> bool {
        self.managed.is_some()
    }

    /// The fields this operator applied, in the server's own notation.
    pub(crate) fn managed(&self) -> Option<Value> {
        serde_json::from_slice(&self.managed.as_ref()?.unpacked()).ok()
    }
}

/// The resource version of an object as a number, zero if it has none.
pub(crate) fn version_of(value: &Value) -> u64 {
    let version = value
        .get("metadata")
        .and_then(|metadata| metadata.get("resourceVersion"))
        .and_then(Value::as_str);
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

/// The owner reference marked as the controller.
pub(crate) fn controller_of(metadata: &Value) -> Option<Owner> {
    let references = metadata.get("ownerReferences")?.as_array()?;
    let controller = references
        .iter()
        .find(|reference| reference.get("controller").and_then(Value::as_bool) == Some(true))?;
    let text = |field: &str| {
        controller
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into()
    };
    Some(Owner {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: text("name"),
        uid: text("uid"),
    })
}

/// Removes the field lists of all managers and returns ours: what our applies own together with
/// what our patches of values own, and whether there is any of the latter.
pub(crate) fn take_managed(value: &mut Value, manager: &str) -> (Option<Value>, bool) {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    let entries = metadata.and_then(|metadata| metadata.remove("managedFields"));
    let Some(Value::Array(entries)) = entries else {
        return (None, false);
    };
    let (mut applied, mut patched) = (None, None);
    for mut entry in entries {
        let ours = match of_entry(&entry, manager) {
            Some(Ours::Applied) => &mut applied,
            Some(Ours::Patched) => &mut patched,
            None => continue,
        };
        *ours = entry.get_mut("fieldsV1").map(Value::take);
    }
    match (applied, patched) {
        (Some(applied), Some(patched)) => (Some(managed::union(applied, patched)), true),
        (applied, patched) => {
            let is_patched = patched.is_some();
            (applied.or(patched), is_patched)
        }
    }
}

/// As [`take_managed`], of fields as JSON.
fn managed_by(managers: Vec<Manager>, manager: &str) -> (Option<Vec<u8>>, bool) {
    let (mut applied, mut patched) = (None, None);
    for entry in managers {
        match ours(&entry.name, &entry.operation, &entry.subresource, manager) {
            Some(Ours::Applied) => applied = Some(entry.fields),
            Some(Ours::Patched) => patched = Some(entry.fields),
            None => {}
        }
    }
    match (applied, patched) {
        (Some(applied), Some(patched)) => {
            let fields = |json: &[u8]| serde_json::from_slice(json).unwrap_or_default();
            let both = managed::union(fields(&applied), fields(&patched));
            (Some(both.to_string().into_bytes()), true)
        }
        (applied, patched) => {
            let is_patched = patched.is_some();
            (applied.or(patched), is_patched)
        }
    }
}

/// How fields came to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    Applied,
    Patched,
}

/// Whether an entry of the managed fields is ours, outside of subresources.
pub(crate) fn of_entry(entry: &Value, manager: &str) -> Option<Ours> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    ours(
        text("manager"),
        text("operation"),
        text("subresource"),
        manager,
    )
}

fn ours(name: &str, operation: &str, subresource: &str, manager: &str) -> Option<Ours> {
    if !subresource.is_empty() {
        return None;
    }
    if name == manager && operation == "Apply" {
        return Some(Ours::Applied);
    }
    let patched = name.strip_suffix(VALUES) == Some(manager) && operation == "Update";
    patched.then_some(Ours::Patched)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn keeps_what_lookups_need_and_our_fields_only() {
        let object = CachedObject::new(
            json!({
                "metadata": {
                    "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "42",
                    "labels": {"app": "x"},
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Other", "name": "p", "uid": "1"},
                        {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "2", "controller": true},
                    ],
                    "managedFields": [
                        {"manager": "other", "operation": "Apply", "fieldsV1": {"f:data": {}}},
                        {"manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {}},
                        {"manager": "us", "operation": "Apply", "fieldsV1": {"f:data": {"f:k": {}}}},
                    ],
                },
                "data": {"k": "v"},
            }),
            &KindInfo::of::<ConfigMap>(),
            "us",
            &Examples::default(),
        );
        assert_eq!(object.key, Key::namespaced("n", "a"));
        assert_eq!(object.version, 42);
        assert_eq!(object.labels.get("app"), Some("x"));
        assert_eq!(
            object.controller.as_ref().map(|owner| &*owner.uid),
            Some("2")
        );
        assert_eq!(object.managed(), Some(json!({"f:data": {"f:k": {}}})));
        assert!(!object.patched);
        let head = object.head();
        assert_eq!(head["metadata"]["uid"], "u");
        assert_eq!(head.get("data"), None);
        let map: ConfigMap = object.decode(&KindInfo::of::<ConfigMap>()).unwrap();
        assert_eq!(map.metadata.managed_fields, None);
        assert_eq!(map.data.unwrap()["k"], "v");
    }

    #[test]
    fn fields_that_patches_own_are_ours_too() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
        let taken = |entries: Value| {
            let mut object = json!({"metadata": {"managedFields": entries}});
            take_managed(&mut object, "us")
        };
        let applied = entry("us", "Apply", json!({"f:data": {"f:k": {}}}));
        let patched = entry("us-values", "Update", json!({"f:data": {"f:l": {}}}));
        let others = [
            entry("us", "Update", json!({"f:data": {"f:m": {}}})),
            entry("we-values", "Update", json!({"f:data": {"f:m": {}}})),
            entry("us-values", "Apply", json!({"f:data": {"f:m": {}}})),
        ];
        let both = json!({"f:data": {"f:k": {}, "f:l": {}}});
        let with_others = json!([others[0], others[1], applied, others[2]]);
        assert_eq!(
            taken(with_others),
            (Some(applied["fieldsV1"].clone()), false)
        );
        assert_eq!(
            taken(json!([applied, patched, others[0]])),
            (Some(both), true)
        );
        assert_eq!(
            taken(json!([patched])),
            (Some(patched["fieldsV1"].clone()), true)
        );
        assert_eq!(taken(json!(others)), (None, false));
    }
}

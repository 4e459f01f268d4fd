//! One stored object: its encoded JSON, and the few parts of it that are looked at without parsing.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value};

/// Namespace and name; the namespace is empty for cluster-scoped objects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// An object as it is kept.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) uid: Box<str>,
    pub(crate) revision: u64,
    pub(crate) labels: BTreeMap<String, String>,
    /// Values of the fields that selectors may name, in the order the resource lists them.
    pub(crate) fields: Box<[(Box<str>, Box<str>)]>,
    /// The whole object, `resourceVersion` included.
    pub(crate) json: Bytes,
}

impl Stored {
    /// Encodes `value` as of `revision`.
    pub(crate) fn encode(
        mut value: Value,
        revision: u64,
        selectable: &[String],
    ) -> Result<Self, serde_json::Error> {
        set_revision(&mut value, revision);
        let json = serde_json::to_vec(&value)?;
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let labels = value["metadata"]["labels"]
            .as_object()
            .map(labels_of)
            .unwrap_or_default();
        let fields = selectable
            .iter()
            .map(|field| (field.as_str().into(), field_text(&value, field).into()))
            .collect();
        Ok(Self {
            key: Key::new(text("namespace"), text("name")),
            uid: text("uid").into(),
            revision,
            labels,
            fields,
            json: json.into(),
        })
    }

    /// The object as a tree, for a write that changes it.
    pub(crate) fn value(&self) -> Value {
        // What is stored was encoded from a tree, so it parses.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The encoded object, but at another revision.
    pub(crate) fn json_at(&self, revision: u64) -> Bytes {
        let mut value = self.value();
        set_revision(&mut value, revision);
        serde_json::to_vec(&value).map_or_else(|_| self.json.clone(), Bytes::from)
    }
}

fn set_revision(value: &mut Value, revision: u64) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), revision.to_string().into());
    }
}

fn labels_of(labels: &Map<String, Value>) -> BTreeMap<String, String> {
    labels
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The value of a dotted field as selectors compare it: text as it is, absent as empty.
fn field_text(value: &Value, field: &str) -> String {
    let found = field
        .split('.')
        .try_fold(value, |value, part| value.get(part));
    match found {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

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
    /// The whole object, `resourceVersion` included; kind and apiVersion come first.
    pub(crate) json: Bytes,
    /// Where in `json` the members after kind and apiVersion start.
    untyped: usize,
}

impl Stored {
    /// Encodes `value` as of `revision`.
    pub(crate) fn encode(
        mut value: Value,
        revision: u64,
        selectable: &[String],
    ) -> Result<Self, serde_json::Error> {
        set_revision(&mut value, revision);
        let (json, untyped) = encode(&mut value)?;
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
            json,
            untyped,
        })
    }

    /// The object without its kind and apiVersion, less the opening brace: what a list of
    /// built-in objects shows of each.
    pub(crate) fn members(&self) -> Bytes {
        self.json.slice(self.untyped..)
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
        encode(&mut value).map_or_else(|_| self.json.clone(), |(json, _)| json)
    }
}

/// Encodes an object with its type in front; tells where the rest starts. The type is taken out of
/// `value`.
fn encode(value: &mut Value) -> Result<(Bytes, usize), serde_json::Error> {
    let mut json = Vec::with_capacity(1024);
    json.push(b'{');
    for field in ["kind", "apiVersion"] {
        if let Some(found) = value.as_object_mut().and_then(|map| map.remove(field)) {
            serde_json::to_writer(&mut json, field)?;
            json.push(b':');
            serde_json::to_writer(&mut json, &found)?;
            json.push(b',');
        }
    }
    let untyped = json.len();
    let rest = serde_json::to_vec(value)?;
    json.extend_from_slice(rest.get(1..).unwrap_or_default());
    if rest.len() <= 2 && untyped > 1 {
        // Nothing follows the type: the comma was one too many.
        json.remove(untyped - 1);
        return Ok((json.into(), untyped - 1));
    }
    Ok((json.into(), untyped))
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
pub(crate) fn field_text(value: &Value, field: &str) -> String {
    let found = field
        .split('.')
        .try_fold(value, |value, part| value.get(part));
    match found {
        // Events are chosen by the component that tells of them, whichever way it says so.
        Some(Value::Object(source)) if field == "source" => {
            let component = source.get("component").and_then(Value::as_str);
            let component = component.filter(|name| !name.is_empty());
            let reporter = value["reportingComponent"].as_str();
            component.or(reporter).unwrap_or_default().to_owned()
        }
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_type_comes_first_and_can_be_left_out() {
        let object =
            json!({"action": "x", "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}});
        let stored = Stored::encode(object.clone(), 7, &[]).unwrap();
        assert!(
            stored
                .json
                .starts_with(br#"{"kind":"Event","apiVersion":"v1","#)
        );
        assert_eq!(stored.value()["action"], "x");
        let mut bare = b"{".to_vec();
        bare.extend_from_slice(&stored.members());
        let bare: Value = serde_json::from_slice(&bare).unwrap();
        assert_eq!(
            bare,
            json!({"action": "x", "metadata": {"name": "e", "resourceVersion": "7"}})
        );
    }

    #[test]
    fn an_object_that_is_all_type_still_parses() {
        let (json, untyped) = encode(&mut json!({"kind": "K", "apiVersion": "v1"})).unwrap();
        assert_eq!(&json[..], br#"{"kind":"K","apiVersion":"v1"}"#);
        assert_eq!(&json[untyped..], b"}");
    }
}

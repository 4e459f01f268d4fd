//! One stored object: its encoded JSON, and the few parts of it that are looked at without parsing.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{Key, Labels};
use windlass_apimachinery::steps::steps;

/// An object as it is kept.
#[derive(Debug)]
pub struct Stored {
    /// What it is found by.
    pub key: Key,
    /// Its uid.
    pub uid: Box<str>,
    /// The revision of the write that made it so.
    pub revision: u64,
    /// Its labels.
    pub labels: Labels,
    /// Whether it is on its way out.
    pub terminating: bool,
    /// Values of the fields that selectors may name, in the order the resource lists them.
    pub fields: Fields,
    /// The whole object, `resourceVersion` included; kind and apiVersion come first.
    pub json: Bytes,
    layout: Layout,
}

/// The fields that selectors may name, with their values.
pub type Fields = Box<[(Box<str>, Box<str>)]>;

/// Where things are in an object's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where the members after kind and apiVersion start.
    pub untyped: usize,
    /// Where the digits of the resourceVersion start; 0 when there are none.
    pub revision_at: usize,
}

/// An object that is encoded but for its revision, which is known only when it is stored: so the
/// work is done before the store is locked.
#[derive(Debug)]
pub(crate) struct Draft {
    uid: Box<str>,
    labels: Labels,
    terminating: bool,
    fields: Fields,
    json: Vec<u8>,
    layout: Layout,
}

impl Draft {
    pub(crate) fn encode(
        mut value: Value,
        selectable: &[String],
    ) -> Result<Self, serde_json::Error> {
        let (json, layout) = encode(&mut value)?;
        steps(json.len());
        let labels = value["metadata"]["labels"]
            .as_object()
            .map(Labels::of)
            .unwrap_or_default();
        let fields = selectable
            .iter()
            .map(|field| (field.as_str().into(), field_text(&value, field).into()))
            .collect();
        Ok(Self {
            uid: value["metadata"]["uid"].as_str().unwrap_or_default().into(),
            labels,
            terminating: value["metadata"]["deletionTimestamp"].is_string(),
            fields,
            json,
            layout,
        })
    }

    /// How many bytes it has, its revision aside.
    pub(crate) fn len(&self) -> usize {
        self.json.len()
    }

    /// The object as JSON, of no revision.
    pub(crate) fn into_json(self) -> Vec<u8> {
        self.json
    }

    /// The object as it is stored under `key` at `revision`.
    pub(crate) fn at(self, key: Key, revision: u64) -> Stored {
        Stored {
            key,
            uid: self.uid,
            revision,
            labels: self.labels,
            terminating: self.terminating,
            fields: self.fields,
            json: with_revision(&self.json, self.layout, 0, revision),
            layout: self.layout,
        }
    }
}

impl Stored {
    /// An object that was written down earlier; `None` when it is not one.
    pub(crate) fn restore(
        json: Bytes,
        revision: u64,
        fields: Fields,
        layout: Layout,
    ) -> Option<Self> {
        let Head { metadata } = serde_json::from_slice(&json).ok()?;
        let digits = revision.to_string();
        let told = json.get(layout.revision_at..)?;
        if layout.untyped > json.len()
            || (layout.revision_at > 0 && !told.starts_with(digits.as_bytes()))
        {
            return None;
        }
        Some(Self {
            key: Key::new(&metadata.namespace, &metadata.name),
            uid: metadata.uid.into(),
            revision,
            labels: Labels::of(&metadata.labels.unwrap_or_default()),
            terminating: metadata.deletion_timestamp.is_some(),
            fields,
            json,
            layout,
        })
    }

    /// The object without its kind and apiVersion, less the opening brace: what a list of
    /// built-in objects shows of each.
    pub fn members(&self) -> Bytes {
        self.json.slice(self.layout.untyped..)
    }

    /// The object as a tree, for a write that changes it.
    pub fn value(&self) -> Value {
        steps(self.json.len());
        // What is stored was encoded from a tree, so it parses.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// Where things are in its JSON.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The encoded object, but at another revision.
    pub fn json_at(&self, revision: u64) -> Bytes {
        let digits = self.revision.to_string().len();
        with_revision(&self.json, self.layout, digits, revision)
    }
}

/// What is read of an object without making a tree of it.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    labels: Option<Map<String, Value>>,
    #[serde(rename = "deletionTimestamp")]
    deletion_timestamp: Option<IgnoredAny>,
}

/// `json` with `revision` in the place of the `digits` bytes that stand there.
fn with_revision(json: &[u8], layout: Layout, digits: usize, revision: u64) -> Bytes {
    if layout.revision_at == 0 {
        return Bytes::copy_from_slice(json);
    }
    let text = revision.to_string();
    let (before, after) = json.split_at(layout.revision_at);
    [before, text.as_bytes(), &after[digits..]].concat().into()
}

/// Encodes an object with its type in front and an empty resourceVersion; tells where they are.
/// The type is taken out of `value`.
fn encode(value: &mut Value) -> Result<(Vec<u8>, Layout), serde_json::Error> {
    let mut json = Vec::with_capacity(1024);
    json.push(b'{');
    for field in ["kind", "apiVersion"] {
        if let Some(found) = value.as_object_mut().and_then(|map| map.remove(field)) {
            push_member(&mut json, field, &found)?;
            json.push(b',');
        }
    }
    let mut layout = Layout {
        untyped: json.len(),
        revision_at: 0,
    };
    for (field, member) in value.as_object().into_iter().flatten() {
        match member.as_object().filter(|_| field == "metadata") {
            Some(metadata) => {
                json.extend_from_slice(b"\"metadata\":{");
                layout.revision_at = push_metadata(&mut json, metadata)?;
                json.push(b'}');
            }
            None => push_member(&mut json, field, member)?,
        }
        json.push(b',');
    }
    if json.len() > 1 {
        // The comma after the last member was one too many.
        json.pop();
        layout.untyped = layout.untyped.min(json.len());
    }
    json.push(b'}');
    Ok((json, layout))
}

/// The members of metadata, the resourceVersion in its place; tells where that is.
fn push_metadata(
    json: &mut Vec<u8>,
    metadata: &Map<String, Value>,
) -> Result<usize, serde_json::Error> {
    const REVISION: &str = "resourceVersion";
    let mut revision_at = 0;
    let mut push_revision = |json: &mut Vec<u8>| {
        if revision_at == 0 {
            json.extend_from_slice(b"\"resourceVersion\":\"");
            revision_at = json.len();
            json.extend_from_slice(b"\",");
        }
    };
    for (field, member) in metadata {
        if field.as_str() >= REVISION {
            push_revision(json);
        }
        if field != REVISION {
            push_member(json, field, member)?;
            json.push(b',');
        }
    }
    push_revision(json);
    json.pop();
    Ok(revision_at)
}

fn push_member(json: &mut Vec<u8>, field: &str, value: &Value) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *json, field)?;
    json.push(b':');
    serde_json::to_writer(json, value)
}

/// The value of a dotted field as selectors compare it: text as it is, absent as empty.
pub fn field_text(value: &Value, field: &str) -> String {
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
        let draft = Draft::encode(object.clone(), &[]).unwrap();
        let stored = draft.at(Key::new("", "e"), 7);
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
        let (json, layout) = encode(&mut json!({"kind": "K", "apiVersion": "v1"})).unwrap();
        assert_eq!(&json[..], br#"{"kind":"K","apiVersion":"v1"}"#);
        assert_eq!(&json[layout.untyped..], b"}");
    }

    #[test]
    fn the_revision_is_put_in_place_without_encoding_anew() {
        for metadata in [
            json!({"name": "e", "uid": "u", "resourceVersion": "3"}),
            json!({"annotations": {"resourceVersion": "x"}, "name": "e"}),
            json!({"name": "e", "uid": "u"}),
            json!({}),
        ] {
            let draft = Draft::encode(json!({"kind": "Event", "metadata": metadata}), &[]).unwrap();
            let stored = draft.at(Key::new("", "e"), 7);
            let mut expected = metadata;
            expected["resourceVersion"] = "7".into();
            assert_eq!(stored.value()["metadata"], expected);
            let later: Value = serde_json::from_slice(&stored.json_at(1234)).unwrap();
            expected["resourceVersion"] = "1234".into();
            assert_eq!(later["metadata"], expected);
            let layout = stored.layout();
            let restored = Stored::restore(stored.json, 7, Box::default(), layout).unwrap();
            assert_eq!(restored.layout(), layout);
        }
    }
}

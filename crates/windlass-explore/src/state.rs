//! The state of a cluster in a form in which two runs can be compared.
//!
//! What differs from run to run by nature is taken out: uids, versions, times, addresses, certificates
//! and the random parts of names. What is left is what a user would say the cluster looks like.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::names;

/// Fields that are different in every run.
const FLEETING: &[&str] = &[
    "uid",
    "resourceVersion",
    "managedFields",
    "generateName",
    "podIP",
    "podIPs",
    "containerID",
    "ip",
    "collisionCount",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
];

/// How the name of the volume begins in which a pod finds its `ServiceAccount`'s token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// How a certificate or a key begins in base64: no two are alike.
const ENCODED_PEM: &str = "LS0tLS1CRUdJTi";

/// An object on its way to be compared.
#[derive(Clone, Debug)]
pub struct Object {
    /// What its line begins with: its kind, or its resource.
    pub of: String,
    /// Its kind.
    pub kind: String,
    /// All of it.
    pub value: Value,
}

/// The objects without what differs from run to run, as sorted lines: what each is of, and its
/// content. Fields of these names are left out, too.
pub fn lines(objects: Vec<Object>, fleeting: &[String]) -> Vec<String> {
    let steady = steady(objects, fleeting, false).into_iter();
    let mut lines: Vec<String> = steady.map(|(of, json)| format!("{of} {json}")).collect();
    lines.sort();
    lines
}

/// The objects without what differs from run to run, each with what it is of.
/// With `by_form`, names that look generated count as such, whichever writer made them.
fn steady(objects: Vec<Object>, fleeting: &[String], by_form: bool) -> Vec<(String, String)> {
    // Generated names are replaced wherever they are, longest first: one may contain another.
    let mut generated: BTreeMap<String, String> = BTreeMap::new();
    for Object { kind, value, .. } in &objects {
        for volume in value["spec"]["volumes"].as_array().into_iter().flatten() {
            if let Some(name) = volume["name"].as_str()
                && name.starts_with(TOKEN_VOLUME)
            {
                generated.insert(name.to_owned(), format!("{TOKEN_VOLUME}*"));
            }
        }
        // The address of a Service is the name of another object.
        if let ("IPAddress", Some(address)) = (kind.as_str(), value["metadata"]["name"].as_str()) {
            generated.insert(address.to_owned(), "<address>".to_owned());
        }
        // An id may be anywhere, as in the id of a container.
        if let Some(uid) = value["metadata"]["uid"].as_str() {
            generated.insert(uid.to_owned(), "<uid>".to_owned());
        }
        // With the number of collisions, the hash of a template depends on what was there before.
        if let Some(hash) = value["metadata"]["labels"]["pod-template-hash"].as_str() {
            generated.insert(hash.to_owned(), "<hash>".to_owned());
        }
        if let Some(name) = value["metadata"]["name"].as_str().filter(|_| by_form) {
            let steady = names::steady(name);
            if steady != name {
                generated.insert(name.to_owned(), steady);
            }
        }
        if let (Some(name), Some(base)) = (
            value["metadata"]["name"].as_str(),
            generate_name(kind, value).as_deref(),
        ) {
            generated.insert(name.to_owned(), format!("{base}*"));
        }
    }
    let mut generated: Vec<(String, String)> = generated.into_iter().collect();
    generated.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let objects = objects.into_iter();
    objects
        .map(
            |Object {
                 of,
                 kind,
                 mut value,
             }| {
                if matches!(kind.as_str(), "ReplicaSet" | "EndpointSlice") {
                    // It counts the steps of roll-outs, which depend on who was quicker.
                    value["metadata"]["generation"] = Value::Null;
                    if value["status"].is_object() {
                        value["status"]["observedGeneration"] = Value::Null;
                    }
                }
                forget(&mut value, fleeting);
                let mut json = value.to_string();
                for (name, placeholder) in &generated {
                    json = json.replace(name, placeholder);
                }
                (of, json)
            },
        )
        .collect()
}

/// How a name begins whose end is fleeting: the API server gave it one, or an operator names the pods
/// and volumes of its object itself, one after the other.
fn generate_name(kind: &str, object: &Value) -> Option<String> {
    if let Some(base) = object["metadata"]["generateName"].as_str() {
        return Some(base.to_owned());
    }
    let owner = &object["metadata"]["ownerReferences"][0];
    let is_custom = owner["apiVersion"].as_str()?.contains('.');
    let base = format!("{}-", owner["name"].as_str()?);
    let name = object["metadata"]["name"].as_str()?;
    let applies = matches!(kind, "Pod" | "PersistentVolumeClaim") && is_custom;
    (applies && name.starts_with(&base)).then_some(base)
}

/// Whether it is the set of a roll-out that is over: how many there were depends on who was quicker.
pub fn is_history(kind: &str, object: &Value) -> bool {
    let owner = &object["metadata"]["ownerReferences"][0]["kind"];
    kind == "ReplicaSet" && owner == "Deployment" && object["spec"]["replicas"] == 0
}

fn forget(value: &mut Value, fleeting: &[String]) {
    match value {
        Value::Object(map) => {
            // A set by their types, in the order in which they first came.
            if let Some(Value::Array(conditions)) = map.get_mut("conditions") {
                conditions.sort_by_key(|condition| condition["type"].as_str().map(str::to_owned));
            }
            map.retain(|key, value| {
                let is_address = key == "addresses" && value[0].is_string();
                let is_fleeting = FLEETING.contains(&key.as_str()) || fleeting.contains(key);
                !is_fleeting && !is_time(key) && !is_address
            });
            map.values_mut().for_each(|value| forget(value, fleeting));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, fleeting)),
        // An id that an outside system gave.
        Value::String(text) if (12..=16).contains(&text.len()) && is_hex(text) => {
            "an id".clone_into(text);
        }
        Value::String(text) if text.starts_with(ENCODED_PEM) => {
            "a certificate or a key".clone_into(text);
        }
        _ => {}
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_time(key: &str) -> bool {
    key.ends_with("Time")
        || key.ends_with("Timestamp")
        || key.ends_with("At")
        || key.ends_with("-time")
}

/// What is left of one object: its fields by their paths, such as `spec.replicas`.
pub type Fields = BTreeMap<String, Value>;

/// The objects of a cluster by their names, `statefulsets.apps web in default`; objects whose names
/// differ only by chance share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(pub BTreeMap<String, Vec<Fields>>);

/// What is not compared, because it differs when nothing is disturbed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Objects that are not always there.
    pub objects: BTreeSet<String>,
    /// Fields of objects.
    pub fields: BTreeSet<(String, String)>,
}

impl Mask {
    /// Adds what differs between two states.
    pub fn learn(&mut self, one: &State, other: &State) {
        for difference in one.differences(other, &Self::default()) {
            match difference.field {
                Some(field) => self.fields.insert((difference.object, field)),
                None => self.objects.insert(difference.object),
            };
        }
    }

    fn hides(&self, object: &str, field: &str) -> bool {
        self.objects.contains(object)
            || self.fields.contains(&(object.to_owned(), field.to_owned()))
    }
}

/// Where a state is not as another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The object: `statefulsets.apps web in default`.
    pub object: String,
    /// The field; none when there are more or fewer of these objects.
    pub field: Option<String>,
    /// What was expected, in short.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, expected, found) = (&self.object, &self.expected, &self.found);
        match &self.field {
            Some(field) => write!(f, "{object}  {field}: {expected} expected, {found} found"),
            None => write!(f, "{object}: {expected} expected, {found} found"),
        }
    }
}

impl State {
    /// The state of these objects, each named by its resource. Fields of these names are left out.
    pub fn of(mut objects: Vec<Object>, fleeting: &[String]) -> Self {
        let mut state = Self::default();
        for Object { value, .. } in &mut objects {
            if value["metadata"]["deletionTimestamp"].is_string() {
                value["metadata"]["deleting"] = true.into();
            }
        }
        for (of, json) in steady(objects, fleeting, true) {
            let value: Value = serde_json::from_str(&json).unwrap_or_default();
            let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
            let name = names::steady(text("name"));
            let object = names::object(&of, text("namespace"), &name);
            let mut fields = Fields::new();
            flatten(&mut fields, String::new(), &value);
            state.0.entry(object).or_default().push(fields);
        }
        for alike in state.0.values_mut() {
            alike.sort_by_cached_key(|fields| format!("{fields:?}"));
        }
        state
    }

    /// Where `found` is not as this one.
    pub fn differences(&self, found: &Self, mask: &Mask) -> Vec<Difference> {
        let names: BTreeSet<&String> = self.0.keys().chain(found.0.keys()).collect();
        let mut differences = Vec::new();
        for name in names {
            if mask.objects.contains(name) {
                continue;
            }
            let none = Vec::new();
            let (ours, theirs) = (
                self.0.get(name).unwrap_or(&none),
                found.0.get(name).unwrap_or(&none),
            );
            if ours.len() != theirs.len() {
                let count = |many: &Vec<Fields>| match many.len() {
                    0 => "none".to_owned(),
                    // Marked for deletion, and still there.
                    1 if many[0].contains_key(GOING) => "one that is being deleted".to_owned(),
                    1 => "one".to_owned(),
                    many => many.to_string(),
                };
                differences.push(Difference {
                    object: name.clone(),
                    field: None,
                    expected: count(ours),
                    found: count(theirs),
                });
                continue;
            }
            for (ours, theirs) in ours.iter().zip(theirs) {
                let fields: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
                for field in fields.into_iter().filter(|field| !mask.hides(name, field)) {
                    if ours.get(field) != theirs.get(field) {
                        differences.push(Difference {
                            object: name.clone(),
                            field: Some(field.clone()),
                            expected: shown(ours.get(field)),
                            found: shown(theirs.get(field)),
                        });
                    }
                }
            }
        }
        differences
    }
}

/// Set in place of the time of deletion, which differs from run to run.
const GOING: &str = "metadata.deleting";

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "\"\"".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn flatten(fields: &mut Fields, path: String, value: &Value) {
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else if key.contains('.') {
            format!("{path}[{key}]")
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                flatten(fields, below(key), value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                flatten(fields, format!("{path}[{index}]"), item);
            }
        }
        // Empty is as good as absent.
        Value::Object(_) | Value::Array(_) => {}
        leaf => {
            fields.insert(path, leaf.clone());
        }
    }
}

/// The value of a field by its path.
pub(crate) fn field(value: &Value, path: &str) -> Option<Value> {
    let mut fields = Fields::new();
    flatten(&mut fields, String::new(), value);
    fields.remove(path)
}

/// The fields in which two forms of one object differ, by their paths; without what every write
/// changes.
pub fn changed_fields(before: &Value, after: &Value) -> BTreeSet<String> {
    let flat = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
        let mut fields = Fields::new();
        flatten(&mut fields, String::new(), &value);
        fields
    };
    let (before, after) = (flat(before), flat(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter();
    let changed = changed.filter(|field| before.get(*field) != after.get(*field));
    changed.cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(objects: &[Value]) -> State {
        let objects = objects.iter().map(|value| Object {
            of: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            value: value.clone(),
        });
        State::of(objects.collect(), &[])
    }

    fn map(name: &str, data: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}-{data}")}, "data": {"value": data}})
    }

    fn texts(one: &State, other: &State, mask: &Mask) -> Vec<String> {
        let differences = one.differences(other, mask);
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn difference_names_object_and_field_with_both_values() {
        let (one, other) = (state(&[map("a", "1")]), state(&[map("a", "2")]));
        assert_eq!(
            texts(&one, &other, &Mask::default()),
            ["configmaps a in default  data.value: 1 expected, 2 found"]
        );
        assert!(texts(&one, &one.clone(), &Mask::default()).is_empty());
    }

    #[test]
    fn missing_object_is_one_difference() {
        let (one, other) = (state(&[map("a", "1")]), state(&[]));
        assert_eq!(
            texts(&one, &other, &Mask::default()),
            ["configmaps a in default: one expected, none found"]
        );
    }

    #[test]
    fn what_differs_by_chance_is_not_compared() {
        let (one, other) = (state(&[map("a", "1")]), state(&[map("a", "2")]));
        let mut mask = Mask::default();
        mask.learn(&one, &other);
        assert!(texts(&one, &other, &mask).is_empty());
        let gone = state(&[]);
        assert_eq!(texts(&one, &gone, &mask).len(), 1);
        mask.learn(&one, &gone);
        assert!(texts(&one, &gone, &mask).is_empty());
    }

    #[test]
    fn objects_whose_names_are_generated_are_counted() {
        let (one, two) = (map("web-x7k2p", "1"), map("web-b4d2c", "1"));
        let (few, many) = (
            state(std::slice::from_ref(&one)),
            state(&[one.clone(), two.clone()]),
        );
        assert!(texts(&few, &state(&[two]), &Mask::default()).is_empty());
        assert_eq!(
            texts(&few, &many, &Mask::default()),
            ["configmaps web-* in default: one expected, 2 found"]
        );
    }

    #[test]
    fn changed_fields_leave_out_what_every_write_changes() {
        let before =
            json!({"metadata": {"resourceVersion": "1", "labels": {"a.b": "1"}}, "spec": {"n": 1}});
        let after = json!({"metadata": {"resourceVersion": "2", "labels": {}}, "spec": {"n": 2}});
        let changed: Vec<String> = changed_fields(&before, &after).into_iter().collect();
        assert_eq!(changed, ["metadata.labels[a.b]", "spec.n"]);
    }
}

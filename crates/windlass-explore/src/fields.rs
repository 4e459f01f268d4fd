//! Changes of a sample, derived from the schema of its kind: each field set, changed or removed.
//!
//! Fields that the sample has come first, then those that it could have, from the outside in. A value
//! is made from its type; what the API server refuses is left out later. An image becomes one that
//! cannot be pulled: it is what users get wrong, and take back.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// An image that the simulated node does not find.
pub(crate) const NO_IMAGE: &str = "explorer.invalid/none:none";
/// What new keys and texts are called.
const NEW: &str = "explorer";
/// How deep fields are looked for.
const DEPTH: usize = 6;
/// How deep in blocks that the sample does not have.
const NEW_DEPTH: usize = 3;

/// One change of one object of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which of the objects that are applied first, counted from zero.
    pub object: usize,
    /// Where: a JSON pointer, such as `/spec/labels/a`.
    pub path: String,
    /// What it becomes; none when it is removed.
    pub value: Option<Value>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, path) = (self.object, &self.path);
        match &self.value {
            Some(value) => write!(f, "set {object} {path} {value}"),
            None => write!(f, "remove {object} {path}"),
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let mut words = text.splitn(4, ' ');
            let verb = words.next()?;
            let object = words.next()?.parse().ok()?;
            let path = words.next()?.to_owned();
            let value = match (verb, words.next()) {
                ("set", Some(value)) => Some(serde_json::from_str(value).ok()?),
                ("remove", None) => None,
                _ => return None,
            };
            Some(Self {
                object,
                path,
                value,
            })
        };
        parsed().ok_or_else(|| {
            format!("cannot read the change {text:?}: expected `set 0 /spec/field VALUE`")
        })
    }
}

impl Change {
    /// For a person: `spec.replicas = 2`.
    pub fn title(&self) -> String {
        let path = self.path.trim_start_matches('/').replace('/', ".");
        let path = path.replace("~1", "/").replace("~0", "~");
        match &self.value {
            Some(value) => format!("{path} = {value}"),
            None => format!("without {path}"),
        }
    }

    /// The object with the change.
    pub fn applied(&self, object: &Value) -> Value {
        let mut changed = object.clone();
        let mut keys: Vec<String> = self
            .path
            .split('/')
            .skip(1)
            .map(|key| key.replace("~1", "/").replace("~0", "~"))
            .collect();
        let Some(last) = keys.pop() else {
            return changed;
        };
        let mut place = &mut changed;
        for key in keys {
            if place.is_null() {
                *place = json!({});
            }
            let next = match place {
                Value::Object(map) => Some(map.entry(key).or_insert(Value::Null)),
                Value::Array(items) => key.parse().ok().and_then(|at: usize| items.get_mut(at)),
                _ => None,
            };
            let Some(next) = next else {
                return changed;
            };
            place = next;
        }
        if place.is_null() {
            *place = json!({});
        }
        match (place, &self.value) {
            (Value::Object(map), Some(value)) => {
                map.insert(last, value.clone());
            }
            (Value::Object(map), None) => {
                map.remove(&last);
            }
            (Value::Array(items), Some(value)) => {
                if let Some(item) = last.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                    *item = value.clone();
                }
            }
            _ => {}
        }
        changed
    }
}

/// The changes of the specs of these objects that their definitions allow.
pub fn changes(objects: &[Value], definitions: &[Value]) -> Vec<Change> {
    let mut found = Found::default();
    for (index, object) in objects.iter().enumerate() {
        let Some(schema) = schema_of(object, definitions) else {
            continue;
        };
        let spec = &schema["properties"]["spec"];
        found.object = index;
        found.of(spec, Some(&object["spec"]), "/spec", 0, true);
    }
    let mut all = found.present;
    all.extend(found.absent);
    all
}

/// The schema of an object's kind.
fn schema_of<'a>(object: &Value, definitions: &'a [Value]) -> Option<&'a Value> {
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let definition = definitions.iter().find(|definition| {
        definition["spec"]["group"] == group
            && definition["spec"]["names"]["kind"] == object["kind"]
    })?;
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|one| one["name"] == version)?;
    Some(&version["schema"]["openAPIV3Schema"])
}

/// What is found, in the order of fields.
#[derive(Default)]
struct Found {
    object: usize,
    present: Vec<Change>,
    absent: Vec<Change>,
}

impl Found {
    fn add(&mut self, is_present: bool, path: &str, value: Option<Value>) {
        let change = Change {
            object: self.object,
            path: path.to_owned(),
            value,
        };
        if is_present {
            self.present.push(change);
        } else {
            self.absent.push(change);
        }
    }

    fn of(
        &mut self,
        schema: &Value,
        value: Option<&Value>,
        path: &str,
        depth: usize,
        needed: bool,
    ) {
        let value = value.filter(|value| !value.is_null());
        if depth > DEPTH {
            return;
        }
        if value.is_some() && !needed {
            self.add(true, path, None);
        }
        for new in values(schema, value, path) {
            self.add(value.is_some(), path, Some(new));
        }
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let is_new = value.is_none();
        // A new block is made with one field only: it must not need others.
        if is_new && (depth >= NEW_DEPTH || required.len() > 1) {
            return;
        }
        for (name, property) in properties {
            if is_new && !required.is_empty() && !required.contains(&name.as_str()) {
                continue;
            }
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let below = value.and_then(|value| value.get(name));
            let needed = required.contains(&name.as_str());
            self.of(
                property,
                below,
                &format!("{path}/{escaped}"),
                depth + 1,
                needed,
            );
        }
    }
}

/// Other values that a field could have.
fn values(schema: &Value, value: Option<&Value>, path: &str) -> Vec<Value> {
    if let Some(choices) = schema["enum"].as_array() {
        let other = choices.iter().find(|choice| Some(*choice) != value);
        return other.into_iter().cloned().collect();
    }
    let field = path.rsplit('/').next().unwrap_or_default();
    let is_image = field.to_lowercase().ends_with("image");
    match (schema["type"].as_str().unwrap_or_default(), value) {
        ("boolean", value) => vec![json!(value.and_then(Value::as_bool) != Some(true))],
        ("integer", value) => {
            let number = value.and_then(Value::as_i64);
            let least = schema["minimum"].as_i64();
            let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
            let new = number.map_or(least.unwrap_or(1).max(1), |number| number.saturating_add(1));
            let new = if new > most {
                new.saturating_sub(2)
            } else {
                new
            };
            vec![json!(new)]
        }
        ("string", _) if is_image => vec![json!(NO_IMAGE)],
        // A text that is to look in some way is not made up.
        ("string", _) if schema.get("pattern").is_some() || schema.get("format").is_some() => {
            Vec::new()
        }
        ("string", Some(Value::String(text))) => vec![json!(format!("{text}-{NEW}"))],
        ("string", None) => vec![json!(NEW)],
        ("object", value) if schema["additionalProperties"]["type"] == "string" => {
            let mut map = value
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            map.insert(NEW.to_owned(), json!(NEW));
            vec![Value::Object(map)]
        }
        ("array", value) if schema["items"]["type"] == "string" => {
            let mut items = value.and_then(Value::as_array).cloned().unwrap_or_default();
            items.push(json!(NEW));
            vec![Value::Array(items)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(spec: &Value) -> Value {
        json!({ "spec": {
            "group": "example.com", "names": { "kind": "Web" },
            "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": { "properties": { "spec": spec } } } }],
        } })
    }

    fn web(spec: &Value) -> Value {
        json!({ "apiVersion": "example.com/v1", "kind": "Web", "spec": spec })
    }

    fn titles(schema: &Value, spec: &Value) -> Vec<String> {
        let all = changes(&[web(spec)], &[definition(schema)]);
        all.iter().map(Change::title).collect()
    }

    #[test]
    fn fields_of_the_sample_are_changed_and_removed_before_new_ones_are_set() {
        let schema = json!({ "type": "object", "required": ["size"], "properties": {
            "debug": { "type": "boolean" },
            "image": { "type": "string" },
            "size": { "type": "integer", "maximum": 3 },
            "storage": { "type": "object", "properties": { "gigabytes": { "type": "integer" } } },
        } });
        let spec = json!({ "image": "web:1", "size": 3, "storage": { "gigabytes": 1 } });
        assert_eq!(
            titles(&schema, &spec),
            [
                "without spec.image",
                "spec.image = \"explorer.invalid/none:none\"",
                "spec.size = 2",
                "without spec.storage",
                "without spec.storage.gigabytes",
                "spec.storage.gigabytes = 2",
                "spec.debug = true",
            ]
        );
    }

    #[test]
    fn choices_maps_and_lists_get_another_value_and_patterns_none() {
        let schema = json!({ "type": "object", "properties": {
            "kind": { "type": "string", "enum": ["a", "b"] },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "names": { "type": "array", "items": { "type": "string" } },
            "time": { "type": "string", "pattern": "^[0-9]+s$" },
        } });
        assert_eq!(
            titles(&schema, &json!({ "kind": "a" })),
            [
                "without spec.kind",
                "spec.kind = \"b\"",
                "spec.labels = {\"explorer\":\"explorer\"}",
                "spec.names = [\"explorer\"]",
            ]
        );
    }

    #[test]
    fn change_is_made_inside_of_blocks_that_are_not_there() {
        let change = Change {
            object: 0,
            path: "/spec/a~1b/on".to_owned(),
            value: Some(json!(true)),
        };
        assert_eq!(
            change.applied(&web(&json!({})))["spec"],
            json!({ "a/b": { "on": true } })
        );
        assert_eq!(change.to_string().parse(), Ok(change));
    }

    #[test]
    fn change_that_cannot_be_read_is_named() {
        for text in ["", "set 0 /spec", "remove x /spec", "set 0 /spec {"] {
            let error = text.parse::<Change>().unwrap_err();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}

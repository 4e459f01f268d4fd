//! Whether a definition's schema is one the API server takes: a structural one.
//!
//! The API server says so too, when the definition is installed. This says it before, with the
//! field and what the Rust type can do about it.

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

/// Something the API server would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The definition.
    pub definition: String,
    /// The version and the field, as `v1 .spec.parts[].size`.
    pub path: String,
    /// What is wrong, and what helps.
    pub message: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            definition,
            path,
            message,
        } = self;
        write!(f, "{definition} {path}: {message}")
    }
}

/// Everything about a definition's schemas that the API server would refuse.
pub fn flaws(crd: &CustomResourceDefinition) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    for version in &crd.spec.versions {
        let schema = version.schema.as_ref();
        let schema = schema.and_then(|validation| validation.open_api_v3_schema.as_ref());
        let mut found = Vec::new();
        match schema.map(serde_json::to_value) {
            None => found.push((
                String::new(),
                "there is no schema; derive JsonSchema for the type".to_owned(),
            )),
            Some(Ok(Value::Object(root))) => check(&root, "", &mut found),
            Some(_) => found.push((String::new(), "the schema is not an object".to_owned())),
        }
        flaws.extend(found.into_iter().map(|(path, message)| Flaw {
            definition: crd.metadata.name.clone().unwrap_or_default(),
            path: format!(
                "{} {}",
                version.name,
                if path.is_empty() { "." } else { &path }
            ),
            message,
        }));
    }
    flaws
}

type Found = Vec<(String, String)>;

fn check(schema: &Map<String, Value>, path: &str, found: &mut Found) {
    let mut say = |message: &str| found.push((path.to_owned(), message.to_owned()));
    let is_true = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    if schema.contains_key("$ref") {
        say(
            "the type contains itself, which a schema cannot; end the recursion with a field of type \
             serde_json::Value",
        );
        return;
    }
    let int_or_string = is_true("x-kubernetes-int-or-string");
    let any = is_true("x-kubernetes-preserve-unknown-fields");
    match schema.get("type").and_then(Value::as_str) {
        None if !int_or_string && !any => say(
            "it has no type: its values can be of several, which a schema cannot say; use one type, \
             IntOrString, or serde_json::Value",
        ),
        Some(_) if int_or_string => say("a value that is a number or a string has no type"),
        Some("array") if !schema.contains_key("items") => {
            say("an array needs the schema of its items");
        }
        _ => {}
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_some() && schema.contains_key("additionalProperties") {
        say(
            "it has named fields and a map flattened into them; flatten a map of serde_json::Value, \
             or give the map a field of its own",
        );
    }
    if is_true("uniqueItems") {
        say("unique items are said by the list type `set`");
    }
    check_list(schema, &mut say);
    check_junctors(schema, path, found);
    for (name, inner) in properties.into_iter().flatten() {
        if let Value::Object(inner) = inner {
            check(inner, &format!("{path}.{name}"), found);
        }
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        match schema.get(key) {
            Some(Value::Object(inner)) => check(inner, &format!("{path}{mark}"), found),
            Some(Value::Array(_)) => found.push((
                path.to_owned(),
                "a tuple's items have a schema each, which a schema cannot say; use a struct"
                    .to_owned(),
            )),
            _ => {}
        }
    }
}

/// Lists merged by keys need the keys.
fn check_list(schema: &Map<String, Value>, say: &mut impl FnMut(&str)) {
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    if list_type.is_some() && schema.get("type").and_then(Value::as_str) != Some("array") {
        say("only an array has a list type");
    }
    if list_type != Some("map") {
        return;
    }
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array);
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if keys.is_empty() {
        say("a list of type `map` needs its keys");
    }
    let items = schema.get("items");
    for key in keys {
        let field = items.and_then(|items| items.get("properties")?.get(key));
        let required = items.and_then(|items| items.get("required")?.as_array());
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == key));
        match field {
            None => say(&format!("the key `{key}` is not a field of the items")),
            Some(field) if !is_required && field.get("default").is_none() => {
                say(&format!(
                    "the key `{key}` must be required or have a default"
                ));
            }
            Some(_) => {}
        }
    }
}

/// Below `allOf`, `anyOf`, `oneOf` and `not` a schema may only restrict what is said outside.
fn check_junctors(schema: &Map<String, Value>, path: &str, found: &mut Found) {
    // A number or a string says so by `anyOf`, and is excused.
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return;
    }
    let mut inner: Vec<&Value> = schema.get("not").into_iter().collect();
    for key in ["allOf", "anyOf", "oneOf"] {
        inner.extend(
            schema
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten(),
        );
    }
    for inner in inner {
        restricts(inner, schema, path, found);
    }
}

fn restricts(inner: &Value, outer: &Map<String, Value>, path: &str, found: &mut Found) {
    const FORBIDDEN: [&str; 5] = ["type", "default", "description", "title", "nullable"];
    let Some(inner) = inner.as_object() else {
        return;
    };
    for key in FORBIDDEN {
        if inner.contains_key(key) {
            found.push((
                path.to_owned(),
                format!(
                    "its variants differ by `{key}`, which a schema cannot say; for an enum with data \
                     use #[schemars(transform = windlass::kind::one_of)]"
                ),
            ));
            return;
        }
    }
    let fields = inner.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let known = outer.get("properties").and_then(|fields| fields.get(name));
        match known.and_then(Value::as_object) {
            Some(known) => restricts(field, known, &format!("{path}.{name}"), found),
            None => found.push((
                format!("{path}.{name}"),
                "only some variants have this field, and it is not said outside of them".to_owned(),
            )),
        }
    }
    check_junctors(inner, path, found);
}

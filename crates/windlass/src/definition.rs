//! From a Rust type to the definition of its kind.
//!
//! `kube`'s derive writes the definition; [`windlass_manifests::definition`] finishes it. For a type
//! that has no structural schema the derive panics, so the panic is caught here and becomes an
//! error that the operator returns when its definitions are asked for.
//! [`one_of`] makes a structural schema of the most frequent such type: an enum with a tag.

use std::panic::{self, AssertUnwindSafe};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::Schema;
use serde_json::{Map, Value, json};
use windlass_apimachinery::cel_names;
use windlass_manifests::definition::finish;

/// The definition of a kind, or why there is none.
pub(crate) fn definition_of<K: CustomResourceExt>() -> Result<CustomResourceDefinition, String> {
    match contained(K::crd) {
        Ok(crd) => Ok(finish(crd)),
        Err(message) => Err(format!(
            "{}: the type has no structural schema: {message}; {}",
            K::crd_name(),
            remedy(&message)
        )),
    }
}

/// What helps against what the derive reports.
fn remedy(message: &str) -> &'static str {
    if message.contains("boolean `true`") {
        "a list of serde_json::Value has items without a type: use a list of BTreeMap<String, Value>"
    } else {
        "for an enum with a tag use #[schemars(transform = windlass::kind::one_of)]"
    }
}

/// Runs what may panic. The panic itself is reported by the program's hook: that is the program's,
/// not a library's to change.
fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("it panicked").to_owned()
    })
}

/// Makes the schema of an enum with a tag structural; for `#[schemars(transform = windlass::kind::one_of)]`.
///
/// The fields of all variants stand side by side, the tag has the variants' names as its values,
/// and a CEL rule per variant says which fields it needs.
///
/// ```
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[serde(tag = "type")]
/// #[schemars(transform = windlass::kind::one_of)]
/// enum Source {
///     Git { url: String },
///     Archive { path: String },
/// }
/// ```
pub fn one_of(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.as_object().and_then(|root| root.get("oneOf")) else {
        return;
    };
    let variants: Vec<Map<String, Value>> = variants
        .iter()
        .filter_map(|variant| variant.as_object().cloned())
        .collect();
    let Some(tag) = tag_of(&variants) else {
        return;
    };
    let (mut properties, mut rules, mut names) = (Map::new(), Vec::new(), Vec::new());
    for variant in &variants {
        let fields = variant.get("properties").and_then(Value::as_object);
        let mut name = Value::Null;
        for (field, of) in fields.into_iter().flatten() {
            if *field == tag {
                name = constant(of).unwrap_or_default();
            } else if properties.get(field).is_some_and(|known| known != of) {
                // Two variants disagree about a field: left for the check to name.
                return;
            } else {
                properties.insert(field.clone(), of.clone());
            }
        }
        let required = variant.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        for field in required.filter(|field| *field != tag) {
            rules.push(json!({
                "rule": format!("self.{} != '{}' || has(self.{})", escaped(&tag), text(&name), escaped(field)),
                "message": format!("{field} is required when {tag} is {}", text(&name)),
            }));
        }
        names.push(name);
    }
    properties.insert(tag.clone(), json!({ "type": "string", "enum": names }));
    let root = schema.ensure_object();
    root.remove("oneOf");
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), Value::Object(properties));
    root.insert("required".to_owned(), json!([tag]));
    if !rules.is_empty() {
        root.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
    }
}

/// The field that has a fixed text of its own in every variant.
fn tag_of(variants: &[Map<String, Value>]) -> Option<String> {
    let fields = variants.first()?.get("properties")?.as_object()?;
    let is_tag = |name: &&String| {
        variants.iter().all(|variant| {
            let field = variant
                .get("properties")
                .and_then(|of| of.get(name.as_str()));
            field.is_some_and(|field| constant(field).is_some())
        })
    };
    fields.keys().find(is_tag).cloned()
}

fn constant(field: &Value) -> Option<Value> {
    let one = match (field.get("const"), field.get("enum")) {
        (Some(one), _) => Some(one),
        (None, Some(Value::Array(values))) if values.len() == 1 => values.first(),
        _ => None,
    };
    one.filter(|one| one.is_string()).cloned()
}

fn text(name: &Value) -> &str {
    name.as_str().unwrap_or_default()
}

/// A field's name as CEL rules write it.
fn escaped(field: &str) -> String {
    cel_names::escape(field).unwrap_or_else(|| field.to_owned())
}

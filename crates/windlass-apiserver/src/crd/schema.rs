//! The schema of a custom resource: how it is read, and what it makes of an object.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::types::{Field, ListKind, PatchRule, Scalar, Type};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `JSONSchemaProps`, as far as it has an effect on objects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the fields are those of Kubernetes' schema"
)]
pub(crate) struct Schema {
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional_properties: Option<AdditionalProperties>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    #[serde(rename = "enum")]
    pub(crate) allowed: Vec<Value>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<String>,
    /// The pattern, compiled when it is first needed.
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(crate) preserve_unknown: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(crate) int_or_string: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(crate) embedded: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(crate) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(crate) list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub(crate) map_type: Option<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub(crate) rules: Vec<Value>,
}

/// `additionalProperties`: a yes or no, or the schema of the values.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AdditionalProperties {
    Allowed(bool),
    Of(Box<Schema>),
}

impl Schema {
    /// Whether a text is as the pattern asks, if there is one. A pattern that cannot be read fits nothing.
    pub(crate) fn pattern_fits(&self, text: &str) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let compiled = self.compiled.get_or_init(|| Regex::new(pattern).ok());
        compiled
            .as_ref()
            .is_some_and(|compiled| compiled.is_match(text))
    }

    fn values(&self) -> Option<&Schema> {
        match &self.additional_properties {
            Some(AdditionalProperties::Of(schema)) => Some(schema),
            _ => None,
        }
    }

    fn keeps_unknown(&self) -> bool {
        self.preserve_unknown
            || matches!(
                self.additional_properties,
                Some(AdditionalProperties::Allowed(true))
            )
    }

    /// The type that merging and ownership go by. The root gets Kubernetes' own metadata.
    pub(crate) fn to_type(&self, root: bool) -> Type {
        if self.int_or_string {
            return Type::Scalar(Scalar::IntOrString);
        }
        match self.ty.as_str() {
            "string" => Type::Scalar(Scalar::String),
            "integer" => Type::Scalar(Scalar::Integer),
            "number" => Type::Scalar(Scalar::Number),
            "boolean" => Type::Scalar(Scalar::Boolean),
            "array" => Type::List {
                item: Box::new(
                    self.items
                        .as_ref()
                        .map_or(Type::Any, |items| items.to_type(false)),
                ),
                kind: match self.list_type.as_deref() {
                    Some("map") => ListKind::Map(self.list_map_keys.clone()),
                    Some("set") => ListKind::Set,
                    _ => ListKind::Atomic,
                },
            },
            "object" => {
                let atomic = self.map_type.as_deref() == Some("atomic");
                if let Some(values) = self.values() {
                    return Type::Map {
                        value: Box::new(values.to_type(false)),
                        atomic,
                    };
                }
                if self.properties.is_empty() && self.keeps_unknown() && !root && !self.embedded {
                    return Type::Any;
                }
                let mut fields: BTreeMap<String, Field> = self
                    .properties
                    .iter()
                    .map(|(name, schema)| {
                        (
                            name.clone(),
                            field(schema.to_type(false), schema.default.clone()),
                        )
                    })
                    .collect();
                if root || self.embedded {
                    fields.insert(
                        "apiVersion".into(),
                        field(Type::Scalar(Scalar::String), None),
                    );
                    fields.insert("kind".into(), field(Type::Scalar(Scalar::String), None));
                    fields.insert(
                        "metadata".into(),
                        field(Type::Named(OBJECT_META.into()), None),
                    );
                }
                Type::Struct {
                    fields,
                    atomic,
                    open: self.keeps_unknown(),
                }
            }
            _ => Type::Any,
        }
    }

    /// Fills in defaults, deepest last, as Kubernetes does: a default object is itself defaulted.
    pub(crate) fn fill_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (name, schema) in &self.properties {
                    if let Some(default) = &schema.default {
                        let absent = match map.get(name) {
                            None => true,
                            Some(Value::Null) => !schema.nullable,
                            Some(_) => false,
                        };
                        if absent {
                            map.insert(name.clone(), default.clone());
                        }
                    }
                    if let Some(value) = map.get_mut(name) {
                        schema.fill_defaults(value);
                    }
                }
                if let Some(values) = self.values() {
                    for (name, value) in map.iter_mut() {
                        if !self.properties.contains_key(name) {
                            values.fill_defaults(value);
                        }
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.fill_defaults(item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Removes what the schema does not know; tells the paths of what it removed.
    pub(crate) fn prune(
        &self,
        value: &mut Value,
        root: bool,
        path: &str,
        pruned: &mut Vec<String>,
    ) {
        let below = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        match value {
            Value::Object(map) => {
                let kept_anyway = |name: &str| {
                    (root || self.embedded) && matches!(name, "apiVersion" | "kind" | "metadata")
                };
                if !self.keeps_unknown() && self.values().is_none() {
                    let unknown: Vec<String> = map
                        .keys()
                        .filter(|name| !self.properties.contains_key(*name) && !kept_anyway(name))
                        .cloned()
                        .collect();
                    for name in unknown {
                        map.remove(&name);
                        pruned.push(below(&name));
                    }
                }
                for (name, value) in map.iter_mut() {
                    if kept_anyway(name) {
                        continue;
                    }
                    if let Some(schema) = self.properties.get(name).or_else(|| self.values()) {
                        schema.prune(value, false, &below(name), pruned);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter_mut().enumerate() {
                        schema.prune(item, false, &format!("{path}[{index}]"), pruned);
                    }
                }
            }
            _ => {}
        }
    }

    /// Removes fields that are null and may not be: it is as if they had not been said.
    pub(crate) fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                let schema_of = |name: &str| self.properties.get(name).or_else(|| self.values());
                map.retain(|name, value| {
                    !value.is_null() || schema_of(name).is_none_or(|schema| schema.nullable)
                });
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = schema_of(name) {
                        schema.drop_nulls(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.drop_nulls(item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Every schema of the tree, with its path.
    pub(crate) fn visit<'a>(&'a self, path: &str, see: &mut dyn FnMut(&str, &'a Schema)) {
        see(path, self);
        for (name, schema) in &self.properties {
            schema.visit(&format!("{path}.properties[{name}]"), see);
        }
        if let Some(schema) = self.values() {
            schema.visit(&format!("{path}.additionalProperties"), see);
        }
        if let Some(schema) = &self.items {
            schema.visit(&format!("{path}.items"), see);
        }
    }
}

fn field(ty: Type, default: Option<Value>) -> Field {
    Field {
        ty,
        patch: PatchRule::default(),
        default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        serde_json::from_value(json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "default": 1},
                "nested": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": true}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        }))
        .unwrap()
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut value = json!({"kind": "K", "metadata": {"name": "x"}, "spec": {"size": 1, "odd": 1, "free": {"a": 1}}});
        let mut pruned = Vec::new();
        schema().prune(&mut value, true, "", &mut pruned);
        assert_eq!(
            value,
            json!({"kind": "K", "metadata": {"name": "x"}, "spec": {"size": 1, "free": {"a": 1}}})
        );
        assert_eq!(pruned, ["spec.odd"]);
    }

    #[test]
    fn defaults_fill_what_is_absent_and_defaults_have_defaults() {
        let mut value = json!({"spec": {"size": null}});
        schema().fill_defaults(&mut value);
        assert_eq!(value, json!({"spec": {"size": 1, "nested": {"on": true}}}));
    }
}

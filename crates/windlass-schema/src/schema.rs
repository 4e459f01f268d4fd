//! The schema of a custom resource, as it is written in a definition.
//!
//! [`Schema`] holds every field of `JSONSchemaProps`, those included that no definition may use:
//! what is refused must have been read. What a schema makes of an object is told elsewhere:
//! `prune` (unknown fields, nulls, defaults), `validate` and `rules`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The fields that every object has, whatever its schema says.
pub const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// `JSONSchemaProps`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(
    clippy::struct_excessive_bools,
    missing_docs,
    reason = "the fields are those of Kubernetes' schema"
)]
pub struct Schema {
    pub id: String,
    #[serde(rename = "$ref")]
    pub reference: Option<String>,
    pub description: String,
    pub title: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub format: String,
    pub properties: BTreeMap<String, Schema>,
    pub additional_properties: Option<AdditionalProperties>,
    pub pattern_properties: BTreeMap<String, Schema>,
    pub items: Option<Items>,
    pub additional_items: Option<Value>,
    pub definitions: BTreeMap<String, Schema>,
    pub dependencies: Option<Value>,
    pub required: Vec<String>,
    pub nullable: bool,
    pub default: Option<Value>,
    #[serde(rename = "enum")]
    pub allowed: Vec<Value>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub pattern: String,
    /// The pattern, compiled when it is first needed.
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub unique_items: bool,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub preserve_unknown: Option<bool>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub int_or_string: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub embedded: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub map_type: Option<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub rules: Vec<Rule>,
}

/// `additionalProperties`: a yes or no, or the schema of the values.
#[derive(Clone, Debug)]
pub enum AdditionalProperties {
    /// Whether there may be any.
    Allowed(bool),
    /// What the values must be.
    Of(Box<Schema>),
}

/// `items`: one schema for all, or (which is refused) one for each.
#[derive(Clone, Debug)]
pub enum Items {
    /// The schema of every item.
    All(Box<Schema>),
    /// The schemas of the items, one by one.
    Each(Vec<Schema>),
}

/// A rule of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(
    clippy::struct_field_names,
    missing_docs,
    reason = "the fields are those of Kubernetes' rule"
)]
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

// Read by hand: serde would copy what is inside of an untagged enum to look at it twice, once for
// every level it is nested.
impl<'de> Deserialize<'de> for AdditionalProperties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = AdditionalProperties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a boolean or a schema")
            }

            fn visit_bool<E>(self, allowed: bool) -> Result<Self::Value, E> {
                Ok(AdditionalProperties::Allowed(allowed))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let schema = Schema::deserialize(MapAccessDeserializer::new(map))?;
                Ok(AdditionalProperties::Of(Box::new(schema)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a schema or a list of schemas")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let schema = Schema::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Items::All(Box::new(schema)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Items::Each)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Schema {
    /// Whether a text is as the pattern asks, if there is one. A pattern that cannot be read fits nothing.
    pub fn pattern_fits(&self, text: &str) -> bool {
        if self.pattern.is_empty() {
            return true;
        }
        let compiled = self
            .compiled
            .get_or_init(|| windlass_regexp::compile(&self.pattern).ok());
        compiled
            .as_ref()
            .is_some_and(|compiled| compiled.is_match(text))
    }

    /// The schema of a map's values.
    pub fn values(&self) -> Option<&Schema> {
        match &self.additional_properties {
            Some(AdditionalProperties::Of(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of a list's items.
    pub fn item(&self) -> Option<&Schema> {
        match &self.items {
            Some(Items::All(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of the field or map entry called `name`.
    pub fn member(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or_else(|| self.values())
    }

    /// Whether unknown fields are kept.
    pub fn keeps_unknown(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    /// Whether it is a list of that type: `set`, `map`, `atomic`.
    pub fn is_list_of(&self, kind: &str) -> bool {
        self.list_type.as_deref() == Some(kind)
    }

    /// Whether this schema or one inside it has a rule.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.item().is_some_and(Schema::has_rules)
            || self.values().is_some_and(Schema::has_rules)
            || self.properties.values().any(Schema::has_rules)
    }

    /// Whether something holds of this schema or of any in it, however it is nested.
    pub fn any(&self, holds: &dyn Fn(&Schema) -> bool) -> bool {
        holds(self) || self.children().into_iter().any(|child| child.any(holds))
    }

    /// The schemas it is made of that have no name.
    pub fn unnamed(&self) -> impl Iterator<Item = &Schema> {
        let items: &[Schema] = match &self.items {
            Some(Items::All(schema)) => std::slice::from_ref(&**schema),
            Some(Items::Each(schemas)) => schemas,
            None => &[],
        };
        let logic = self.all_of.iter().chain(&self.any_of).chain(&self.one_of);
        items
            .iter()
            .chain(logic)
            .chain(self.not.as_deref())
            .chain(self.values())
    }

    /// Every schema this one is made of, in the order Kubernetes looks at them.
    pub fn children(&self) -> Vec<&Schema> {
        let mut children: Vec<&Schema> = match &self.items {
            Some(Items::All(schema)) => vec![schema],
            Some(Items::Each(schemas)) => schemas.iter().collect(),
            None => Vec::new(),
        };
        children.extend(&self.all_of);
        children.extend(&self.any_of);
        children.extend(&self.one_of);
        children.extend(self.not.as_deref());
        children.extend(self.properties.values());
        children.extend(self.values());
        children.extend(self.pattern_properties.values());
        children.extend(self.definitions.values());
        children
    }
}

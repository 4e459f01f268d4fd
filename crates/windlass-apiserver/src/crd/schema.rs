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

use crate::types::{Field, ListKind, PatchRule, Scalar, Type};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The fields that every object has, whatever its schema says.
pub(crate) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// `JSONSchemaProps`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the fields are those of Kubernetes' schema"
)]
pub(crate) struct Schema {
    pub(crate) id: String,
    #[serde(rename = "$ref")]
    pub(crate) reference: Option<String>,
    pub(crate) description: String,
    pub(crate) title: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) format: String,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional_properties: Option<AdditionalProperties>,
    pub(crate) pattern_properties: BTreeMap<String, Schema>,
    pub(crate) items: Option<Items>,
    pub(crate) additional_items: Option<Value>,
    pub(crate) definitions: BTreeMap<String, Schema>,
    pub(crate) dependencies: Option<Value>,
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
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) pattern: String,
    /// The pattern, compiled when it is first needed.
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(crate) preserve_unknown: Option<bool>,
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
    pub(crate) rules: Vec<Rule>,
}

/// `additionalProperties`: a yes or no, or the schema of the values.
#[derive(Clone, Debug)]
pub(crate) enum AdditionalProperties {
    Allowed(bool),
    Of(Box<Schema>),
}

/// `items`: one schema for all, or (which is refused) one for each.
#[derive(Clone, Debug)]
pub(crate) enum Items {
    All(Box<Schema>),
    Each(Vec<Schema>),
}

/// A rule of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(
    clippy::struct_field_names,
    reason = "the fields are those of Kubernetes' rule"
)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
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
    pub(crate) fn pattern_fits(&self, text: &str) -> bool {
        if self.pattern.is_empty() {
            return true;
        }
        let compiled = self
            .compiled
            .get_or_init(|| crate::regexp::compile(&self.pattern).ok());
        compiled
            .as_ref()
            .is_some_and(|compiled| compiled.is_match(text))
    }

    /// The schema of a map's values.
    pub(crate) fn values(&self) -> Option<&Schema> {
        match &self.additional_properties {
            Some(AdditionalProperties::Of(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of a list's items.
    pub(crate) fn item(&self) -> Option<&Schema> {
        match &self.items {
            Some(Items::All(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of the field or map entry called `name`.
    pub(crate) fn member(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or_else(|| self.values())
    }

    pub(crate) fn keeps_unknown(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    pub(crate) fn is_list_of(&self, kind: &str) -> bool {
        self.list_type.as_deref() == Some(kind)
    }

    /// Whether this schema or one inside it has a rule.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.item().is_some_and(Schema::has_rules)
            || self.values().is_some_and(Schema::has_rules)
            || self.properties.values().any(Schema::has_rules)
    }

    /// Whether something holds of this schema or of any in it, however it is nested.
    pub(crate) fn any(&self, holds: &dyn Fn(&Schema) -> bool) -> bool {
        holds(self) || self.children().into_iter().any(|child| child.any(holds))
    }

    /// The schemas it is made of that have no name.
    pub(crate) fn unnamed(&self) -> impl Iterator<Item = &Schema> {
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
    pub(crate) fn children(&self) -> Vec<&Schema> {
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

    /// The type that merging and ownership go by. The root gets Kubernetes' own metadata.
    pub(crate) fn to_type(&self) -> Type {
        self.typed(true, false)
    }

    /// The same of a part. Below what keeps unknown fields, everything is taken to do so.
    fn typed(&self, root: bool, keeps_unknown: bool) -> Type {
        let keeps_unknown = keeps_unknown || self.keeps_unknown();
        if self.int_or_string {
            return Type::Scalar(Scalar::IntOrString);
        }
        match self.ty.as_str() {
            "string" if !matches!(self.format.as_str(), "" | "byte") => {
                Type::Scalar(Scalar::Untyped)
            }
            "string" => Type::Scalar(Scalar::String),
            "integer" => Type::Scalar(Scalar::Integer),
            "number" => Type::Scalar(Scalar::Number),
            "boolean" => Type::Scalar(Scalar::Boolean),
            "array" => Type::List {
                item: Box::new(
                    self.item()
                        .map_or(Type::Any, |items| items.typed(false, keeps_unknown)),
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
                        value: Box::new(values.typed(false, keeps_unknown)),
                        atomic,
                    };
                }
                let open = keeps_unknown
                    || matches!(
                        self.additional_properties,
                        Some(AdditionalProperties::Allowed(true))
                    );
                if self.properties.is_empty() && open && !root && !self.embedded {
                    return Type::Any;
                }
                let mut fields: BTreeMap<String, Field> = self
                    .properties
                    .iter()
                    .map(|(name, schema)| {
                        (
                            name.clone(),
                            field(schema.typed(false, keeps_unknown), schema.default.clone()),
                        )
                    })
                    .collect();
                if root || self.embedded {
                    let text = || field(Type::Scalar(Scalar::String), None);
                    fields.insert("apiVersion".into(), text());
                    fields.insert("kind".into(), text());
                    fields.insert(
                        "metadata".into(),
                        field(Type::Named(OBJECT_META.into()), None),
                    );
                }
                Type::Struct {
                    fields,
                    atomic,
                    open,
                }
            }
            _ => Type::Any,
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

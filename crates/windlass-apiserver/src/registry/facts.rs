//! The table of facts about built-in kinds, read once per process.
//!
//! `facts/kinds.json` is generated from what the real server publishes (`make facts`); nothing about
//! a built-in kind's fields, list types or columns is written down anywhere else.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::defaults::{self, Default};
use crate::registry::types::{Field, GRANULAR, ListKind, PatchRule, Scalar, Type};

/// The version of Kubernetes the facts were read from.
pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let raw: RawFacts = serde_json::from_str(include_str!("../../facts/kinds.json"))
        .expect("facts/kinds.json is generated and checked in: it parses");
    Facts::from_raw(raw)
});

/// The facts.
pub(crate) fn get() -> &'static Facts {
    &FACTS
}

/// Everything known about built-in kinds.
pub(crate) struct Facts {
    /// As in `v1.36.3`.
    pub(crate) version: String,
    pub(crate) groups: Vec<GroupFacts>,
    pub(crate) resources: Vec<ResourceFacts>,
    definitions: HashMap<String, Definition>,
    /// The published form of each type, for `OpenAPI`.
    pub(crate) raw_types: BTreeMap<String, RawType>,
}

/// Everything known about a type that has a name.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) ty: Type,
    /// The fields that are on the wire even when nobody set them, and what they hold then.
    pub(crate) zeros: Map<String, Value>,
    /// The fields that get a value when they are absent.
    pub(crate) defaults: Vec<Default>,
    /// The fields whose zero values are not on the wire.
    pub(crate) omitted: Vec<String>,
}

impl Facts {
    /// What is known about the type of this name.
    pub(crate) fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.get(name)
    }

    fn from_raw(raw: RawFacts) -> Self {
        let zeros: HashMap<String, Map<String, Value>> =
            serde_json::from_str(include_str!("../../facts/zeros.json"))
                .expect("facts/zeros.json is generated and checked in: it parses");
        let (defaults, omitted) = (defaults::table(), defaults::omitted_table());
        let define = |name: &str, ty: Type| Definition {
            ty,
            zeros: zeros.get(name).cloned().unwrap_or_default(),
            defaults: defaults.get(name).cloned().unwrap_or_default(),
            omitted: omitted.get(name).cloned().unwrap_or_default(),
        };
        let mut definitions = HashMap::with_capacity(raw.types.len());
        for (name, raw) in &raw.types {
            let ty = raw.to_type(name);
            if let Type::Struct {
                fields,
                atomic: true,
                open,
            } = &ty
            {
                let granular = Type::Struct {
                    fields: fields.clone(),
                    atomic: false,
                    open: *open,
                };
                definitions.insert(format!("{GRANULAR}{name}"), define(name, granular));
            }
            definitions.insert(name.clone(), define(name, ty));
        }
        Self {
            version: raw.version,
            groups: raw.groups,
            resources: raw.resources,
            definitions,
            raw_types: raw.types,
        }
    }
}

#[derive(Deserialize)]
struct RawFacts {
    version: String,
    groups: Vec<GroupFacts>,
    resources: Vec<ResourceFacts>,
    types: BTreeMap<String, RawType>,
}

/// An API group and its versions, the preferred one first.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GroupFacts {
    pub(crate) name: String,
    pub(crate) versions: Vec<String>,
}

/// One resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceFacts {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    #[serde(default)]
    pub(crate) short_names: Vec<String>,
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    #[serde(default)]
    pub(crate) subresources: Vec<SubresourceFacts>,
    #[serde(default)]
    pub(crate) columns: Vec<ColumnFacts>,
    #[serde(default)]
    pub(crate) field_selectors: Vec<String>,
    #[serde(rename = "type", default)]
    pub(crate) type_name: String,
}

/// A subresource; group, version and kind are told where they are not the resource's own.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SubresourceFacts {
    pub(crate) name: String,
    pub(crate) verbs: Vec<String>,
    pub(crate) kind: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) version: Option<String>,
}

/// A column of the Table form.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ColumnFacts {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    #[serde(default)]
    pub(crate) format: String,
    #[serde(default)]
    pub(crate) priority: i32,
}

/// A type, as published: a struct with `fields`, or a field-like description.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawType {
    pub(crate) fields: Option<BTreeMap<String, RawField>>,
    #[serde(default)]
    pub(crate) required: Vec<String>,
    pub(crate) gvk: Option<String>,
    #[serde(flatten)]
    pub(crate) shape: RawField,
}

/// A field, as published.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RawField {
    pub(crate) t: Option<String>,
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) items: Option<Box<RawField>>,
    pub(crate) values: Option<Box<RawField>>,
    pub(crate) list: Option<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) map: Option<String>,
    pub(crate) strategy: Vec<String>,
    pub(crate) merge_key: Option<String>,
    pub(crate) default: Option<Value>,
    #[serde(rename = "enum")]
    pub(crate) allowed: Vec<Value>,
    pub(crate) preserve_unknown: bool,
}

/// Types whose published form says less than is known about them.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

impl RawType {
    fn to_type(&self, name: &str) -> Type {
        match &self.fields {
            _ if name == QUANTITY => Type::Scalar(Scalar::Quantity),
            _ if name == MICRO_TIME => Type::Scalar(Scalar::MicroTime),
            // Somebody else's object: whole or not at all.
            _ if name == RAW_EXTENSION => Type::Struct {
                fields: BTreeMap::new(),
                atomic: true,
                open: true,
            },
            Some(fields) => Type::Struct {
                fields: fields
                    .iter()
                    .map(|(name, field)| (name.clone(), field.to_field()))
                    .collect(),
                atomic: self.shape.map.as_deref() == Some("atomic"),
                open: self.shape.preserve_unknown,
            },
            None => self.shape.to_type(),
        }
    }
}

impl RawField {
    fn to_field(&self) -> Field {
        Field {
            ty: self.to_type(),
            patch: PatchRule {
                merge: self.strategy.iter().any(|strategy| strategy == "merge"),
                replace: self.strategy.iter().any(|strategy| strategy == "replace"),
                merge_key: self.merge_key.clone(),
            },
            default: self.default.clone(),
        }
    }

    fn to_type(&self) -> Type {
        let atomic = self.map.as_deref() == Some("atomic");
        match self.t.as_deref() {
            Some("ref") if self.map.as_deref() == Some("granular") => {
                let name = self.reference.as_deref().unwrap_or_default();
                Type::Named(format!("{GRANULAR}{name}").into())
            }
            Some("ref") => Type::Named(self.reference.as_deref().unwrap_or_default().into()),
            Some("string") if self.format.as_deref() == Some("date-time") => {
                Type::Scalar(Scalar::Time)
            }
            Some("string") if self.format.as_deref() == Some("byte") => Type::Scalar(Scalar::Bytes),
            Some("string") => Type::Scalar(Scalar::String),
            Some("integer") if self.format.as_deref() == Some("int32") => {
                Type::Scalar(Scalar::Int32)
            }
            Some("integer") => Type::Scalar(Scalar::Integer),
            Some("number") => Type::Scalar(Scalar::Number),
            Some("boolean") => Type::Scalar(Scalar::Boolean),
            Some("intOrString") => Type::Scalar(Scalar::IntOrString),
            Some("array") => Type::List {
                item: Box::new(
                    self.items
                        .as_ref()
                        .map_or(Type::Any, |items| items.to_type()),
                ),
                kind: match self.list.as_deref() {
                    Some("map") => ListKind::Map(self.keys.clone()),
                    Some("set") => ListKind::Set,
                    _ => ListKind::Atomic,
                },
            },
            Some("object") => match &self.values {
                Some(values) => Type::Map {
                    value: Box::new(values.to_type()),
                    atomic,
                },
                None => Type::Any,
            },
            _ => Type::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_keys_and_list_keys_are_both_known() {
        let container = Type::Named("io.k8s.api.core.v1.Container".into());
        let ports = container.field("ports").expect("containers have ports");
        assert_eq!(ports.patch.merge_key.as_deref(), Some("containerPort"));
        let Type::List { kind, .. } = ports.ty.resolve() else {
            panic!("ports is a list")
        };
        assert_eq!(
            *kind,
            ListKind::Map(vec!["containerPort".into(), "protocol".into()])
        );
    }

    #[test]
    fn every_zero_is_of_a_known_field() {
        for (name, known) in &get().definitions {
            if let Type::Struct { fields, .. } = &known.ty {
                for field in known.zeros.keys() {
                    assert!(fields.contains_key(field), "{name} has no field {field}");
                }
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn visit(ty: &Type, missing: &mut Vec<String>) {
            match ty {
                Type::Named(name) if ty.definition().is_none() => missing.push(name.to_string()),
                Type::Struct { fields, .. } => {
                    for field in fields.values() {
                        visit(&field.ty, missing);
                    }
                }
                Type::Map { value: inner, .. } | Type::List { item: inner, .. } => {
                    visit(inner, missing);
                }
                _ => {}
            }
        }
        let mut missing = Vec::new();
        get()
            .definitions
            .values()
            .for_each(|known| visit(&known.ty, &mut missing));
        assert_eq!(missing, Vec::<String>::new());
    }
}

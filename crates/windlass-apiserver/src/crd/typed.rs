//! The type of a custom resource's objects, from their schema.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_schema::Schema;
use windlass_schema::schema::AdditionalProperties;

use crate::registry::types::{Field, ListKind, PatchRule, Scalar, Type};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type that merging and ownership go by. The root gets Kubernetes' own metadata.
pub(super) fn of(schema: &Schema) -> Type {
    typed(schema, true, false)
}

/// The same of a part. Below what keeps unknown fields, everything is taken to do so.
fn typed(schema: &Schema, root: bool, keeps_unknown: bool) -> Type {
    let keeps_unknown = keeps_unknown || schema.keeps_unknown();
    if schema.int_or_string {
        return Type::Scalar(Scalar::IntOrString);
    }
    match schema.ty.as_str() {
        "string" if !matches!(schema.format.as_str(), "" | "byte") => Type::Scalar(Scalar::Untyped),
        "string" => Type::Scalar(Scalar::String),
        "integer" => Type::Scalar(Scalar::Integer),
        "number" => Type::Scalar(Scalar::Number),
        "boolean" => Type::Scalar(Scalar::Boolean),
        "array" => Type::List {
            item: Box::new(
                schema
                    .item()
                    .map_or(Type::Any, |items| typed(items, false, keeps_unknown)),
            ),
            kind: match schema.list_type.as_deref() {
                Some("map") => ListKind::Map(schema.list_map_keys.clone()),
                Some("set") => ListKind::Set,
                _ => ListKind::Atomic,
            },
        },
        "object" => {
            let atomic = schema.map_type.as_deref() == Some("atomic");
            if let Some(values) = schema.values() {
                return Type::Map {
                    value: Box::new(typed(values, false, keeps_unknown)),
                    atomic,
                };
            }
            let open = keeps_unknown
                || matches!(
                    schema.additional_properties,
                    Some(AdditionalProperties::Allowed(true))
                );
            if schema.properties.is_empty() && open && !root && !schema.embedded {
                return Type::Any;
            }
            let mut fields: BTreeMap<String, Field> = schema
                .properties
                .iter()
                .map(|(name, schema)| {
                    (
                        name.clone(),
                        field(typed(schema, false, keeps_unknown), schema.default.clone()),
                    )
                })
                .collect();
            if root || schema.embedded {
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

fn field(ty: Type, default: Option<Value>) -> Field {
    Field {
        ty,
        patch: PatchRule::default(),
        default,
    }
}

//! Version 3: one document per group and version, made from the table of facts and the schemas of CRDs.
//!
//! `kubectl` reads it to see that the server checks fields itself, to explain, and to merge.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{custom, description};
use crate::registry::Known;
use crate::registry::facts::{self, RawField, RawType};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `/openapi/v3`.
pub(crate) fn index(known: &Known) -> Value {
    let mut paths = Map::new();
    let seen: BTreeSet<(&str, &str)> = known
        .all()
        .map(|resource| (resource.group.as_str(), resource.version.as_str()))
        .collect();
    for (group, version) in seen {
        let path = if group.is_empty() {
            format!("api/{version}")
        } else {
            format!("apis/{group}/{version}")
        };
        let link = format!("/openapi/v3/{path}");
        paths.insert(path, json!({"serverRelativeURL": link}));
    }
    json!({"paths": paths})
}

/// The document of one group and version.
pub(super) fn document(known: &Known, group: &str, version: &str) -> Result<Value> {
    let resources = known
        .of_version(group, version)
        .ok_or_else(ApiError::resource_not_found)?;
    let descriptions = description::of(group, version);
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in resources {
        let name = schema_name(resource);
        match &resource.custom {
            Some(custom) => {
                let mut schema = custom.raw_schema.clone();
                custom::unfold(&mut schema);
                schema["properties"]["apiVersion"] = json!({"type": "string"});
                schema["properties"]["kind"] = json!({"type": "string"});
                schema["properties"]["metadata"] =
                    json!({"allOf": [{"$ref": reference(OBJECT_META)}]});
                schema["x-kubernetes-group-version-kind"] = gvk(resource);
                custom::say_selectable(&mut schema, &resource.selectable);
                descriptions.describe_custom(&mut schema);
                schemas.insert(name.clone(), schema);
                add_type(OBJECT_META, &mut schemas);
            }
            None => add_type(&name, &mut schemas),
        }
        add_paths(resource, &name, &mut paths);
    }
    descriptions.describe(&mut schemas);
    Ok(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": facts::get().version},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

pub(super) fn schema_name(resource: &Resource) -> String {
    if let crate::registry::types::Type::Named(name) = &resource.ty {
        return name.to_string();
    }
    // com.example.cache.v1.Memcached for cache.example.com/v1 Memcached, as Kubernetes names them.
    let reversed: Vec<&str> = resource.group.split('.').rev().collect();
    format!(
        "{}.{}.{}",
        reversed.join("."),
        resource.version,
        resource.kind
    )
}

fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

fn gvk(resource: &Resource) -> Value {
    json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}])
}

/// Adds a type and everything it refers to.
fn add_type(name: &str, schemas: &mut Map<String, Value>) {
    if schemas.contains_key(name) {
        return;
    }
    let Some(raw) = facts::get().raw_types.get(name) else {
        return;
    };
    // Put down first, so that a type that refers to itself ends.
    schemas.insert(name.to_owned(), type_schema(raw));
    for field in raw
        .fields
        .iter()
        .flat_map(|fields| fields.values())
        .chain([&raw.shape])
    {
        add_references(field, schemas);
    }
}

fn add_references(field: &RawField, schemas: &mut Map<String, Value>) {
    if let Some(name) = &field.reference {
        add_type(name, schemas);
    }
    for inner in [&field.items, &field.values].into_iter().flatten() {
        add_references(inner, schemas);
    }
}

fn type_schema(raw: &RawType) -> Value {
    let Some(fields) = &raw.fields else {
        return field_schema(&raw.shape);
    };
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, field)| (name.clone(), field_schema(field)))
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !raw.required.is_empty() {
        schema["required"] = json!(raw.required);
    }
    if let Some(kind) = &raw.gvk {
        let parts: Vec<&str> = kind.split('/').collect();
        if let [group, version, kind] = parts.as_slice() {
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": group, "version": version, "kind": kind}]);
        }
    }
    schema
}

fn field_schema(field: &RawField) -> Value {
    let mut schema = match field.t.as_deref() {
        Some("ref") => {
            json!({"allOf": [{"$ref": reference(field.reference.as_deref().unwrap_or_default())}]})
        }
        Some("intOrString") => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Some("array") => {
            json!({"type": "array", "items": field.items.as_ref().map_or(json!({}), |items| field_schema(items))})
        }
        Some("object") => match &field.values {
            Some(values) => json!({"type": "object", "additionalProperties": field_schema(values)}),
            None => json!({"type": "object"}),
        },
        Some("any") | None => json!({}),
        Some(scalar) => json!({"type": scalar}),
    };
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema[key] = value;
        }
    };
    if field.t.as_deref() != Some("intOrString") {
        add("format", field.format.clone().map(Value::from));
    }
    add("default", field.default.clone());
    add(
        "enum",
        (!field.allowed.is_empty()).then(|| field.allowed.clone().into()),
    );
    add(
        "x-kubernetes-list-type",
        field.list.clone().map(Value::from),
    );
    add(
        "x-kubernetes-list-map-keys",
        (!field.keys.is_empty()).then(|| json!(field.keys)),
    );
    add("x-kubernetes-map-type", field.map.clone().map(Value::from));
    add(
        "x-kubernetes-patch-merge-key",
        field.merge_key.clone().map(Value::from),
    );
    add(
        "x-kubernetes-patch-strategy",
        (!field.strategy.is_empty()).then(|| field.strategy.join(",").into()),
    );
    schema
}

/// The operations clients look for: above all that PATCH takes `fieldValidation`.
fn add_paths(resource: &Resource, schema: &str, paths: &mut Map<String, Value>) {
    let prefix = if resource.group.is_empty() {
        "/api/v1".to_owned()
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let collection = format!("{prefix}{scope}/{}", resource.plural);
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let parameter = |name: &str, ty: &str| json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}});
    let writes = json!([
        parameter("dryRun", "string"),
        parameter("fieldManager", "string"),
        parameter("fieldValidation", "string"),
    ]);
    let operation = |action: &str, parameters: Value| {
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": reference(schema)}}}}},
        })
    };
    let mut patch_parameters = writes.clone();
    if let Some(list) = patch_parameters.as_array_mut() {
        list.push(parameter("force", "boolean"));
    }
    paths.insert(
        collection.clone(),
        json!({"get": operation("list", json!([])), "post": operation("post", writes.clone())}),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({
            "get": operation("get", json!([])),
            "put": operation("put", writes),
            "patch": operation("patch", patch_parameters),
            "delete": operation("delete", json!([parameter("dryRun", "string")])),
        }),
    );
}

//! Version 2: one document of every type and operation.

use serde_json::{Map, Value, json};

use super::custom;
use super::description;
use super::v3::schema_name;
use crate::node::PROXY;
use crate::registry::Known;
use crate::registry::facts::{self, RawField, RawType};
use crate::registry::resource::Resource;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The whole document.
pub(super) fn document(known: &Known) -> Value {
    let mut definitions: Map<String, Value> = facts::get()
        .raw_types
        .iter()
        .map(|(name, raw)| (name.clone(), type_schema(raw)))
        .collect();
    let descriptions = description::of_all();
    descriptions.describe(&mut definitions);
    let mut paths = Map::new();
    for resource in known.all() {
        let name = schema_name(resource);
        if let Some(custom) = &resource.custom {
            let mut schema = custom_schema(resource, &custom.raw_schema);
            descriptions.describe_custom(&mut schema);
            definitions.insert(name.clone(), schema);
        }
        if resource.verbs.iter().any(|verb| verb == "list") {
            definitions.insert(format!("{name}List"), list_schema(resource, &name));
        }
        add_paths(resource, &name, &mut paths);
    }
    let version = facts::get().version.trim_start_matches('v');
    let version: Vec<&str> = version.split('.').take(2).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version.join(".")},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    })
}

fn reference(name: &str) -> String {
    format!("#/definitions/{name}")
}

fn kind(resource: &Resource, kind: &str) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": kind})
}

fn custom_schema(resource: &Resource, raw: &Value) -> Value {
    let mut schema = raw.clone();
    custom::to_v2(&mut schema);
    if !schema.is_object() {
        schema = json!({});
    }
    schema["type"] = "object".into();
    // What keeps unknown fields tells none of them.
    if raw["x-kubernetes-preserve-unknown-fields"] == true {
        schema = json!({"type": "object"});
    } else {
        schema["properties"]["apiVersion"] = json!({"type": "string"});
        schema["properties"]["kind"] = json!({"type": "string"});
        schema["properties"]["metadata"] =
            json!({"$ref": reference(&format!("{META}.ObjectMeta"))});
    }
    schema["x-kubernetes-group-version-kind"] = json!([kind(resource, &resource.kind)]);
    schema
}

fn list_schema(resource: &Resource, name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": reference(name)}},
            "kind": {"type": "string"},
            "metadata": {"$ref": reference(&format!("{META}.ListMeta"))},
        },
        "x-kubernetes-group-version-kind": [kind(resource, &resource.list_kind)],
    })
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
    if let Some([group, version, kind]) = raw.gvk.as_deref().map(parts) {
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "version": version, "kind": kind}]);
    }
    if let Some(map) = &raw.shape.map {
        schema["x-kubernetes-map-type"] = map.clone().into();
    }
    schema
}

fn parts(gvk: &str) -> [&str; 3] {
    let mut parts = gvk.splitn(3, '/');
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

fn field_schema(field: &RawField) -> Value {
    let mut schema = match field.t.as_deref() {
        Some("ref") => json!({"$ref": reference(field.reference.as_deref().unwrap_or_default())}),
        Some("intOrString") => json!({"type": "string", "format": "int-or-string"}),
        Some("any") | None => json!({}),
        Some(ty) => json!({"type": ty}),
    };
    if let Some(items) = &field.items {
        schema["items"] = field_schema(items);
    }
    if let Some(values) = &field.values {
        schema["additionalProperties"] = field_schema(values);
    }
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema[key] = value;
        }
    };
    let text = |value: &Option<String>| value.clone().map(Value::from);
    add("format", text(&field.format));
    let allowed = !field.allowed.is_empty();
    add("enum", allowed.then(|| field.allowed.clone().into()));
    add("x-kubernetes-list-type", text(&field.list));
    let keys = !field.keys.is_empty();
    add(
        "x-kubernetes-list-map-keys",
        keys.then(|| json!(field.keys)),
    );
    add("x-kubernetes-map-type", text(&field.map));
    add("x-kubernetes-patch-merge-key", text(&field.merge_key));
    let strategy = !field.strategy.is_empty();
    add(
        "x-kubernetes-patch-strategy",
        strategy.then(|| field.strategy.join(",").into()),
    );
    schema
}

/// One way to call the server.
struct Operation<'a> {
    resource: &'a Resource,
    /// What the body and the answer are of.
    schema: &'a str,
    kind: Value,
    /// Whether the connection becomes something else: exec, attach, port-forward.
    connects: bool,
}

impl Operation<'_> {
    fn of(&self, verb: &str) -> (&'static str, Value) {
        let (method, action) = match verb {
            "create" => ("post", "post"),
            "update" => ("put", "put"),
            "patch" => ("patch", "patch"),
            "delete" => ("delete", "delete"),
            "deletecollection" => ("delete", "deletecollection"),
            "list" => ("get", "list"),
            "connect" => ("get", "connect"),
            "head" => ("head", "connect"),
            "options" => ("options", "connect"),
            _ => ("get", "get"),
        };
        let action = if self.connects { "connect" } else { action };
        let custom = self.resource.is_custom();
        let mut forms = vec![JSON, YAML];
        if !custom {
            forms.push(PROTOBUF);
        }
        let consumes = match action {
            // kubectl sends what is offered here, and custom kinds know no strategic merge.
            "patch" if custom => json!([
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml"
            ]),
            "patch" => json!([
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml"
            ]),
            _ if custom => json!(forms),
            _ => json!(["*/*"]),
        };
        let answer = match action {
            "list" => format!("{}List", self.schema),
            "delete" | "deletecollection" => format!("{META}.Status"),
            _ => self.schema.to_owned(),
        };
        let operation = json!({
            "consumes": consumes,
            "produces": forms,
            "schemes": ["https"],
            "parameters": self.parameters(action),
            "responses": {
                "200": {"description": "OK", "schema": {"$ref": reference(&answer)}},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.kind,
        });
        (method, operation)
    }

    fn parameters(&self, action: &str) -> Value {
        let query = |name: &str, ty: &str| json!({"name": name, "in": "query", "type": ty, "uniqueItems": true});
        let body = |name: &str, required: bool| json!({"name": "body", "in": "body", "required": required, "schema": {"$ref": reference(name)}});
        let mut out = Vec::new();
        if matches!(action, "post" | "put" | "patch") {
            let of = match action {
                "patch" => format!("{META}.Patch"),
                _ => self.schema.to_owned(),
            };
            out.push(body(&of, true));
            out.extend(
                ["dryRun", "fieldManager", "fieldValidation"].map(|name| query(name, "string")),
            );
        }
        if action == "patch" {
            out.push(query("force", "boolean"));
        }
        if matches!(action, "delete" | "deletecollection") {
            out.push(body(&format!("{META}.DeleteOptions"), false));
            out.push(query("dryRun", "string"));
            out.push(query("gracePeriodSeconds", "integer"));
            out.push(query("orphanDependents", "boolean"));
            out.push(query("propagationPolicy", "string"));
        }
        if matches!(action, "list" | "deletecollection") {
            let text = [
                "continue",
                "fieldSelector",
                "labelSelector",
                "resourceVersion",
                "resourceVersionMatch",
            ];
            out.extend(text.map(|name| query(name, "string")));
            out.extend(["limit", "timeoutSeconds"].map(|name| query(name, "integer")));
            out.push(query("sendInitialEvents", "boolean"));
        }
        if action == "list" {
            out.extend(["allowWatchBookmarks", "watch"].map(|name| query(name, "boolean")));
        }
        Value::Array(out)
    }
}

fn add_paths(resource: &Resource, schema: &str, paths: &mut Map<String, Value>) {
    let prefix = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let collection = format!("{prefix}{scope}/{}", resource.plural);
    let item = format!("{collection}/{{name}}");
    let operation = Operation {
        resource,
        schema,
        kind: kind(resource, &resource.kind),
        connects: false,
    };
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "type": "string", "uniqueItems": true});
    let mut add = |path: &str, operation: &Operation<'_>, verbs: &[&str]| {
        if verbs.is_empty() {
            return;
        }
        let mut entry: Map<String, Value> = Map::new();
        for verb in verbs {
            let (method, operation) = operation.of(verb);
            entry.insert(method.to_owned(), operation);
        }
        let named = ["name", "namespace", "path"].iter();
        let named = named.filter(|name| path.contains(&format!("{{{name}}}")));
        let named: Vec<Value> = named.map(|name| parameter(name)).collect();
        if !named.is_empty() {
            entry.insert("parameters".to_owned(), named.into());
        }
        paths.insert(path.to_owned(), entry.into());
    };
    let verbs = |wanted: &[&'static str]| -> Vec<&str> {
        let has = |verb: &&&str| resource.verbs.iter().any(|known| known == **verb);
        wanted.iter().filter(has).copied().collect()
    };
    add(
        &collection,
        &operation,
        &verbs(&["list", "create", "deletecollection"]),
    );
    add(
        &item,
        &operation,
        &verbs(&["get", "update", "patch", "delete"]),
    );
    if resource.namespaced {
        let everywhere = format!("{prefix}/{}", resource.plural);
        add(&everywhere, &operation, &verbs(&["list"]));
    }
    for sub in &resource.subresources {
        let body = sub.body.as_ref();
        let named = body.map(|(group, version, kind)| {
            let gvk = format!("{group}/{version}/{kind}");
            let mut types = facts::get().raw_types.iter();
            let found = types.find(|(_, raw)| raw.gvk.as_deref() == Some(&gvk));
            let name = found.map_or_else(|| schema.to_owned(), |(name, _)| name.clone());
            (
                name,
                json!({"group": group, "version": version, "kind": kind}),
            )
        });
        let (schema, kind) = named.unwrap_or_else(|| (schema.to_owned(), operation.kind.clone()));
        let operation = Operation {
            resource,
            schema: &schema,
            kind,
            connects: matches!(sub.name.as_str(), "attach" | "exec" | "portforward" | PROXY),
        };
        let verbs: Vec<&str> = sub.verbs.iter().map(String::as_str).collect();
        let path = format!("{item}/{}", sub.name);
        if sub.name == PROXY {
            let verbs = [&verbs[..], &["head", "options"]].concat();
            add(&path, &operation, &verbs);
            add(&format!("{path}/{{path}}"), &operation, &verbs);
        } else {
            add(&path, &operation, &verbs);
        }
    }
}

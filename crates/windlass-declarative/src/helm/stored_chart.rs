//! A chart as Helm keeps it in a release: without those it depends on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use windlass_charts::chart::{Dependency, Metadata};
use windlass_charts::{Chart, File};

pub(super) fn chart(chart: &Chart) -> Value {
    json!({
        "metadata": metadata(&chart.metadata),
        "lock": null,
        "templates": files(&chart.templates),
        "values": chart.values,
        "schema": chart.schema.as_ref().map(|schema| STANDARD.encode(schema)),
        "schemamodtime": "0001-01-01T00:00:00Z",
        "files": files(&chart.files),
    })
}

fn files(files: &[File]) -> Vec<Value> {
    let stored = |file: &File| json!({"name": file.name, "data": STANDARD.encode(&file.data)});
    files.iter().map(stored).collect()
}

/// Without what is empty.
fn without_empty(fields: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match fields {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !is_empty(value))
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

fn metadata(metadata: &Metadata) -> Value {
    let maintainers = metadata
        .maintainers
        .iter()
        .map(|one| without_empty(json!({"name": one.name, "email": one.email, "url": one.url})));
    let dependencies = metadata.dependencies.iter().flatten().map(dependency);
    without_empty(json!({
        "name": metadata.name,
        "home": metadata.home,
        "sources": metadata.sources,
        "version": metadata.version,
        "description": metadata.description,
        "keywords": metadata.keywords,
        "maintainers": maintainers.collect::<Vec<_>>(),
        "icon": metadata.icon,
        "apiVersion": metadata.api_version,
        "condition": metadata.condition,
        "tags": metadata.tags,
        "appVersion": metadata.app_version,
        "deprecated": metadata.deprecated,
        "annotations": metadata.annotations,
        "kubeVersion": metadata.kube_version,
        "dependencies": dependencies.collect::<Vec<_>>(),
        "type": metadata.kind,
    }))
}

fn dependency(one: &Dependency) -> Value {
    let mut stored = without_empty(json!({
        "version": one.version,
        "condition": one.condition,
        "tags": one.tags,
        "enabled": one.enabled,
        "import-values": one.import_values,
        "alias": one.alias,
    }));
    // These are there also if they are empty.
    stored["name"] = json!(one.name);
    stored["repository"] = json!(one.repository);
    stored
}

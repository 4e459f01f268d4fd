//! Custom resources: from a `CustomResourceDefinition` to resources the registry can serve.
//!
//! What a definition's schemas make of objects is in [`windlass_schema`].

mod typed;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use windlass_schema::{JsonPath, ObjectSchema, ScalePaths, Schemas, compare_versions};

use crate::decode;
use crate::kinds::Custom;
use crate::object::finalizers;
use crate::registry::Known;
use crate::registry::facts::ColumnFacts;
use crate::registry::resource::{Resource, Subresource};
use crate::registry::types::Type;
use crate::store::TableName;
use crate::webhook::Conversion;

/// Verbs of a custom resource, in the order discovery shows them.
const VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// What one version of a CRD asks for.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    /// How its objects are read and checked.
    pub(crate) objects: ObjectSchema,
    /// The schema as written, for `OpenAPI`.
    pub(crate) raw_schema: Value,
    /// How objects change version.
    pub(crate) conversion: Conversion,
    /// Cells of the columns after Name.
    pub(crate) cells: Vec<JsonPath>,
    /// The warning for clients of this version.
    pub(crate) deprecation: Option<String>,
    /// Its definition is going away: no new objects are made.
    pub(crate) terminating: AtomicBool,
    /// What the definition said, by which it is seen whether it says something else.
    said: Value,
}

impl CustomVersion {
    /// Whether it is what a definition says: a changed one is served again.
    pub(crate) fn is_said_by(&self, crd: &Value) -> bool {
        self.said == said(crd)
    }
}

/// Warnings about finalizers that a write adds and that others might use as well.
pub(crate) fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before: BTreeSet<&str> = old.map(finalizers).into_iter().flatten().collect();
    let mut added = finalizers(new);
    added.retain(|name| !before.contains(name));
    added.sort_unstable();
    added.dedup();
    let is_standard = |name: &str| matches!(name, "kubernetes" | "orphan" | "foregroundDeletion");
    added
        .into_iter()
        .filter(|name| !name.contains('/') && !is_standard(name))
        .map(|name| {
            let path = if name.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// What of a definition decides how its objects are served.
fn said(crd: &Value) -> Value {
    json!([crd["spec"], crd["status"]["acceptedNames"]])
}

/// Where the objects of a definition are kept: never where those of a built-in kind are.
pub(crate) fn table(group: &str, plural: &str) -> TableName {
    if Known::is_path(group) {
        return TableName::new(group, &format!("{plural}#custom"));
    }
    TableName::new(group, plural)
}

/// The resources a CRD defines: one per served version; none in a group that is built in, where, as
/// in Kubernetes, nothing is served beside the built-in kinds. `as_stored` tells whether all objects are
/// stored as its schemas would have them.
pub(crate) fn resources(crd: &Value, as_stored: bool) -> Vec<Resource> {
    let spec = &crd["spec"];
    let names = &crd["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let storage = versions()
        .find(|version| version["storage"] == true)
        .map(|v| text(&v["name"]))
        .unwrap_or_default();
    let schemas = Schemas::of(crd);
    let group = text(&spec["group"]);
    let is_built_in = Known::is_path(&group);
    versions()
        .filter(|version| version["served"] == true && !is_built_in)
        .map(|version| {
            let name = text(&version["name"]);
            let raw_schema = version["schema"]["openAPIV3Schema"].clone();
            let schema = schemas.get(&name);
            let mut subresources = Vec::new();
            let rest = vec!["get".to_owned(), "patch".to_owned(), "update".to_owned()];
            let has_status = version["subresources"]["status"].is_object();
            if has_status {
                subresources.push(Subresource {
                    name: "status".into(),
                    verbs: rest.clone(),
                    body: None,
                });
            }
            let scale = &version["subresources"]["scale"];
            let scale = scale.is_object().then(|| ScalePaths {
                spec_replicas: text(&scale["specReplicasPath"]),
                status_replicas: text(&scale["statusReplicasPath"]),
                label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
            });
            if scale.is_some() {
                subresources.push(Subresource {
                    name: "scale".into(),
                    verbs: rest,
                    body: Some(("autoscaling".into(), "v1".into(), "Scale".into())),
                });
            }
            let (columns, cells) = columns(version);
            let selectable: Vec<String> = version["selectableFields"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|selectable| {
                    text(&selectable["jsonPath"])
                        .trim_start_matches('.')
                        .to_owned()
                })
                .collect();
            let ty = schema
                .filter(|schema| !schema.ty.is_empty())
                .map_or(Type::Any, typed::of);
            Resource {
                plural: text(&names["plural"]),
                singular: text(&names["singular"]),
                kind: text(&names["kind"]),
                list_kind: text(&names["listKind"]),
                namespaced: spec["scope"] == "Namespaced",
                verbs: VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
                short_names: texts(&names["shortNames"]),
                categories: texts(&names["categories"]),
                subresources,
                columns,
                selectable,
                table: table(&group, &text(&names["plural"])),
                ty,
                counts: Arc::default(),
                strategy: &Custom,
                custom: Some(Arc::new(CustomVersion {
                    objects: schemas.version(
                        &name,
                        &storage,
                        scale,
                        as_stored,
                        decode::read_metadata,
                    ),
                    raw_schema,
                    conversion: Conversion::of(crd),
                    cells,
                    deprecation: deprecation(spec, version, &text(&names["kind"])),
                    terminating: AtomicBool::new(windlass_schema::has_condition(
                        crd,
                        "Terminating",
                    )),
                    said: said(crd),
                })),
                version: name,
                group: group.clone(),
            }
        })
        .collect()
}

/// The warning for clients of a deprecated version: the definition's own, or what to use instead.
fn deprecation(spec: &Value, version: &Value, kind: &str) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(said) = version["deprecationWarning"].as_str() {
        return Some(said.to_owned());
    }
    let group = spec["group"].as_str().unwrap_or_default();
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let warning = format!("{group}/{} {kind} is deprecated", name(version));
    let better = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(name)
        .filter(|other| compare_versions(other, &name(version)) == Ordering::Less)
        .min_by(|a, b| compare_versions(a, b));
    Some(match better {
        Some(better) => format!("{warning}; use {group}/{better} {kind}"),
        None => warning,
    })
}

/// Name, then the columns the CRD asks for, or Age when it asks for none.
fn columns(version: &Value) -> (Vec<ColumnFacts>, Vec<JsonPath>) {
    let name = ColumnFacts {
        name: "Name".into(),
        ty: "string".into(),
        format: "name".into(),
        priority: 0,
    };
    let age = json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
    let asked = version["additionalPrinterColumns"]
        .as_array()
        .filter(|columns| !columns.is_empty());
    let mut columns = vec![name];
    let mut cells = Vec::new();
    for column in asked.or(age.as_array()).into_iter().flatten() {
        let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
        columns.push(ColumnFacts {
            name: text("name"),
            ty: text("type"),
            format: text("format"),
            priority: i32::try_from(column["priority"].as_i64().unwrap_or_default())
                .unwrap_or_default(),
        });
        cells.push(JsonPath::parse(&text("jsonPath")));
    }
    (columns, cells)
}

//! Custom resources: from a `CustomResourceDefinition` to resources the registry can serve.

mod definition;
mod jsonpath;
mod schema;
mod validate;

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use definition::{established_status, fill_defaults, mark_terminating, validate};
pub(crate) use jsonpath::JsonPath;
use schema::Schema;

use crate::facts::ColumnFacts;
use crate::resource::{Resource, Subresource};
use crate::status::Cause;
use crate::store::TableName;
use crate::types::Type;
use crate::webhook::Conversion;

/// The finalizer that keeps a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

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
    schema: Schema,
    /// The schema as written, for `OpenAPI`.
    pub(crate) raw_schema: Value,
    /// Objects are stored in this version.
    pub(crate) storage_version: String,
    /// How objects change version.
    pub(crate) conversion: Conversion,
    /// Where `scale` finds its numbers.
    pub(crate) scale: Option<ScalePaths>,
    /// Cells of the columns after Name.
    pub(crate) cells: Vec<JsonPath>,
}

/// The dotted paths of the scale subresource.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

impl CustomVersion {
    /// Removes unknown fields (telling which) and fills in defaults.
    pub(crate) fn prune_and_default(&self, object: &mut Value) -> Vec<String> {
        let mut pruned = Vec::new();
        self.schema.prune(object, true, "", &mut pruned);
        self.schema.drop_nulls(object);
        self.schema.fill_defaults(object);
        pruned
    }

    /// Removes unknown fields.
    pub(crate) fn prune(&self, object: &mut Value) {
        self.schema.prune(object, true, "", &mut Vec::new());
    }

    /// What is wrong with an object.
    pub(crate) fn validate(&self, object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        validate::check(object, &self.schema, "", &mut causes);
        if let Some(scale) = &self.scale {
            validate::check_scale(object, scale, &mut causes);
        }
        causes
    }
}

/// The resources a CRD defines: one per served version.
pub(crate) fn resources(crd: &Value) -> Vec<Resource> {
    let spec = &crd["spec"];
    let names = &spec["names"];
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
    let group = text(&spec["group"]);
    versions()
        .filter(|version| version["served"] == true)
        .map(|version| {
            let raw_schema = version["schema"]["openAPIV3Schema"].clone();
            let schema: Schema = serde_json::from_value(raw_schema.clone()).unwrap_or_default();
            let mut subresources = Vec::new();
            let rest = vec!["get".to_owned(), "patch".to_owned(), "update".to_owned()];
            if version["subresources"]["status"].is_object() {
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
            let ty = if schema.ty.is_empty() {
                Type::Any
            } else {
                schema.to_type(true)
            };
            Resource {
                version: text(&version["name"]),
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
                table: TableName::new(&group, &text(&names["plural"])),
                ty,
                custom: Some(Arc::new(CustomVersion {
                    schema,
                    raw_schema,
                    storage_version: storage.clone(),
                    conversion: Conversion::of(crd),
                    scale,
                    cells,
                })),
                group: group.clone(),
            }
        })
        .collect()
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

/// Kubernetes' order of versions, the preferred first: stable before beta before alpha, newest first, others last.
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    fn rank(version: &str) -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let (stability, minor) = match &rest[digits..] {
            "" => (2, 0),
            rest => {
                let (stability, minor) = rest
                    .strip_prefix("beta")
                    .map(|minor| (1, minor))
                    .or_else(|| rest.strip_prefix("alpha").map(|minor| (0, minor)))?;
                (stability, minor.parse().ok()?)
            }
        };
        Some((stability, major, minor))
    }
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = vec![
            "foo1",
            "v1alpha1",
            "v2",
            "v1beta2",
            "v1",
            "v11alpha2",
            "v1beta1",
            "bar",
        ];
        versions.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(
            versions,
            [
                "v2",
                "v1",
                "v1beta2",
                "v1beta1",
                "v11alpha2",
                "v1alpha1",
                "bar",
                "foo1"
            ]
        );
    }
}

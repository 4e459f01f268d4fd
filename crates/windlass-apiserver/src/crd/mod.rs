//! Custom resources: from a `CustomResourceDefinition` to resources the registry can serve.

mod jsonpath;
mod schema;
mod validate;

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use jsonpath::JsonPath;
use schema::Schema;

use crate::facts::ColumnFacts;
use crate::resource::{Resource, Subresource};
use crate::status::{Cause, field};
use crate::store::TableName;
use crate::types::Type;

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

/// Fills in what a CRD may leave out.
pub(crate) fn fill_defaults(crd: &mut Value) {
    let kind = crd["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if let Some(names) = crd["spec"]["names"].as_object_mut() {
        names
            .entry("singular")
            .or_insert_with(|| kind.to_lowercase().into());
        names
            .entry("listKind")
            .or_insert_with(|| format!("{kind}List").into());
    }
    if let Some(spec) = crd["spec"].as_object_mut() {
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
    }
}

/// What is wrong with a CRD. Thin: names, versions and the parts this server cannot honour.
pub(crate) fn validate(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    for (path, value) in [
        ("spec.group", &spec["group"]),
        ("spec.scope", &spec["scope"]),
        ("spec.names.plural", &spec["names"]["plural"]),
        ("spec.names.kind", &spec["names"]["kind"]),
    ] {
        if text(value).is_empty() {
            causes.push(field::required(path, ""));
        }
    }
    let expected = format!("{plural}.{group}");
    if text(&crd["metadata"]["name"]) != expected {
        causes.push(field::invalid(
            "metadata.name",
            &crd["metadata"]["name"],
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let storage_versions = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count();
    if storage_versions != 1 {
        causes.push(field::invalid_shown(
            "spec.versions",
            &versions_shown(versions),
            "must have exactly one version marked as storage version",
        ));
    }
    // One schema for all versions is checked as the definition's own.
    let schema_of = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let shared = versions
        .windows(2)
        .all(|pair| schema_of(&pair[0]) == schema_of(&pair[1]));
    for (index, version) in versions.iter().enumerate() {
        let raw = &version["schema"]["openAPIV3Schema"];
        let own = format!("spec.versions[{index}].schema.openAPIV3Schema");
        if !raw.is_object() {
            causes.push(field::required(own, ""));
            continue;
        }
        let path = match (shared, index) {
            (true, 0) => "spec.validation.openAPIV3Schema".to_owned(),
            (true, _) => continue,
            (false, _) => own,
        };
        match serde_json::from_value::<Schema>(raw.clone()) {
            Err(error) => causes.push(field::invalid(path, raw, &error.to_string())),
            Ok(schema) => check_structure(&schema, &path, &mut causes),
        }
    }
    if storage_versions == 0 {
        let why = "must have at least one stored version";
        causes.push(field::invalid("status.storedVersions", &Value::Null, why));
    }
    if spec["conversion"]["strategy"] == "Webhook" {
        causes.push(field::forbidden(
            "spec.conversion.strategy",
            "webhook conversion is not served by this version of windlass",
        ));
    }
    causes
}

/// Versions as Go shows them: what all of them share is not said of each.
fn versions_shown(versions: &[Value]) -> String {
    let flag = |version: &Value, name: &str| version[name] == true;
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                version["name"],
                flag(version, "served"),
                flag(version, "storage"),
                flag(version, "deprecated"),
                version["deprecationWarning"],
            )
        })
        .collect();
    format!("[{}]", shown.join(","))
}

fn check_structure(schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    if schema.ty != "object" {
        causes.push(field::invalid(
            format!("{path}.type"),
            &schema.ty.as_str().into(),
            "must be object at the root",
        ));
    }
    schema.visit(path, &mut |path, schema| {
        if schema.ty.is_empty() && !schema.int_or_string && !schema.preserve_unknown {
            causes.push(field::required(format!("{path}.type"), "must not be empty for specified object fields"));
        }
        if !schema.rules.is_empty() {
            causes.push(field::forbidden(
                format!("{path}.x-kubernetes-validations"),
                "CEL rules are not run by this version of windlass, and are refused rather than ignored",
            ));
        }
        if let Some(pattern) = &schema.pattern
            && let Err(error) = regex::Regex::new(pattern)
        {
            causes.push(field::invalid(format!("{path}.pattern"), &pattern.as_str().into(), &format!("must be a valid regular expression, but isn't: {error}")));
        }
    });
}

/// The status of an accepted CRD, with the conditions clients wait for.
pub(crate) fn established_status(crd: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    let storage = crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true);
    let mut stored: Vec<Value> = crd["status"]["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if let Some(name) = storage.map(|version| version["name"].clone())
        && !stored.contains(&name)
    {
        stored.push(name);
    }
    json!({
        "acceptedNames": crd["spec"]["names"],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    })
}

/// Marks a CRD that is going away: its objects are deleted before it is.
pub(crate) fn mark_terminating(crd: &mut Value, now: &str) {
    let mut finalizers: Vec<String> = crate::object::finalizers(crd)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if finalizers.iter().all(|known| known != CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.to_owned());
    }
    crate::object::set_meta(crd, "finalizers", Some(json!(finalizers)));
    set_condition(
        crd,
        json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }),
    );
}

fn set_condition(crd: &mut Value, condition: Value) {
    let conditions = &mut crd["status"]["conditions"];
    match conditions.as_array_mut() {
        None => *conditions = json!([condition]),
        Some(conditions) => match conditions
            .iter_mut()
            .find(|known| known["type"] == condition["type"])
        {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        },
    }
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

    #[test]
    fn cel_rules_are_refused_rather_than_ignored() {
        let crd = json!({
            "metadata": {"name": "ws.x.io"},
            "spec": {"group": "x.io", "scope": "Namespaced", "names": {"plural": "ws", "kind": "W"}, "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}},
            }]},
        });
        let causes = validate(&crd);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(
            causes[0].field,
            "spec.validation.openAPIV3Schema.x-kubernetes-validations"
        );
    }
}

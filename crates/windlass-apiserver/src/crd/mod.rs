//! Custom resources: from a `CustomResourceDefinition` to resources the registry can serve.
//!
//! | module | what |
//! | --- | --- |
//! | `definition`, `version`, `conversion`, `approval`, `schema_check`, `list_check`, `structural`, `default_check` | what is wrong with a definition |
//! | `names` | which of the names a definition asks for it gets, and what its status says |
//! | `schema`, `prune` | what a schema makes of an object: unknown fields, nulls, defaults |
//! | `validate`, `format`, `scale`, `lists`, `embedded`, `rules`, `ratchet` | what is wrong with an object |
//! | `declare`, `field_path`, `jsonpath`, `shown` | parts of these |

mod approval;
mod conversion;
mod declare;
mod default_check;
mod definition;
mod embedded;
mod field_path;
mod format;
mod jsonpath;
mod list_check;
mod lists;
mod names;
mod path;
mod prune;
mod ratchet;
mod rules;
mod scale;
mod schema;
mod schema_check;
mod shown;
mod structural;
mod validate;
mod version;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

pub(crate) use definition::{fill_defaults, unknown_formats, validate};
pub(crate) use jsonpath::JsonPath;
pub(crate) use names::{mark_terminating, set_condition, status_of};
pub(crate) use prune::TooMuch;
use ratchet::Correlated;
use rules::Rules;
use schema::Schema;

use crate::facts::ColumnFacts;
use crate::object::{self, finalizers};
use crate::registry::Known;
use crate::resource::{Resource, Subresource};
use crate::status::{Cause, field};
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
    version: String,
    schemas: Arc<BTreeMap<String, Schema>>,
    rules: Option<Rules>,
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
    /// What who uses this version is told.
    pub(crate) deprecation: Option<String>,
    /// Its definition is going away: no new objects are made.
    pub(crate) terminating: AtomicBool,
    /// Whether every object is stored as this version of the schema would have it.
    pub(crate) as_stored: bool,
    /// What the definition said, by which it is seen whether it says something else.
    said: Value,
}

/// The dotted paths of the scale subresource.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

impl CustomVersion {
    fn schema(&self) -> Option<&Schema> {
        self.schemas.get(&self.version)
    }

    /// Brings an object of this version into the form it is looked at: tells the unknown fields it
    /// removed, or why it cannot be read.
    pub(crate) fn read(&self, object: &mut Value) -> Result<Vec<String>, String> {
        self.read_with(object, false)
    }

    /// The same for what an apply made: nulls that mean nothing are not forgiven there.
    pub(crate) fn read_applied(&self, object: &mut Value) -> Result<Vec<String>, String> {
        self.read_with(object, true)
    }

    fn read_with(&self, object: &mut Value, nulls_stay: bool) -> Result<Vec<String>, String> {
        let Some(schema) = self.schema() else {
            return Ok(Vec::new());
        };
        let mut unknown = schema.prune(object, true);
        if !nulls_stay {
            schema.drop_nulls(object);
        }
        unknown.extend(schema.read_embedded(object)?);
        schema
            .fill_defaults(object)
            .map_err(|too_much| too_much.to_string())?;
        Ok(unknown)
    }

    /// The version objects are stored in, in full.
    pub(crate) fn stored_api_version(&self, group: &str) -> String {
        format!("{group}/{}", self.storage_version)
    }

    /// Fills in what this version has defaults for.
    pub(crate) fn fill_defaults(&self, object: &mut Value) -> Result<(), TooMuch> {
        self.schema()
            .map_or(Ok(()), |schema| schema.fill_defaults(object))
    }

    /// Fills in what the storage version has defaults for, of an object that came from another.
    pub(crate) fn fill_stored(&self, object: &mut Value) -> Result<(), TooMuch> {
        if self.version == self.storage_version {
            return Ok(());
        }
        let schema = self.schemas.get(&self.storage_version);
        schema.map_or(Ok(()), |schema| schema.fill_defaults(object))
    }

    /// What is read from the store: it gets the defaults of the version it was stored as, and
    /// loses what that does not know. Defaults that came later and are more than an object may get
    /// are left out, so that whoever reads others is not kept from it.
    pub(crate) fn read_stored(&self, object: &mut Value) {
        let stored = object["apiVersion"].as_str().unwrap_or_default();
        let stored = stored.rsplit('/').next().unwrap_or_default().to_owned();
        if (stored != self.version || !self.as_stored)
            && let Some(schema) = self.schemas.get(&stored)
        {
            convert(object, Some(schema));
            if let Err(error) = schema.fill_defaults(object) {
                tracing::warn!(%error, name = object::meta(object, "name"), "reading a custom resource");
            }
        }
    }

    /// Makes an object that came from another version one of `version`, with nothing that it does
    /// not know.
    pub(crate) fn coerce(&self, object: &mut Value, version: &str) {
        convert(object, self.schemas.get(version));
    }

    /// Whether objects are stored in this version.
    pub(crate) fn is_stored_version(&self) -> bool {
        self.version == self.storage_version
    }

    /// Whether the stored bytes of an object are what a client of this version reads.
    pub(crate) fn reads_as_stored(&self) -> bool {
        self.as_stored && self.version == self.storage_version
    }

    /// Whether it is what a definition says: a changed one is served anew.
    pub(crate) fn is_said_by(&self, crd: &Value) -> bool {
        self.said == said(crd)
    }

    /// What is wrong with a new object.
    pub(crate) fn check_create(&self, object: &Value) -> Vec<Cause> {
        let Some(schema) = self.schema() else {
            return Vec::new();
        };
        let mut causes = validate::check(object, schema, "", None);
        if let Some(scale) = &self.scale {
            scale::check(object, scale, true, &mut causes);
        }
        causes.extend(embedded::check(object, schema, ""));
        causes.extend(lists::check(object, schema, ""));
        let (more, _) = self.check_rules(object, None, &causes);
        causes.extend(more);
        causes
    }

    /// What is wrong with a change, and what is warned about instead.
    pub(crate) fn check_update(
        &self,
        new: &Value,
        old: &Value,
        subresource: &str,
    ) -> (Vec<Cause>, Vec<String>) {
        let Some(schema) = self.schema() else {
            return (Vec::new(), Vec::new());
        };
        let is_status = subresource == "status";
        let mut causes = if is_status {
            match (new.get("status"), schema.properties.get("status")) {
                (Some(status), Some(schema)) => {
                    let before = &old["status"];
                    let before = Correlated::new(status, before, schema);
                    validate::check(status, schema, "status", Some(before))
                }
                _ => Vec::new(),
            }
        } else {
            let before = Correlated::new(new, old, schema);
            validate::check(new, schema, "", Some(before))
        };
        if let Some(scale) = &self.scale {
            scale::check(new, scale, !is_status, &mut causes);
        }
        causes.extend(embedded::check(new, schema, ""));
        if lists::check(old, schema, "").is_empty() {
            causes.extend(lists::check(new, schema, ""));
        }
        let (more, warnings) = self.check_rules(new, Some(old), &causes);
        causes.extend(more);
        (causes, warnings)
    }

    /// Rules are run on objects that are otherwise what the schema asks for.
    fn check_rules(
        &self,
        new: &Value,
        old: Option<&Value>,
        found: &[Cause],
    ) -> (Vec<Cause>, Vec<String>) {
        let (Some(rules), Some(schema)) = (&self.rules, self.schema()) else {
            return (Vec::new(), Vec::new());
        };
        let blocks = |cause: &Cause| {
            matches!(
                cause.reason,
                "FieldValueNotSupported"
                    | "FieldValueRequired"
                    | "FieldValueTooLong"
                    | "FieldValueTooMany"
                    | "FieldValueTypeInvalid"
            )
        };
        if found.iter().any(blocks) {
            let cause = field::invalid(
                "<nil>",
                &Value::Null,
                "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            );
            return (vec![cause], Vec::new());
        }
        rules.check(new, old, schema, "", true)
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

/// Takes from an object what a version does not know.
fn convert(object: &mut Value, schema: Option<&Schema>) {
    if let Some(schema) = schema {
        schema.prune(object, true);
        schema.drop_nulls(object);
        // Metadata that cannot be read is left as it is stored.
        let _ = schema.read_embedded(object);
    }
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
    let schemas: BTreeMap<String, Schema> = versions()
        .map(|version| {
            let raw = version["schema"]["openAPIV3Schema"].clone();
            let schema = serde_json::from_value(raw).unwrap_or_default();
            (text(&version["name"]), schema)
        })
        .collect();
    let schemas = Arc::new(schemas);
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
                .map_or(Type::Any, Schema::to_type);
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
                custom: Some(Arc::new(CustomVersion {
                    rules: schema.and_then(|schema| Rules::of(schema, true)),
                    schemas: schemas.clone(),
                    raw_schema,
                    storage_version: storage.clone(),
                    conversion: Conversion::of(crd),
                    scale,
                    cells,
                    deprecation: deprecation(spec, version, &text(&names["kind"])),
                    terminating: AtomicBool::new(definition::has_condition(crd, "Terminating")),
                    as_stored,
                    said: said(crd),
                    version: name.clone(),
                })),
                version: name,
                group: group.clone(),
            }
        })
        .collect()
}

/// What who uses a deprecated version is told: what the definition says, or what to use instead.
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

//! One version of a definition, as it reads and checks its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_apimachinery::field::{self, Cause};

use crate::error::{MetadataError, ReadError};
use crate::prune::TooMuch;
use crate::ratchet::Correlated;
use crate::rules::Rules;
use crate::scale::ScalePaths;
use crate::schema::Schema;
use crate::{embedded, lists, scale, validate};

/// Reads the metadata of an object inside of another: returns its unknown fields, which are
/// removed, or why it cannot be read.
pub type ReadMetadata = fn(&mut Value) -> Result<Vec<String>, MetadataError>;

/// The schemas of all versions of a definition.
#[derive(Clone, Debug)]
pub struct Schemas(Arc<BTreeMap<String, Schema>>);

impl Schemas {
    /// Those of a definition, served or not; what cannot be read asks nothing.
    pub fn of(crd: &Value) -> Self {
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let schemas = versions.map(|version| {
            let raw = version["schema"]["openAPIV3Schema"].clone();
            let name = version["name"].as_str().unwrap_or_default().to_owned();
            (name, serde_json::from_value(raw).unwrap_or_default())
        });
        Self(Arc::new(schemas.collect()))
    }

    /// The schema of one version.
    pub fn get(&self, version: &str) -> Option<&Schema> {
        self.0.get(version)
    }

    /// How the objects of a version are read and checked. `as_stored` says whether all of them are
    /// stored as the schema would have them.
    pub fn version(
        &self,
        version: &str,
        storage_version: &str,
        scale: Option<ScalePaths>,
        as_stored: bool,
        read_metadata: ReadMetadata,
    ) -> ObjectSchema {
        ObjectSchema {
            rules: self.get(version).and_then(|schema| Rules::of(schema, true)),
            schemas: self.clone(),
            version: version.to_owned(),
            storage_version: storage_version.to_owned(),
            scale,
            as_stored,
            read_metadata,
        }
    }
}

/// How the objects of one version of a definition are read and checked.
#[derive(Debug)]
pub struct ObjectSchema {
    /// The name of the version.
    pub version: String,
    /// The version objects are stored in.
    pub storage_version: String,
    /// Where `scale` finds its numbers.
    pub scale: Option<ScalePaths>,
    /// Whether every object is stored as this version of the schema would have it.
    pub as_stored: bool,
    schemas: Schemas,
    rules: Option<Rules>,
    read_metadata: ReadMetadata,
}

impl ObjectSchema {
    fn schema(&self) -> Option<&Schema> {
        self.schemas.get(&self.version)
    }

    /// Brings an object of this version into the form it is looked at: returns the unknown fields it
    /// removed, or why it cannot be read.
    pub fn read(&self, object: &mut Value) -> Result<Vec<String>, ReadError> {
        self.read_with(object, false)
    }

    /// The same for what an apply made: nulls that mean nothing are not forgiven there.
    pub fn read_applied(&self, object: &mut Value) -> Result<Vec<String>, ReadError> {
        self.read_with(object, true)
    }

    fn read_with(&self, object: &mut Value, nulls_stay: bool) -> Result<Vec<String>, ReadError> {
        let Some(schema) = self.schema() else {
            return Ok(Vec::new());
        };
        let mut unknown = schema.prune(object, true);
        if !nulls_stay {
            schema.drop_nulls(object);
        }
        unknown.extend(schema.read_embedded(object, self.read_metadata)?);
        schema.fill_defaults(object)?;
        Ok(unknown)
    }

    /// The version objects are stored in, in full.
    pub fn stored_api_version(&self, group: &str) -> String {
        format!("{group}/{}", self.storage_version)
    }

    /// Fills in what this version has defaults for.
    pub fn fill_defaults(&self, object: &mut Value) -> Result<(), TooMuch> {
        self.schema()
            .map_or(Ok(()), |schema| schema.fill_defaults(object))
    }

    /// Fills in what the storage version has defaults for, of an object that came from another.
    pub fn fill_stored(&self, object: &mut Value) -> Result<(), TooMuch> {
        if self.version == self.storage_version {
            return Ok(());
        }
        let schema = self.schemas.get(&self.storage_version);
        schema.map_or(Ok(()), |schema| schema.fill_defaults(object))
    }

    /// What is read from the store: it gets the defaults of the version it was stored as, and
    /// loses what that does not know. Defaults that came later and are more than an object may get
    /// are left out, so that whoever reads others is not kept from it.
    pub fn read_stored(&self, object: &mut Value) {
        let stored = object["apiVersion"].as_str().unwrap_or_default();
        let stored = stored.rsplit('/').next().unwrap_or_default().to_owned();
        if (stored != self.version || !self.as_stored)
            && let Some(schema) = self.schemas.get(&stored)
        {
            self.convert(object, schema);
            if let Err(error) = schema.fill_defaults(object) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                tracing::warn!(%error, name, "reading a custom resource");
            }
        }
    }

    /// Makes an object that came from another version one of `version`, with nothing that it does
    /// not know.
    pub fn coerce(&self, object: &mut Value, version: &str) {
        if let Some(schema) = self.schemas.get(version) {
            self.convert(object, schema);
        }
    }

    /// Whether objects are stored in this version.
    pub fn is_stored_version(&self) -> bool {
        self.version == self.storage_version
    }

    /// Whether the stored bytes of an object are what a client of this version reads.
    pub fn reads_as_stored(&self) -> bool {
        self.as_stored && self.is_stored_version()
    }

    /// What is wrong with a new object.
    pub fn check_create(&self, object: &Value) -> Vec<Cause> {
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
    pub fn check_update(
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

    /// Takes from an object what a version does not know.
    fn convert(&self, object: &mut Value, schema: &Schema) {
        schema.prune(object, true);
        schema.drop_nulls(object);
        // Metadata that cannot be read is left as it is stored.
        let _ = schema.read_embedded(object, self.read_metadata);
    }
}

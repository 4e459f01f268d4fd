//! `CustomResourceDefinition`, which stays until its objects are gone.

use serde_json::{Value, json};

use crate::decode;
use crate::defaults;
use crate::kinds::{Strategy, Writing};
use crate::object::{finalizers, is_terminating, set_meta};
use crate::registry::custom;
use crate::registry::resource::Resource;
use crate::registry::types::Type;
use crate::server::ApiServer;
use crate::store::Stored;
use crate::validation::at::Causes;
use crate::verbs::delete::{Deletion, Outcome};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CustomResourceDefinition;

impl Strategy for CustomResourceDefinition {
    fn needs_version(&self) -> bool {
        true
    }

    fn storage_prefix(&self, resource: &Resource) -> String {
        format!("{}/{}", resource.group, resource.plural)
    }

    fn storage_version<'a>(&self, group: &'a str, _: &'a str) -> (&'a str, &'a str) {
        (group, "v1beta1")
    }

    fn before_defaults(&self, object: &mut Value) {
        // The JSON within a schema is written again: a default of 2.0 is one of 2.
        decode::whole_numbers(object);
    }

    fn fill_defaults(&self, object: &mut Value, ty: &Type) {
        defaults::fill(object, ty);
        windlass_schema::fill_defaults(object);
    }

    fn early_warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let known = old
            .map(windlass_schema::unknown_formats)
            .unwrap_or_default();
        let strange = windlass_schema::unknown_formats(object).into_iter();
        strange
            .filter(|format| !known.contains(format))
            .map(|format| format!("unrecognized format \"{format}\""))
            .collect()
    }

    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        causes.extend(windlass_schema::validate(
            object,
            old,
            decode::read_metadata,
        ));
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        let versions = object["spec"]["versions"].as_array().into_iter().flatten();
        let stored: Vec<Value> = versions
            .filter(|version| version["storage"] == true)
            .map(|version| version["name"].clone())
            .take(1)
            .collect();
        object["status"] = json!({"storedVersions": stored});
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, _: &Value) {
        remember_storage_version(new);
    }

    fn after_write(&self, server: &ApiServer, resource: &Resource, stored: &Stored, deleted: bool) {
        custom::after_write(server, resource, stored, deleted);
    }

    fn delete(&self, deletion: &Deletion<'_>) -> Outcome {
        let old = deletion.old;
        if is_terminating(old) {
            let has_grace = old["metadata"].get("deletionGracePeriodSeconds").is_some();
            return if finalizers(old).is_empty() {
                Outcome::Gone
            } else if has_grace {
                Outcome::Unchanged
            } else {
                let mut marked = old.clone();
                set_meta(&mut marked, "deletionGracePeriodSeconds", Some(0.into()));
                Outcome::Marked(marked)
            };
        }
        let mut marked = old.clone();
        let now = deletion.clock.now_seconds();
        windlass_schema::mark_terminating(&mut marked, &now);
        set_meta(&mut marked, "deletionTimestamp", Some(now.into()));
        Outcome::Marked(marked)
    }
}

/// A definition's status knows every version that objects were ever stored in.
fn remember_storage_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    if let (Some(name), Some(known)) = (
        stored,
        definition["status"]["storedVersions"].as_array_mut(),
    ) && !known.contains(&name)
    {
        known.push(name);
    }
}

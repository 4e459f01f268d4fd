//! `Namespace`, which is in itself, and stays until the finalizers in its spec are gone.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::IMMORTAL_NAMESPACES;
use crate::kinds::{Strategy, Writing};
use crate::names;
use crate::object::{is_terminating, set_meta};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};
use crate::table::text::text;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

use crate::verbs::delete::{Deletion, Outcome};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Namespace;

impl Strategy for Namespace {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_status(new, old, causes);
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::label_errors(name)
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn is_namespace(&self) -> bool {
        true
    }

    fn checks_preconditions_first(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        let finalizers = &mut object["spec"]["finalizers"];
        match finalizers.as_array_mut() {
            Some(list) if list.iter().any(|name| name == "kubernetes") => {}
            Some(list) => list.push("kubernetes".into()),
            None => *finalizers = json!(["kubernetes"]),
        }
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        match old["spec"].get("finalizers") {
            Some(finalizers) => new["spec"]["finalizers"] = finalizers.clone(),
            None => {
                if let Some(spec) = new["spec"].as_object_mut() {
                    spec.remove("finalizers");
                }
            }
        }
    }

    fn check_subresource(&self, new: &Value, _: &Value, subresource: &str, causes: &mut Causes) {
        if subresource == "finalize" {
            validation::check_finalize(new, causes);
        }
    }

    fn admit_delete(&self, resource: &Resource, name: &str) -> Result<()> {
        if IMMORTAL_NAMESPACES.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(resource.subject(), name, why));
        }
        Ok(())
    }

    fn is_held(&self, object: &Value) -> bool {
        let finalizers = object["spec"]["finalizers"].as_array();
        finalizers.is_some_and(|finalizers| !finalizers.is_empty())
    }

    fn delete(&self, deletion: &Deletion<'_>) -> Outcome {
        let old = deletion.old;
        let finalizers = deletion.finalizers();
        // The first request only says that it is to go.
        if is_terminating(old) {
            return if !self.is_held(old) && finalizers.is_empty() {
                Outcome::Gone
            } else {
                Outcome::Unchanged
            };
        }
        let mut marked = deletion.with_finalizers(&finalizers);
        let now = deletion.clock.now_seconds();
        set_meta(&mut marked, "deletionTimestamp", Some(now.into()));
        marked["status"]["phase"] = "Terminating".into();
        Outcome::Marked(marked)
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Status" => text(&object["status"]["phase"]).into(),
            _ => return None,
        })
    }
}

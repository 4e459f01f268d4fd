//! `Deployment`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::{Fields, Strategy, Way, content_changes, reset_fields};
use crate::object::set_meta;
use crate::registry::resource::Resource;
use crate::table::cell::{containers, number, ready_of};
use crate::table::text::selector;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;
use crate::validation::template;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Deployment;

impl Strategy for Deployment {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::deployment(&At::root(object, "").child("spec"), causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        let spec = At::root(&new["spec"], "spec");
        template::immutable_selector(&spec.child("selector"), &old["spec"]["selector"], causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn pod_template(&self) -> Option<Way> {
        Some(&["spec", "template"])
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_template(object, &["spec", "template"])
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        let status = At::root(&new["status"], "status");
        nonnegative(
            &status,
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            causes,
        );
        validation::replica_status(
            &status,
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
            "readyReplicas",
            causes,
        );
        validation::collisions(&status, old, causes);
    }

    fn reset_fields(&self, subresource: &str, has_status: bool) -> Fields {
        match subresource {
            "status" => &[&["spec"], &["metadata", "labels"]],
            _ => reset_fields(subresource, has_status),
        }
    }

    fn generation_changes(&self, new: &Value, old: &Value, resource: &Resource) -> bool {
        content_changes(new, old, resource)
            || new["metadata"].get("annotations") != old["metadata"].get("annotations")
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        set_meta(new, "labels", old["metadata"].get("labels").cloned());
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        let status = &object["status"];
        Some(match column {
            "Ready" => ready_of(object),
            "Up-to-date" => number(&status["updatedReplicas"]),
            "Available" => number(&status["availableReplicas"]),
            "Selector" => selector(&spec["selector"]).into(),
            "Containers" | "Images" => containers(&spec["template"], column),
            _ => return None,
        })
    }
}

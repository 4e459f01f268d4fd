//! `StatefulSet`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::{Strategy, Way};
use crate::names;
use crate::table::cell::{containers, ready_of};
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct StatefulSet;

impl Strategy for StatefulSet {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        validation::stateful_set(&At::root(object, "").child("spec"), old.is_none(), causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::stateful_set_update(new, old, causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::label_errors(name)
    }

    fn pod_template(&self) -> Option<Way> {
        Some(&["spec", "template"])
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_template(object, &["spec", "template"])
    }

    fn disabled_fields(&self) -> &'static [Way] {
        &[&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]]
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        let status = At::root(&new["status"], "status");
        nonnegative(
            &status,
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            causes,
        );
        validation::replica_status(
            &status,
            &[
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ],
            "status.readyReplicas",
            causes,
        );
        validation::collisions(&status, old, causes);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Ready" => ready_of(object),
            "Containers" | "Images" => containers(&object["spec"]["template"], column),
            _ => return None,
        })
    }
}

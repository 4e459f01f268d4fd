//! `ReplicaSet`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::{Strategy, Way};
use crate::table::cell::{containers, number};
use crate::table::text::selector;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;
use crate::validation::template;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::replica_set(&At::root(object, "").child("spec"), causes);
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

    fn check_status(&self, new: &Value, _: &Value, causes: &mut Causes) {
        let status = At::root(&new["status"], "status");
        nonnegative(
            &status,
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
                "terminatingReplicas",
            ],
            causes,
        );
        validation::replica_status(
            &status,
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            "readyReplicas",
            causes,
        );
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        let status = &object["status"];
        Some(match column {
            "Desired" => number(&spec["replicas"]),
            "Current" => number(&status["replicas"]),
            "Ready" => number(&status["readyReplicas"]),
            "Selector" => selector(&spec["selector"]).into(),
            "Containers" | "Images" => containers(&spec["template"], column),
            _ => return None,
        })
    }
}

//! `DaemonSet`, whose template has a generation of its own in an annotation.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::validation;
use crate::defaults::{TEMPLATE_GENERATION, drop_template_generation};
use crate::kinds::{Form, Order, Strategy, Way, Writing};
use crate::object::meta_mut;
use crate::table::cell::{containers, number};
use crate::table::text::{labels, or, selector};
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;
use crate::validation::template;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct DaemonSet;

impl Strategy for DaemonSet {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::daemon_set(&At::root(object, "").child("spec"), causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        let spec = At::root(&new["spec"], "spec");
        template::immutable_selector(&spec.child("selector"), &old["spec"]["selector"], causes);
    }

    fn update_order(&self) -> Order {
        Order::First
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
        let numbers = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        nonnegative(&status, &numbers, causes);
        validation::collisions(&status, old, causes);
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        let generation = template_generation(object);
        set_template_generation(object, generation.max(1));
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        let generation = template_generation(old);
        let changed = new["spec"]["template"] != old["spec"]["template"];
        set_template_generation(new, generation.saturating_add(i64::from(changed)));
    }

    fn hidden_metadata(&self) -> Option<Form> {
        Some(drop_template_generation)
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        let status = &object["status"];
        Some(match column {
            "Desired" => number(&status["desiredNumberScheduled"]),
            "Current" => number(&status["currentNumberScheduled"]),
            "Ready" => number(&status["numberReady"]),
            "Up-to-date" => number(&status["updatedNumberScheduled"]),
            "Available" => number(&status["numberAvailable"]),
            "Node Selector" => {
                or(labels(&spec["template"]["spec"]["nodeSelector"]), "<none>").into()
            }
            "Selector" => selector(&spec["selector"]).into(),
            "Containers" | "Images" => containers(&spec["template"], column),
            _ => return None,
        })
    }
}

fn template_generation(daemon_set: &Value) -> i64 {
    daemon_set["metadata"]["annotations"][TEMPLATE_GENERATION]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(daemon_set: &mut Value, generation: i64) {
    let annotations = meta_mut(daemon_set)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(
            TEMPLATE_GENERATION.to_owned(),
            generation.to_string().into(),
        );
    }
}

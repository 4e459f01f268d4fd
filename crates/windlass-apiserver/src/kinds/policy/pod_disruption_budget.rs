//! `PodDisruptionBudget`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::core::pod::validation;
use crate::names;
use crate::table::cell::number;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;
use crate::validation::{amount, internal, label};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PodDisruptionBudget;

impl Strategy for PodDisruptionBudget {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        check(object, causes);
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::segment_errors(name)
    }

    fn metadata_checks(&self) -> Checks {
        Checks::NONE
    }

    fn check_status(&self, new: &Value, _: &Value, causes: &mut Causes) {
        let status = At::root(&new["status"], "status");
        validation::check_conditions(&status, causes);
        let numbers = [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ];
        nonnegative(&status, &numbers, causes);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Min Available" => number_or_text(&spec["minAvailable"]),
            "Max Unavailable" => number_or_text(&spec["maxUnavailable"]),
            "Allowed Disruptions" => number(&object["status"]["disruptionsAllowed"]),
            _ => return None,
        })
    }
}

/// A number or a text, as text; `N/A` for neither.
fn number_or_text(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::String(text) => text.as_str().into(),
        _ => "N/A".into(),
    }
}

fn check(budget: &Value, causes: &mut Causes) {
    let spec = At::root(&budget["spec"], "spec");
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let shown = internal::show(spec.value, "policy.PodDisruptionBudgetSpec");
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(spec.invalid_shown(&shown, why));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(number) = spec.get(field) {
            amount::check(&number, causes);
            amount::at_most_all(&number, causes);
        }
    }
    label::selector(&spec.child("selector"), causes);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    spec.child("unhealthyPodEvictionPolicy")
        .one_of_if_set(&policies, causes);
}

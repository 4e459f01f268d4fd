//! `HorizontalPodAutoscaler` of autoscaling/v2.

use jiff::Timestamp;
use serde_json::Value;

use super::cell;
use super::form as autoscaler;
use super::validation;
use crate::kinds::{Form, Strategy};
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct HorizontalPodAutoscaler;

impl Strategy for HorizontalPodAutoscaler {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_status(&self, new: &Value, _: &Value, causes: &mut Causes) {
        let status = At::root(&new["status"], "status");
        nonnegative(&status, &["currentReplicas", "desiredReplicas"], causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn storage_version<'a>(&self, group: &'a str, _: &'a str) -> (&'a str, &'a str) {
        (group, "v2")
    }

    fn other_form(&self) -> Option<Form> {
        Some(autoscaler::to_new)
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        cell::cell(object, column)
    }
}

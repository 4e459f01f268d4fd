//! `HorizontalPodAutoscaler` of autoscaling/v1, which is stored as one of v2.

use jiff::Timestamp;
use serde_json::Value;

use super::cell;
use super::form as autoscaler;
use super::validation;
use crate::defaults;
use crate::kinds::{Form, Strategy};
use crate::registry::types::Type;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::metadata::Checks;

/// The form autoscalers are stored in.
const STORED: &str = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler";

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct HorizontalPodAutoscalerV1;

impl Strategy for HorizontalPodAutoscalerV1 {
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

    fn stored_form(&self) -> Option<Form> {
        Some(autoscaler::to_new)
    }

    fn requested_form(&self) -> Option<Form> {
        Some(autoscaler::to_old)
    }

    fn other_form(&self) -> Option<Form> {
        Some(autoscaler::to_old)
    }

    fn fill_defaults(&self, object: &mut Value, ty: &Type) {
        // What is filled in is decided in the form it is stored in.
        autoscaler::to_new(object);
        defaults::fill(object, &Type::Named(STORED.into()));
        autoscaler::to_old(object);
        defaults::fill(object, ty);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        cell::cell(object, column)
    }
}

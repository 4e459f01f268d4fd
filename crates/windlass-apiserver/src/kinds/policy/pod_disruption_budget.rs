//! `PodDisruptionBudget`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::metadata::Checks;
use crate::names;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::{cluster, pod};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PodDisruptionBudget;

impl Strategy for PodDisruptionBudget {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        cluster::budget(object, causes);
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
        pod::check_conditions(&status, causes);
        let numbers = [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ];
        nonnegative(&status, &numbers, causes);
    }
}

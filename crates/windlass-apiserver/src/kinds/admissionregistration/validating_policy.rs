//! `ValidatingAdmissionPolicy`.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::param_kind;
use super::policy;
use crate::kinds::Strategy;
use crate::table::cell::count;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionPolicy;

impl Strategy for ValidatingAdmissionPolicy {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        policy::check_validating(object, causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ADMISSION
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn passes_no_webhooks(&self) -> bool {
        true
    }

    fn passes_no_policies(&self) -> bool {
        true
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Validations" => count(&object["spec"]["validations"]),
            "ParamKind" => param_kind(object),
            _ => return None,
        })
    }
}

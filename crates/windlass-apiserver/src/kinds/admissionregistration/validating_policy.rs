//! `ValidatingAdmissionPolicy`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::metadata::Checks;
use crate::validation::admission_policy;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionPolicy;

impl Strategy for ValidatingAdmissionPolicy {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        admission_policy::check_validating(object, causes);
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
}

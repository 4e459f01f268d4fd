//! `MutatingAdmissionPolicy`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::metadata::Checks;
use crate::validation::admission_policy;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct MutatingAdmissionPolicy;

impl Strategy for MutatingAdmissionPolicy {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        admission_policy::check_mutating(object, causes);
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

    fn storage_version<'a>(&self, group: &'a str, _: &'a str) -> (&'a str, &'a str) {
        (group, "v1beta1")
    }
}

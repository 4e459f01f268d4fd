//! `ResourceClaimTemplate`.

use serde_json::Value;

use super::admin_access;

use super::validation;
use crate::kinds::{Admission, Strategy};
use crate::status::Cause;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ResourceClaimTemplate;

impl Strategy for ResourceClaimTemplate {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_template(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_spec_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn check_there(&self, admission: &Admission<'_>, object: &Value) -> Option<Cause> {
        admin_access::check(admission, &object["spec"]["spec"])
    }
}

//! `DeviceClass`.

use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct DeviceClass;

impl Strategy for DeviceClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_class(object, causes);
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }
}

//! `CSIStorageCapacity`.

use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CSIStorageCapacity;

impl Strategy for CSIStorageCapacity {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_capacity(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_capacity_update(new, old, causes);
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }
}

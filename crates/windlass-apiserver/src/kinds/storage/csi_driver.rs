//! `CSIDriver`.

use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::metadata::Checks;
use crate::validation::at::Causes;
use crate::validation::{storage, warnings};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CSIDriver;

impl Strategy for CSIDriver {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        storage::check_driver(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        storage::check_driver_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn counts_changes(&self, _: bool) -> bool {
        true
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::driver(object)
    }

    fn disabled_fields(&self) -> &'static [Way] {
        &[&["spec", "preventPodSchedulingIfMissing"]]
    }
}

//! `RuntimeClass`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::metadata::Checks;
use crate::validation::at::Causes;
use crate::validation::cluster;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        cluster::runtime_class(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        cluster::immutable(new, old, "handler", causes);
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::RUNTIME_CLASS
    }
}

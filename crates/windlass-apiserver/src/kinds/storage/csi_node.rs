//! `CSINode`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::table::cell::count;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CSINode;

impl Strategy for CSINode {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_node(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_node_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_CHANGE
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Drivers" => count(&object["spec"]["drivers"]),
            _ => return None,
        })
    }
}

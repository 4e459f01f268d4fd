//! `NetworkPolicy`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::table::text::selector;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct NetworkPolicy;

impl Strategy for NetworkPolicy {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Pod-Selector" => selector(&object["spec"]["podSelector"]).into(),
            _ => return None,
        })
    }
}

//! `IPAddress`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::metadata::Checks;
use crate::object::meta;
use crate::table;
use crate::validation::at::Causes;
use crate::validation::service_address;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct IPAddress;

impl Strategy for IPAddress {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        service_address::check_address(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        service_address::check_address_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        service_address::name_errors(name)
    }

    fn extra_cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        // A cell that no column announces.
        vec![table::age(meta(object, "creationTimestamp"), now).into()]
    }
}

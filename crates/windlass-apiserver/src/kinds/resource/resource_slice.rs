//! `ResourceSlice`.

use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::validation::at::Causes;
use crate::validation::device;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ResourceSlice;

impl Strategy for ResourceSlice {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        device::check_slice(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        device::check_slice_update(new, old, causes);
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn disabled_fields(&self) -> &'static [Way] {
        &[
            &["spec", "devices", "*", "attributes", "*", "bools"],
            &["spec", "devices", "*", "attributes", "*", "ints"],
            &["spec", "devices", "*", "attributes", "*", "strings"],
            &["spec", "devices", "*", "attributes", "*", "versions"],
            &["spec", "devices", "*", "nodeAllocatableResourceMappings"],
        ]
    }
}

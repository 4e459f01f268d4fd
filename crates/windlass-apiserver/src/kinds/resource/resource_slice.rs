//! `ResourceSlice`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::{Strategy, Way};
use crate::table::text::text;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ResourceSlice;

impl Strategy for ResourceSlice {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_slice(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_slice_update(new, old, causes);
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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Node" => text(&spec["nodeName"]).into(),
            "Driver" => text(&spec["driver"]).into(),
            "Pool" => text(&spec["pool"]["name"]).into(),
            _ => return None,
        })
    }
}

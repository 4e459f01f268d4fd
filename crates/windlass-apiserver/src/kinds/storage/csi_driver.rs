//! `CSIDriver`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::{Strategy, Way};
use crate::table::cell::truth;
use crate::table::text::{joined, or, text};
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;
use crate::validation::warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CSIDriver;

impl Strategy for CSIDriver {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_driver(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_driver_update(new, old, causes);
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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "AttachRequired" => truth(&spec["attachRequired"]),
            "PodInfoOnMount" => truth(&spec["podInfoOnMount"]),
            "StorageCapacity" => truth(&spec["storageCapacity"]),
            "RequiresRepublish" => truth(&spec["requiresRepublish"]),
            "TokenRequests" => audiences(&spec["tokenRequests"]).into(),
            "Modes" => or(joined(&spec["volumeLifecycleModes"], ","), "<none>").into(),
            _ => return None,
        })
    }
}

/// Whom the tokens are for that a driver asks for.
fn audiences(requests: &Value) -> String {
    let requests = requests.as_array().into_iter().flatten();
    let audiences: Vec<String> = requests.map(|one| text(&one["audience"])).collect();
    or(audiences.join(","), "<unset>")
}

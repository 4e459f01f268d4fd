//! `VolumeAttachment`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::{Fields, Strategy, reset_fields};
use crate::table::cell::truth;
use crate::table::text::text;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct VolumeAttachment;

impl Strategy for VolumeAttachment {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_attachment(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_attachment_update(new, old, causes);
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

    fn status_takes_metadata(&self) -> bool {
        false
    }

    fn reset_fields(&self, subresource: &str, has_status: bool) -> Fields {
        match subresource {
            "status" => &[&["metadata"], &["spec"]],
            _ => reset_fields(subresource, has_status),
        }
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Attacher" => text(&spec["attacher"]).into(),
            "PV" => text(&spec["source"]["persistentVolumeName"]).into(),
            "Node" => text(&spec["nodeName"]).into(),
            "Attached" => truth(&object["status"]["attached"]),
            _ => return None,
        })
    }
}
